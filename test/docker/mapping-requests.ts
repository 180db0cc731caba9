import * as v from "valibot";
import { type Pod, PodSchema } from "../../src/base/api/pod.ts";
import type { ContainerRequest, SandboxRequest } from "../../src/base/model/container-engine.ts";
import type { EngineInfo, NodeInfo } from "../../src/base/model/node.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";

/** Part of a manifest; checked by the schema when the pod is built. */
export type Json = { [key: string]: unknown };

/** Memory of the machine the oracle was recorded on. */
const NODE_MEMORY_BYTES = 25_276_502_016;

export const NODE: NodeInfo = {
  name: "node1",
  ip: "192.0.2.1",
  cpuCount: 2,
  memoryBytes: NODE_MEMORY_BYTES,
};

/** Docker 20.10 as it was recorded, on a kernel that allows everything. */
export const ENGINE: EngineInfo = {
  apiVersion: "1.41",
  serverVersion: "20.10.24",
  cgroupDriver: "cgroupfs",
  cgroupVersion: 1,
  dockerRootDir: "/var/lib/docker",
  imagesDir: "/var/lib/docker",
  negativeOomScores: true,
  securityOptions: ["name=seccomp,profile=default"],
  runtimes: ["runc"],
};

export const OWNER = { nodeName: "node1", rootHash: "0123456789abcdef" };

/** A pod of one busybox container `c`; `spec` and `container` are laid over it. */
export function aPod({
  spec = {},
  container = {},
  metadata = {},
}: {
  spec?: Json;
  container?: Json;
  metadata?: Json;
} = {}): Pod {
  const withResources = (list: unknown) => (list as Json[] | undefined)?.map((one) => ({ resources: {}, ...one }));
  const { initContainers } = spec;
  return v.parse(PodSchema, {
    metadata: { name: "web-node1", namespace: "default", uid: "u1", ...metadata },
    spec: {
      nodeName: "node1",
      ...spec,
      ...(initContainers !== undefined && { initContainers: withResources(initContainers) }),
      containers: withResources(spec.containers ?? [{ name: "c", image: "busybox:test", ...container }]),
    },
  });
}

export const aSandboxRequest = (pod: Pod, over: Partial<SandboxRequest> = {}): SandboxRequest => ({
  pod,
  attempt: 0,
  image: "pause:1",
  hash: "sandbox-hash",
  engine: ENGINE,
  settings: DEFAULT_KUBELET_OPTIONS,
  ...over,
});

export const aContainerRequest = (pod: Pod, over: Partial<ContainerRequest> = {}): ContainerRequest => ({
  pod,
  container: pod.spec.containers[0]!,
  restartCount: 0,
  sandboxId: "sandbox",
  hash: "container-hash",
  image: { id: "sha256:image", user: "", healthcheck: undefined },
  env: [],
  mounts: [],
  node: NODE,
  engine: ENGINE,
  paths: { seccompRoot: "/root-dir/seccomp", podLogsDir: "/var/log/pods" },
  settings: DEFAULT_KUBELET_OPTIONS,
  readFile: (path) => {
    throw Object.assign(new Error(`no ${path}`), { code: "ENOENT" });
  },
  ...over,
});
