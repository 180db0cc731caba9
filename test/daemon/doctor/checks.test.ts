import { describe, expect, test } from "bun:test";
import { runChecks } from "../../../src/daemon/doctor/checks.ts";
import type { MachineFacts } from "../../../src/daemon/doctor/gather-facts.ts";

const GIB = 2 ** 30;
const DAY_MS = 86_400_000;

const CAPACITY = {
  capacityBytes: 100 * GIB,
  usedBytes: 50 * GIB,
  availableBytes: 50 * GIB,
  inodes: 1000,
  inodesFree: 900,
};

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
    bridge: "docker0",
    bridges: ["docker0"],
    settings: { hasProxy: true, hasIptables: true, hasMark: false, proxies: 3 },
    firewall: "iptables",
    foreignContainers: [],
    rootless: false,
  },
  cgroupControllers: ["cpuset", "cpu", "blkio", "memory", "pids"],
  hasPsi: true,
  swapBytes: 0,
  failSwapOn: false,
  inotifyInstances: 128,
  inotifyWatches: 65_536,
  pidMax: 4_194_304,
  ipForward: true,
  bridgeNetfilter: undefined,
  serviceProblem: undefined,
  staleRules: [],
  mayLowerOomScores: true,
  cpuFlags: ["sse2", "avx2"],
  binaryTarget: "x64",
  disks: [{ name: "root directory", path: "/var/lib/kubelet", capacity: CAPACITY, isReadOnly: false }],
  node: { name: "vm", last: "vm", machine: "vm" },
  hasServiceManager: true,
  nowMs: 1000 * DAY_MS,
  buildMs: 900 * DAY_MS,
  clockSynchronized: true,
  nameservers: ["192.0.2.1"],
  ports: [
    { flag: "read-only-port", port: 10_255, state: "free", holder: "" },
    { flag: "healthz-port", port: 10_248, state: "own", holder: "kubelet-ts (pid 7)" },
    { flag: "cadvisor-port", port: 4194, state: "unknown", holder: "" },
  ],
  routes: [{ subnet: "192.168.1.0/24", device: "eth0", isDirect: true }],
  maxPods: 110,
  timeZone: { name: "Europe/Berlin" },
  otherOrchestrators: [],
  manifests: { paths: ["/pods"], findings: [], unreadable: [], pods: 2, specs: [], secrets: new Map() },
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
const disk = (change: Partial<typeof CAPACITY>, name = "root directory") => ({
  disks: [{ ...HEALTHY.disks[0]!, name, capacity: { ...CAPACITY, ...change } }],
});
const unit = (change: Partial<NonNullable<MachineFacts["unit"]>>) => ({ unit: { ...HEALTHY.unit!, ...change } });
const image = (change: Partial<MachineFacts["images"][number]>) => ({ images: [{ ...HEALTHY.images[0]!, ...change }] });

test("a healthy machine passes every check, without a fix", () => {
  const results = runChecks(HEALTHY);
  expect(results.filter(({ status }) => status !== "ok")).toEqual([]);
  expect(results.length).toBeGreaterThan(20);
});

test.each([
  ["1", "cgroupfs", "version 1, driver cgroupfs, with cpu, memory, pids"],
  ["", "", "with cpu, memory, pids"],
])("the cgroups of an engine with version %p and driver %p", (cgroupVersion, cgroupDriver, message) => {
  const results = runChecks({ ...HEALTHY, ...engine({ cgroupVersion, cgroupDriver }) });
  expect(results.find(({ name }) => name === "cgroups")).toMatchObject({ status: "ok", message });
});

const problem = (kind: string, more: Partial<MachineFacts["engine"]> = {}) =>
  engine({ ...more, problem: { kind, message: "no answer" } });
const proxy = (hasProxy: boolean, hasIptables: boolean, proxies: number) =>
  engine({ settings: { hasProxy, hasIptables, hasMark: false, proxies } });
const nftables = (hasMark: boolean) =>
  engine({ firewall: "nftables+firewalld", settings: { ...HEALTHY.engine.settings, hasMark } });
const finding: MachineFacts["manifests"]["findings"][number] = {
  code: "unknown",
  severity: "error",
  file: "/pods/a.yaml",
  document: 1,
  line: 3,
  column: 5,
  field: "spec.x",
  message: "no such field",
};
const manifests = (change: Partial<MachineFacts["manifests"]>) => ({ manifests: { ...HEALTHY.manifests, ...change } });
const certificate = (days: number) => ({ certificates: [{ path: "/pki/kubelet.crt", expiresMs: days * DAY_MS }] });
const taken: MachineFacts["ports"] = [
  { flag: "read-only-port", port: 10_255, state: "taken", holder: "nginx (pid 7)" },
];
const absent = { present: false };
const gone = { remote: { problem: "gone" } };
const unreachable = { remote: { problem: "connect: connection refused" } };
const foreign = { remote: { architectures: ["s390x", "unknown"] } };
const tunnel = { routes: [{ subnet: "172.17.5.0/24", device: "tun0", isDirect: true }] };
const configuration = (errors: string[], rejected?: string) => ({ configuration: { errors, rejected } });
const failed = { text: "has failed with exit code 2", fix: "journalctl -u kubelet-ts", isFailure: true };
const stopped = { text: "is stopped", fix: "systemctl start kubelet-ts", isFailure: false };

/** Check, facts, message and fix; undefined: none. A name with ! fails, the others warn. */
const FAILING: [string, Partial<MachineFacts>, string, string | undefined][] = [
  ["engine!", problem("no-permission"), "no answer", "usermod -aG docker"],
  ["engine!", problem("no-socket"), "no answer", "install Docker"],
  ["engine!", problem("no-socket", { endpoint: "unix:///run/user/7/d.sock" }), "no answer", "dockerd-rootless-setup"],
  ["engine!", problem("refused"), "no answer", "systemctl start docker"],
  ["engine!", problem("refused", { endpoint: "tcp://127.0.0.1:2375" }), "no answer", "dockerd with -H tcp://127.0.0.1"],
  ["engine!", problem("other", { endpoint: "ssh://u@h" }), "no answer", "unset DOCKER_HOST, or give --docker-endpoint"],
  ["engine API!", engine({ apiVersion: "1.9" }), "older than 1.32", "install Docker"],
  ["storage driver", engine({ storageDriver: "vfs" }), "slow", "overlay2"],
  ["log driver", engine({ logDriver: "none" }), "nothing to read", "json-file"],
  ["cgroup driver!", engine({ wantedCgroupDriver: "cgroupfs" }), "systemd, and --cgroup-driver is", "to systemd"],
  ["live-restore", engine({ liveRestore: false }), "restarts every pod", "live-restore"],
  ["rootless engine", engine({ rootless: true }), "below 1024", undefined],
  ["engine", engine({ warnings: ["WARNING: No swap limit support"] }), "No swap limit support", undefined],
  ["userland proxy!", proxy(false, false, 0), "host ports of pods do not answer", "userland-proxy"],
  ["userland proxy", proxy(true, true, 60), "60 processes", "userland-proxy"],
  ["services", nftables(false), "nftables drop", '"bridge-accept-fwmark": "0x1000/0x1000"'],
  ["address pool", tunnel, "tun0 leads to 172.17.5.0/24", "bip"],
  ["address pool", engine({ bridgeSubnets: ["10.9.0.0/26"] }), "61 addresses for up to 110 pods", "bip"],
  ["cgroups!", { cgroupControllers: ["cpu", "pids"] }, "memory", "cgroup_enable=memory"],
  ["pressure information", { hasPsi: false }, "PSI", "psi=1"],
  ["swap!", { swapBytes: GIB, failSwapOn: true }, "swap is on", "swapoff"],
  ["inotify", { inotifyWatches: 10 }, "watches", "sysctl"],
  ["process ids", { pidMax: 1000 }, "1000", "sysctl"],
  ["ip_forward!", { ipForward: false }, "no network", "sysctl"],
  ["br_netfilter", { bridgeNetfilter: false }, "firewall", "sysctl"],
  ["services", { serviceProblem: "iptables-save was not found in PATH" }, "not found in PATH", "install iptables"],
  ["services", { serviceProblem: "iptables-restore: TABLE_ADD failed: table nat" }, "have no addresses", "modprobe"],
  ["services", { staleRules: ["/srv/old"] }, "/srv/old is gone", "down --all --root-dir=/srv/old"],
  ["OOM scores", { mayLowerOomScores: false }, "CAP_SYS_RESOURCE", "--cap-add"],
  ["CPU!", { cpuFlags: ["sse2"] }, "AVX2", "baseline"],
  ["CPU!", { cpuFlags: ["sse2"], binaryTarget: "x64-musl" }, "AVX2", "baseline"],
  ["address pool", { ...engine({ bridge: "lan0" }), ...tunnel }, "tun0 leads", "give lan0 an address"],
  ["disk of root directory!", disk({ availableBytes: 5 * GIB }), "5.0 GiB of 100.0 GiB", "du -x"],
  ["disk of root directory!", disk({ availableBytes: 2 ** 20, capacityBytes: 2 ** 26 }), "1 MiB of 64 MiB", "du -x"],
  ["disk of images!", disk({ availableBytes: 5 * GIB }, "images"), "10 %", "docker image prune"],
  ["disk of images", disk({ availableBytes: 12 * GIB }, "images"), "15 %", "docker image prune"],
  ["node name", { node: { name: "old", last: "old", machine: "new" } }, "called new", "--hostname-override=new"],
  ["node name", { node: { name: "new", last: "old", machine: "new" } }, "was old", "--hostname-override=old"],
  ["disk of root directory!", disk({ inodesFree: 10 }), "inodes", "find"],
  ["disk of root directory!", disk({ capacityBytes: 0 }), "holds no files", "another directory"],
  [
    "disk of root directory!",
    { disks: [{ ...HEALTHY.disks[0]!, capacity: undefined }] },
    "cannot be examined",
    "mkdir",
  ],
  ["disk of root directory!", { disks: [{ ...HEALTHY.disks[0]!, isReadOnly: true }] }, "read-only", "remount,rw"],
  ["clock!", { nowMs: 0 }, "1970-01-01", "timedatectl"],
  ["clock", { clockSynchronized: false }, "not synchronized", "timedatectl"],
  ["DNS", { nameservers: [] }, "no nameserver", "resolv.conf"],
  ["DNS", { nameservers: ["127.0.0.53"] }, "pods cannot reach", "--resolv-conf"],
  ["port 10255", { ports: taken }, "nginx (pid 7)", "--read-only-port"],
  ["other orchestrators", { otherOrchestrators: ["k3s (pid 9)"] }, "k3s (pid 9)", "stop it"],
  ["manifests", manifests({ paths: [] }), "none", "--pod-manifest-path"],
  [
    "manifests!",
    manifests({ unreadable: [{ path: "/m", message: '"/m" does not exist' }] }),
    "not exist",
    "mkdir -p /m",
  ],
  ["manifests!", manifests({ findings: [finding] }), "/pods/a.yaml:3:5: spec.x: no such field", "edit /pods/a.yaml"],
  ["image nginx:1.22", image(absent), "pulled", "docker pull"],
  ["image nginx:1.22!", image({ ...absent, pullPolicy: "Never" }), "Never", "docker load"],
  ["image nginx:1.22!", image({ architecture: "s390x" }), "s390x", "--platform"],
  ["image nginx:1.22!", image({ ...absent, ...gone }), "cannot be pulled: gone", "check name and tag"],
  ["image nginx:1.22!", image({ ...absent, ...unreachable }), "connection refused", "the registry cannot be reached"],
  ["image nginx:1.22!", image(gone), "is Always, and it cannot be pulled: gone", "IfNotPresent"],
  ["image nginx:1.22!", image({ ...absent, ...foreign }), "for s390x,", "for this"],
  ["time zone", { timeZone: { name: "UTC", problem: "TZ is x" } }, "TZ is x", "timedatectl"],
  ["configuration!", configuration(["/c.yaml:3:1: maxPod"]), "/c.yaml:3:1", "config"],
  ["configuration", configuration([], "no engine"), "is used: no engine", "correct the file"],
  ["certificate /pki/kubelet.crt!", certificate(999), "expired", "remove"],
  ["certificate /pki/kubelet.crt", certificate(1010), "expires on", "replace"],
  ["service", { unit: undefined }, "does not start", "kubelet-ts install"],
  ["service", { unit: undefined, hasServiceManager: false }, "does not start", "kubelet-ts --pod-manifest-path="],
  ["service", unit({ isCurrent: false, isEdited: true }), "was edited", "systemctl edit"],
  ["service", unit({ isCurrent: false }), "another version", "kubelet-ts install"],
  ["service!", unit({ problem: failed }), "kubelet-ts.service has failed with exit code 2", "journalctl"],
  ["service", unit({ problem: stopped }), "is stopped", "systemctl start"],
];

describe("each check fails", () => {
  test.each(FAILING)("%s: %j", (check, change, message, fix) => {
    const [bad] = runChecks({ ...HEALTHY, ...change }).filter(({ status }) => status !== "ok");
    expect(bad).toMatchObject({ name: check.replace("!", ""), status: check.endsWith("!") ? "fail" : "warn" });
    expect(bad?.message).toContain(message);
    if (fix === undefined) expect(bad?.fix).toBeUndefined();
    else expect(bad?.fix).toContain(fix);
  });

  test("none is left out", () => {
    // A result here: its check needs a row in FAILING. Each port has the same check.
    const nameOf = (name: string) => (name.startsWith("port ") ? "port" : name);
    const tested = new Set(FAILING.map(([name]) => nameOf(name.replace("!", ""))));
    expect(runChecks(HEALTHY).filter(({ name }) => !tested.has(nameOf(name)))).toEqual([]);
  });
});

test.each([
  ["a binary for older processors runs without AVX2", { cpuFlags: ["sse2"], binaryTarget: "x64-baseline" }],
  [
    "the engine's own bridge is no overlap",
    {
      ...engine({ bridge: "lan0", bridges: ["lan0"] }),
      routes: [{ subnet: "172.17.0.0/16", device: "lan0", isDirect: true }],
    },
  ],
  ["the root directory's disk holds no images", disk({ availableBytes: 12 * GIB })],
  ["an engine with nftables knows the mark of Services", nftables(true)],
  ["a machine without a firewall of the engine is served by the proxy", proxy(true, false, 90)],
])("%s", (_, change) => {
  expect(runChecks({ ...HEALTHY, ...change }).filter(({ status }) => status !== "ok")).toEqual([]);
});

test("manifests count pods and workloads", () => {
  const pod = { metadata: {}, spec: { containers: [] } };
  const found = runChecks({ ...HEALTHY, ...manifests({ pods: 1, specs: [pod, pod, pod] as never }) });
  expect(found.find(({ name }) => name === "manifests")?.message).toBe("1 pods, 2 workloads in /pods");
});
