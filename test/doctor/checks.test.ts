import { describe, expect, test } from "bun:test";
import type { CheckStatus } from "../../src/doctor/check-result.ts";
import { runChecks } from "../../src/doctor/checks.ts";
import type { MachineFacts } from "../../src/doctor/machine-facts.ts";

const GIB = 2 ** 30;
const DAY_MS = 86_400_000;

/** A machine without fault. */
const HEALTHY: MachineFacts = {
  configuration: { errors: [], rejected: undefined },
  isRoot: true,
  engine: {
    endpoint: "unix:///var/run/docker.sock",
    problem: undefined,
    version: "28.5.2",
    apiVersion: "1.51",
    storageDriver: "overlay2",
    logDriver: "json-file",
    cgroupDriver: "systemd",
    cgroupVersion: "2",
    liveRestore: true,
    warnings: [],
    bridgeSubnets: ["172.17.0.0/16"],
    foreignContainers: [],
    rootless: false,
  },
  cgroupControllers: ["cpuset", "cpu", "io", "memory", "pids"],
  hasPsi: true,
  swapBytes: 0,
  failSwapOn: false,
  inotifyInstances: 128,
  inotifyWatches: 65_536,
  pidMax: 4_194_304,
  ipForward: true,
  bridgeNetfilter: undefined,
  mayLowerOomScores: true,
  cpuFlags: ["sse2", "avx2"],
  binaryTarget: "x64",
  disks: [
    {
      name: "root directory",
      path: "/var/lib/kubelet",
      capacityBytes: 100 * GIB,
      freeBytes: 50 * GIB,
      inodes: 1000,
      freeInodes: 900,
    },
  ],
  nowMs: 1000 * DAY_MS,
  buildMs: 900 * DAY_MS,
  clockSynchronized: true,
  nameservers: ["192.0.2.1"],
  ports: [{ flag: "read-only-port", port: 10_255, holder: undefined }],
  timeZone: { name: "Europe/Berlin" },
  otherOrchestrators: [],
  manifests: { paths: ["/pods"], findings: [], pods: 2 },
  images: [
    {
      name: "nginx:1.22",
      present: true,
      architecture: process.arch === "x64" ? "amd64" : "arm64",
      pullPolicy: "Always",
    },
  ],
  certificates: [{ path: "/pki/kubelet.crt", expiresMs: 1100 * DAY_MS }],
  unit: { path: "/etc/systemd/system/kubelet-ts.service", isCurrent: true, isEdited: false },
};

const engine = (change: Partial<MachineFacts["engine"]>) => ({ engine: { ...HEALTHY.engine, ...change } });
const disk = (change: Partial<MachineFacts["disks"][number]>) => ({ disks: [{ ...HEALTHY.disks[0]!, ...change }] });
const image = (change: Partial<MachineFacts["images"][number]>) => ({ images: [{ ...HEALTHY.images[0]!, ...change }] });

test("a healthy machine passes every check, without a fix", () => {
  const results = runChecks(HEALTHY);
  expect(results.filter(({ status }) => status !== "ok")).toEqual([]);
  expect(results.length).toBeGreaterThan(20);
});

describe("each check fails", () => {
  test.each<[string, Partial<MachineFacts>, CheckStatus, string, string | undefined]>([
    [
      "engine",
      engine({ problem: { kind: "no-permission", message: "permission denied" } }),
      "fail",
      "permission denied",
      "usermod -aG docker",
    ],
    [
      "engine",
      engine({ problem: { kind: "no-socket", message: "no such file" } }),
      "fail",
      "no such file",
      "install Docker",
    ],
    [
      "engine",
      engine({ problem: { kind: "refused", message: "refused" } }),
      "fail",
      "refused",
      "systemctl start docker",
    ],
    ["engine API", engine({ apiVersion: "1.9" }), "fail", "older than 1.32", "install Docker"],
    ["storage driver", engine({ storageDriver: "vfs" }), "warn", "slow", "overlay2"],
    ["log driver", engine({ logDriver: "none" }), "warn", "nothing to read", "json-file"],
    ["live-restore", engine({ liveRestore: false }), "warn", "restarts every pod", "live-restore"],
    ["rootless engine", engine({ rootless: true }), "warn", "below 1024", undefined],
    ["engine", engine({ warnings: ["WARNING: No swap limit support"] }), "warn", "No swap limit support", undefined],
    ["address pool", engine({ bridgeSubnets: ["169.254.0.0/16"] }), "warn", "169.254", "default-address-pools"],
    ["cgroups", { cgroupControllers: ["cpu", "pids"] }, "fail", "memory", "cgroup_enable=memory"],
    ["pressure information", { hasPsi: false }, "warn", "PSI", "psi=1"],
    ["swap", { swapBytes: GIB, failSwapOn: true }, "fail", "swap is on", "swapoff"],
    ["inotify", { inotifyWatches: 10 }, "warn", "watches", "sysctl"],
    ["process ids", { pidMax: 1000 }, "warn", "1000", "sysctl"],
    ["ip_forward", { ipForward: false }, "fail", "no network", "sysctl"],
    ["br_netfilter", { bridgeNetfilter: false }, "warn", "firewall", "sysctl"],
    ["OOM scores", { mayLowerOomScores: false }, "warn", "CAP_SYS_RESOURCE", undefined],
    ["CPU", { cpuFlags: ["sse2"] }, "fail", "AVX2", "baseline"],
    ["disk of root directory", disk({ freeBytes: 5 * GIB }), "fail", "5.0 GiB of 100.0 GiB", "docker"],
    ["disk of root directory", disk({ freeBytes: 12 * GIB }), "warn", "15 %", "docker image prune"],
    ["disk of root directory", disk({ freeInodes: 10 }), "fail", "inodes", "find"],
    ["disk of root directory", disk({ capacityBytes: undefined }), "fail", "cannot be examined", "mkdir"],
    ["clock", { nowMs: 0 }, "fail", "1970-01-01", "timedatectl"],
    ["clock", { clockSynchronized: false }, "warn", "not synchronized", "timedatectl"],
    ["DNS", { nameservers: [] }, "warn", "no nameserver", "resolv.conf"],
    ["DNS", { nameservers: ["127.0.0.53"] }, "warn", "pods cannot reach", "--resolv-conf"],
    [
      "port 10255",
      { ports: [{ flag: "read-only-port", port: 10_255, holder: "nginx (pid 7)" }] },
      "warn",
      "nginx (pid 7)",
      "--read-only-port",
    ],
    ["other orchestrators", { otherOrchestrators: ["k3s (pid 9)"] }, "warn", "k3s (pid 9)", "stop it"],
    ["manifests", { manifests: { ...HEALTHY.manifests, paths: [] } }, "warn", "none", "--pod-manifest-path"],
    [
      "manifests",
      {
        manifests: {
          ...HEALTHY.manifests,
          findings: [
            {
              code: "unknown",
              severity: "error",
              file: "/pods/a.yaml",
              document: 1,
              line: 3,
              column: 5,
              field: "spec.x",
              message: "no such field",
            },
          ],
        },
      },
      "fail",
      "/pods/a.yaml:3:5: spec.x: no such field",
      "edit /pods/a.yaml",
    ],
    ["image nginx:1.22", image({ present: false }), "warn", "pulled", "docker pull"],
    ["image nginx:1.22", image({ present: false, pullPolicy: "Never" }), "fail", "Never", "docker load"],
    ["image nginx:1.22", image({ architecture: "s390x" }), "fail", "s390x", "--platform"],
    [
      "image nginx:1.22",
      image({ present: false, remote: { problem: "manifest unknown" } }),
      "fail",
      "is not on this machine and cannot be pulled: manifest unknown",
      "imagePullSecrets",
    ],
    [
      "image nginx:1.22",
      image({ remote: { problem: "connection refused" } }),
      "fail",
      "imagePullPolicy is Always, and it cannot be pulled: connection refused",
      "IfNotPresent",
    ],
    [
      "image nginx:1.22",
      image({ present: false, remote: { architectures: ["s390x", "unknown"] } }),
      "fail",
      "the registry has it for s390x, this machine",
      "for this machine",
    ],
    ["time zone", { timeZone: { name: "UTC", problem: "TZ is x" } }, "warn", "TZ is x", "timedatectl"],
    [
      "configuration",
      { configuration: { errors: ["/etc/c.yaml:3:1: maxPod: no such field"], rejected: undefined } },
      "fail",
      "/etc/c.yaml:3:1",
      "kubelet-ts config",
    ],
    [
      "configuration",
      { configuration: { errors: [], rejected: "no engine" } },
      "warn",
      "last known good one is used: no engine",
      "correct the file",
    ],
    [
      "certificate /pki/kubelet.crt",
      { certificates: [{ path: "/pki/kubelet.crt", expiresMs: 999 * DAY_MS }] },
      "fail",
      "expired",
      "remove",
    ],
    [
      "certificate /pki/kubelet.crt",
      { certificates: [{ path: "/pki/kubelet.crt", expiresMs: 1010 * DAY_MS }] },
      "warn",
      "expires on",
      "replace",
    ],
    ["service", { unit: undefined }, "warn", "does not start", "kubelet-ts install"],
    ["service", { unit: { path: "/x", isCurrent: false, isEdited: true } }, "warn", "was edited", "systemctl edit"],
    [
      "service",
      { unit: { path: "/x", isCurrent: false, isEdited: false } },
      "warn",
      "another version",
      "kubelet-ts install",
    ],
  ])("%s %j", (name, change, status, message, fix) => {
    const bad = runChecks({ ...HEALTHY, ...change }).filter((result) => result.status !== "ok");
    expect(bad.map((result) => [result.name, result.status])).toEqual([
      [name, status],
      ...bad.slice(1).map((one) => [one.name, one.status] as [string, CheckStatus]),
    ]);
    expect(bad[0]?.message).toContain(message);
    if (fix === undefined) expect(bad[0]?.fix).toBeUndefined();
    else expect(bad[0]?.fix).toContain(fix);
  });
});
