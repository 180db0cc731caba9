import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MachineRoots, MeasuredEngine, NodeStatsDeps } from "../../src/stats/node-stats.ts";
import type { ContainerFacts, PodFacts } from "../../src/stats/pod-facts.ts";

/** `cgroup-v1`: a hybrid machine, recorded. `cgroup-v2`: a modern kernel with systemd's names, file by file. */
export type TreeName = "cgroup-v1" | "cgroup-v2";

export interface LaidTree {
  roots: MachineRoots;
  /** Directory of the mounted hierarchies. */
  cgroup: string;
}

/** Copies a recorded tree to where tests may change it, with mountinfo naming that place. */
export function layTree(name: TreeName, directory: string): LaidTree {
  cpSync(join(import.meta.dir, "..", "fixtures", name), directory, { recursive: true });
  const mountinfo = join(directory, "proc", "self", "mountinfo");
  writeFileSync(mountinfo, readFileSync(mountinfo, "utf8").replaceAll("@ROOT@", directory));
  // Descriptors are links to nowhere, which is nothing to keep in git.
  for (const [descriptor, target] of ["/dev/null", "pipe:[20]", "socket:[4711]"].entries()) {
    mkdirSync(join(directory, "proc", "1002", "fd"), { recursive: true });
    symlinkSync(target, join(directory, "proc", "1002", "fd", String(descriptor)));
  }
  const roots = { proc: join(directory, "proc"), sys: join(directory, "sys"), etc: join(directory, "etc") };
  return { roots, cgroup: join(directory, "cgroup") };
}

/** An engine with no other containers, whose images are not known. */
export const aMeasuredEngine = (engine: Partial<MeasuredEngine> = {}): MeasuredEngine => ({
  infoIfKnown: { imagesDir: "/", serverVersion: "20.10.24" },
  images: { inventory: () => Promise.reject(new Error("connect ENOENT")) },
  others: { list: async () => [] },
  ...engine,
});

export const statsSettings: NodeStatsDeps["settings"] = {
  rootDir: "/",
  volumeStatsAggPeriodMs: 60_000,
  disabledMetrics: [],
  kubeletCgroups: "",
  runtimeCgroups: "",
  systemCgroups: "",
};

const POD_UIDS: Readonly<Record<TreeName, string>> = {
  "cgroup-v1": "6f1c0d2e8a4b4c1d9e7f0a1b2c3d4e5f",
  "cgroup-v2": "6f1c0d2e-8a4b-4c1d-9e7f-0a1b2c3d4e5f",
};
const PARENTS: Readonly<Record<TreeName, string>> = {
  "cgroup-v1": "/kubepods/burstable/pod6f1c0d2e8a4b4c1d9e7f0a1b2c3d4e5f",
  "cgroup-v2": "kubepods-burstable-pod6f1c0d2e_8a4b_4c1d_9e7f_0a1b2c3d4e5f.slice",
};

export const SANDBOX_ID = "1".repeat(64);
export const CONTAINER_ID = "2".repeat(64);
/** Cgroup of the container of the tree. */
export const CONTAINER_PATHS: Readonly<Record<TreeName, string>> = {
  "cgroup-v1": `${PARENTS["cgroup-v1"]}/${CONTAINER_ID}`,
  "cgroup-v2": `/kubepods.slice/kubepods-burstable.slice/${PARENTS["cgroup-v2"]}/docker-${CONTAINER_ID}.scope`,
};

/** The one pod that runs in the tree. */
export function podOf(name: TreeName, overrides: Partial<PodFacts> = {}): PodFacts {
  const uid = POD_UIDS[name];
  const container = (of: string, id: string, pid: number): ContainerFacts => ({
    name: of,
    id,
    dockerName: `k8s_${of}_web-node1_default_${uid}_0`,
    pid,
    image: of === "POD" ? "k8s.gcr.io/pause:3.2" : "sha256:2a97",
    createdAt: new Date("2026-11-21T06:36:00.500Z"),
    startedAt: new Date("2026-11-21T06:36:01.250Z"),
    labels: { "io.kubernetes.container.name": of, "annotation.kubectl.kubernetes.io/last-applied-configuration": "{}" },
    logPath: `/var/lib/docker/containers/${id}/${id}-json.log`,
    writableLayerPath: `/var/lib/docker/overlay2/${of}/diff`,
  });
  return {
    uid,
    name: "web-node1",
    namespace: "default",
    startTime: new Date("2026-11-21T06:35:59.000Z"),
    hostNetwork: false,
    cgroupParent: PARENTS[name],
    sandbox: container("POD", SANDBOX_ID, 1001),
    containers: [container("app", CONTAINER_ID, 1002)],
    volumes: [],
    ...overrides,
  };
}
