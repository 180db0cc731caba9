import { describe, expect, test } from "bun:test";
import type { CheckStatus } from "../../../src/daemon/doctor/checks.ts";
import { runChecks } from "../../../src/daemon/doctor/checks.ts";
import type { MachineFacts } from "../../../src/daemon/doctor/machine-facts.ts";

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
    wantedCgroupDriver: "systemd",
    cgroupVersion: "2",
    liveRestore: true,
    warnings: [],
    bridgeSubnets: ["172.17.0.0/16"],
    userlandProxy: { isOn: true, hasIptables: true, processes: 3 },
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
  ports: [
    { flag: "read-only-port", port: 10_255, state: "free", holder: "" },
    { flag: "healthz-port", port: 10_248, state: "own", holder: "kubelet-ts (pid 7)" },
    { flag: "cadvisor-port", port: 4194, state: "unknown", holder: "" },
  ],
  routes: [{ subnet: "192.168.1.0/24", device: "eth0" }],
  maxPods: 110,
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
  unit: {
    path: "/etc/systemd/system/kubelet-ts.service",
    isCurrent: true,
    isEdited: false,
    install: "sudo kubelet-ts install",
  },
};

const engine = (change: Partial<MachineFacts["engine"]>) => ({ engine: { ...HEALTHY.engine, ...change } });
const disk = (change: Partial<MachineFacts["disks"][number]>) => ({ disks: [{ ...HEALTHY.disks[0]!, ...change }] });
const unit = (change: Partial<NonNullable<MachineFacts["unit"]>>) => ({ unit: { ...HEALTHY.unit!, ...change } });
const image = (change: Partial<MachineFacts["images"][number]>) => ({ images: [{ ...HEALTHY.images[0]!, ...change }] });

test("a healthy machine passes every check, without a fix", () => {
  const results = runChecks(HEALTHY);
  expect(results.filter(({ status }) => status !== "ok")).toEqual([]);
  expect(results.length).toBeGreaterThan(20);
});

const FAILING: [string, Partial<MachineFacts>, CheckStatus, string, string | undefined][] = [
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
    engine({ endpoint: "unix:///run/user/7/docker.sock", problem: { kind: "no-socket", message: "no such file" } }),
    "fail",
    "no such file",
    "dockerd-rootless-setuptool.sh",
  ],
  ["engine", engine({ problem: { kind: "refused", message: "refused" } }), "fail", "refused", "systemctl start docker"],
  ["engine API", engine({ apiVersion: "1.9" }), "fail", "older than 1.32", "install Docker"],
  ["storage driver", engine({ storageDriver: "vfs" }), "warn", "slow", "overlay2"],
  ["log driver", engine({ logDriver: "none" }), "warn", "nothing to read", "json-file"],
  [
    "cgroup driver",
    engine({ wantedCgroupDriver: "cgroupfs" }),
    "fail",
    "the engine uses systemd, and --cgroup-driver is cgroupfs",
    "set it to systemd",
  ],
  ["live-restore", engine({ liveRestore: false }), "warn", "restarts every pod", "live-restore"],
  ["rootless engine", engine({ rootless: true }), "warn", "below 1024", undefined],
  ["engine", engine({ warnings: ["WARNING: No swap limit support"] }), "warn", "No swap limit support", undefined],
  [
    "userland proxy",
    engine({ userlandProxy: { isOn: false, hasIptables: false, processes: 0 } }),
    "fail",
    "host ports of pods do not answer",
    "userland-proxy",
  ],
  [
    "userland proxy",
    engine({ userlandProxy: { isOn: true, hasIptables: true, processes: 60 } }),
    "warn",
    "60 processes",
    "userland-proxy",
  ],
  [
    "address pool",
    { routes: [{ subnet: "172.17.5.0/24", device: "tun0" }] },
    "warn",
    "tun0 leads to 172.17.5.0/24",
    "bip",
  ],
  ["address pool", engine({ bridgeSubnets: ["10.9.0.0/26"] }), "warn", "61 addresses for up to 110 pods", "bip"],
  ["cgroups", { cgroupControllers: ["cpu", "pids"] }, "fail", "memory", "cgroup_enable=memory"],
  ["pressure information", { hasPsi: false }, "warn", "PSI", "psi=1"],
  ["swap", { swapBytes: GIB, failSwapOn: true }, "fail", "swap is on", "swapoff"],
  ["inotify", { inotifyWatches: 10 }, "warn", "watches", "sysctl"],
  ["process ids", { pidMax: 1000 }, "warn", "1000", "sysctl"],
  ["ip_forward", { ipForward: false }, "fail", "no network", "sysctl"],
  ["br_netfilter", { bridgeNetfilter: false }, "warn", "firewall", "sysctl"],
  ["OOM scores", { mayLowerOomScores: false }, "warn", "CAP_SYS_RESOURCE", "--cap-add"],
  ["CPU", { cpuFlags: ["sse2"] }, "fail", "AVX2", "baseline"],
  ["CPU", { cpuFlags: ["sse2"], binaryTarget: "x64-musl" }, "fail", "AVX2", "baseline"],
  ["disk of root directory", disk({ freeBytes: 5 * GIB }), "fail", "5.0 GiB of 100.0 GiB", "docker"],
  ["disk of root directory", disk({ freeBytes: 12 * GIB }), "warn", "15 %", "docker image prune"],
  ["disk of root directory", disk({ freeInodes: 10 }), "fail", "inodes", "find"],
  ["disk of root directory", disk({ capacityBytes: 0 }), "fail", "holds no files", "another directory"],
  ["disk of root directory", disk({ capacityBytes: undefined }), "fail", "cannot be examined", "mkdir"],
  ["clock", { nowMs: 0 }, "fail", "1970-01-01", "timedatectl"],
  ["clock", { clockSynchronized: false }, "warn", "not synchronized", "timedatectl"],
  ["DNS", { nameservers: [] }, "warn", "no nameserver", "resolv.conf"],
  ["DNS", { nameservers: ["127.0.0.53"] }, "warn", "pods cannot reach", "--resolv-conf"],
  [
    "port 10255",
    { ports: [{ flag: "read-only-port", port: 10_255, state: "taken", holder: "nginx (pid 7)" }] },
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
  ["service", unit({ isCurrent: false, isEdited: true }), "warn", "was edited", "systemctl edit"],
  ["service", unit({ isCurrent: false }), "warn", "another version", "kubelet-ts install"],
  [
    "service",
    unit({ problem: { text: "has failed with exit code 2", fix: "journalctl -u kubelet-ts", isFailure: true } }),
    "fail",
    "kubelet-ts.service has failed with exit code 2",
    "journalctl",
  ],
  [
    "service",
    unit({ problem: { text: "is stopped", fix: "systemctl start kubelet-ts", isFailure: false } }),
    "warn",
    "is stopped",
    "systemctl start",
  ],
];

describe("each check fails", () => {
  test.each(FAILING)("%s %j", (name, change, status, message, fix) => {
    const bad = runChecks({ ...HEALTHY, ...change }).filter((result) => result.status !== "ok");
    expect(bad.map((result) => [result.name, result.status])).toEqual([
      [name, status],
      ...bad.slice(1).map((one) => [one.name, one.status] as [string, CheckStatus]),
    ]);
    expect(bad[0]?.message).toContain(message);
    if (fix === undefined) expect(bad[0]?.fix).toBeUndefined();
    else expect(bad[0]?.fix).toContain(fix);
  });

  test("none is left out", () => {
    // Each port has the same check.
    const nameOf = (name: string) => (name.startsWith("port ") ? "port" : name);
    const tested = new Set(FAILING.map(([name]) => nameOf(name)));
    expect(runChecks(HEALTHY).filter(({ name }) => !tested.has(nameOf(name)))).toEqual([]);
  });
});

test("a binary for older processors runs without AVX2", () => {
  const results = runChecks({ ...HEALTHY, cpuFlags: ["sse2"], binaryTarget: "x64-baseline" });
  expect(results.filter(({ status }) => status !== "ok")).toEqual([]);
});

test("a machine without a firewall of the engine is served by the proxy", () => {
  const results = runChecks({
    ...HEALTHY,
    ...engine({ userlandProxy: { isOn: true, hasIptables: false, processes: 90 } }),
  });
  expect(results.filter(({ status }) => status !== "ok")).toEqual([]);
});
