import { describe, expect, test } from "bun:test";
import type { ContainerRequest, Mount } from "../../src/base/model/container-engine.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { toContainerCreateBody } from "../../src/docker/create-bodies.ts";
import { aContainerRequest, aPod, ENGINE, type Json, OWNER } from "./mapping-requests.ts";

const bodyOf = (pod: Parameters<typeof aPod>[0], over: Partial<ContainerRequest> = {}) =>
  toContainerCreateBody(aContainerRequest(aPod(pod), over), OWNER) as unknown as Json & { HostConfig: Json };

// The recorded containers (create-bodies-oracle.test.ts) cover the fields that Kubernetes 1.20 has.

test("a container without settings", () => {
  expect(bodyOf({})).toEqual({
    Image: "sha256:image",
    User: "0",
    Env: [],
    Healthcheck: { Test: ["NONE"] },
    Labels: expect.any(Object),
    HostConfig: {
      NetworkMode: "container:sandbox",
      IpcMode: "container:sandbox",
      // As dockershim: an empty list here, and no SecurityOpt at all.
      Devices: [],
      MaskedPaths: expect.any(Array),
      ReadonlyPaths: expect.any(Array),
      CpuShares: 2,
      CpuPeriod: 100_000,
      CpuQuota: 0,
      Memory: 0,
      MemorySwap: 0,
      OomScoreAdj: 1000,
      CgroupParent: "/kubepods/besteffort/podu1",
      LogConfig: { Type: "json-file", Config: { "max-size": "10485760", "max-file": "5" } },
      RestartPolicy: { Name: "no" },
    },
  });
});

test.each<[string, Json, Json]>([
  ["capabilities", { securityContext: { capabilities: { drop: ["ALL"] } } }, { CapDrop: ["ALL"] }],
  ["procMount: Unmasked", { securityContext: { procMount: "Unmasked" } }, { MaskedPaths: [], ReadonlyPaths: [] }],
  [
    "resources",
    { resources: { requests: { cpu: "250m", memory: "64Mi" }, limits: { cpu: "1", memory: "128Mi" } } },
    { CpuShares: 256, CpuQuota: 100_000, Memory: 134_217_728, MemorySwap: 134_217_728, OomScoreAdj: 998 },
  ],
  [
    "resources: nvidia.com/gpu",
    { resources: { limits: { "nvidia.com/gpu": "2" } } },
    { DeviceRequests: [{ Driver: "", Count: 2, Capabilities: [["gpu"]] }] },
  ],
])("field of the container → HostConfig: %s", (_, container, want) => {
  expect(bodyOf({ container }).HostConfig).toMatchObject(want);
});

describe("setting → HostConfig", () => {
  test.each<[string, Partial<ContainerRequest["settings"]>, Json]>([
    ["seccompDefault: false", { seccompDefault: false }, { SecurityOpt: ["seccomp=unconfined"] }],
    ["podPidsLimit", { podPidsLimit: 100 }, { PidsLimit: 100 }],
    ["cpuCfsQuota: false", { cpuCfsQuota: false }, { CpuPeriod: 0, CpuQuota: 0 }],
    ["cpuCfsQuotaPeriodMs", { cpuCfsQuotaPeriodMs: 10 }, { CpuPeriod: 10_000, CpuQuota: 5000 }],
    ["cgroupRoot", { cgroupRoot: "/mine" }, { CgroupParent: "/mine/kubepods/burstable/podu1" }],
    ["cgroupsPerQos: false", { cgroupsPerQos: false, cgroupRoot: "/mine" }, { CgroupParent: "/mine" }],
    [
      "log rotation",
      { containerLogMaxSizeBytes: 1000, containerLogMaxFiles: 2 },
      { LogConfig: { Type: "json-file", Config: { "max-size": "1000", "max-file": "2" } } },
    ],
  ])("%s", (_, over, want) => {
    const settings = { ...DEFAULT_KUBELET_OPTIONS, ...over };
    const body = bodyOf({ container: { resources: { limits: { cpu: "500m" } } } }, { settings });
    expect(body.HostConfig).toMatchObject(want);
  });

  test("cgroupsPerQos: false without a root leaves the engine's parent", () => {
    const body = bodyOf({}, { settings: { ...DEFAULT_KUBELET_OPTIONS, cgroupsPerQos: false } });
    expect(body.HostConfig).not.toHaveProperty("CgroupParent");
  });
});

test("log options, limits of processes and labels by annotation; labels of kubelet-ts itself cannot be given", () => {
  const annotations = {
    "kubelet-ts.io/ulimits": "nofile=1024:65536,memlock=-1",
    "kubelet-ts.io/log-options": "max-size=1m",
    "kubelet-ts.io/container-labels": "traefik.enable=true\ntraefik.rule=Host(`a`) && Path(`b=c`)\n",
  };
  const { HostConfig, Labels } = bodyOf({ metadata: { annotations } });
  expect(HostConfig.Ulimits).toEqual([
    { Name: "nofile", Soft: 1024, Hard: 65536 },
    { Name: "memlock", Soft: -1, Hard: -1 },
  ]);
  expect(HostConfig.LogConfig).toEqual({ Type: "json-file", Config: { "max-size": "1m", "max-file": "5" } });
  expect(Labels).toMatchObject({ "traefik.enable": "true", "traefik.rule": "Host(`a`) && Path(`b=c`)" });
  const forged = { "kubelet-ts.io/container-labels": "a=b\nkubelet-ts.io/node=other" };
  expect(bodyOf({ metadata: { annotations: forged } }).Labels).not.toHaveProperty("a");
});

test("a signal of its own stops it", () => {
  expect(bodyOf({ container: { lifecycle: { stopSignal: "SIGUSR1" } } })).toMatchObject({ StopSignal: "SIGUSR1" });
});

test.each([
  ["true", {}, true],
  ["false", {}, undefined],
  ["true", { shareProcessNamespace: true }, undefined],
])("an init process by annotation: %s, %p", (value, spec, Init) => {
  const body = bodyOf({ metadata: { annotations: { "kubelet-ts.io/init": value } }, spec });
  expect(body.HostConfig.Init).toBe(Init as boolean);
});

const bind = (over: Partial<Mount> = {}): Mount => ({
  type: "bind",
  source: "/s",
  target: "/t",
  readOnly: false,
  ...over,
});

describe("mounts", () => {
  const slave = { propagation: "HostToContainer" } as const;
  const claim = { type: "volume", source: "claim" } as const;
  const ifPossible = { readOnly: true, recursiveReadOnly: "IfPossible" } as const;
  test.each<[string, Mount, string]>([
    ["files of the pod's own, without SELinux", bind({ relabel: true }), "/s:/t"],
    ["a relative mountPath", bind({ target: "data" }), "/s:/data"],
    ["a named volume", bind(claim), "claim:/t:nocopy"],
    ["a named volume, read-only", bind({ ...claim, readOnly: true }), "claim:/t:ro,nocopy"],
    ["recursiveReadOnly IfPossible is what the engine does anyway", bind(ifPossible), "/s:/t:ro"],
  ])("%s", (_, mount, want) => {
    expect(bodyOf({}, { mounts: [mount] }).HostConfig.Binds).toEqual([want]);
  });

  test.each([
    ["v", "claim:/t"],
    ["a,v", "claim:/t"],
    ["a", "claim:/t:nocopy"],
  ])("an empty volume of kubelet-ts.io/fill-volumes gets the files of the image: %s", (names, want) => {
    const metadata = { annotations: { "kubelet-ts.io/fill-volumes": names } };
    const container = { volumeMounts: [{ name: "v", mountPath: "t" }] };
    expect(bodyOf({ metadata, container }, { mounts: [bind(claim)] }).HostConfig.Binds).toEqual([want]);
  });

  test("a path with a colon", () => {
    const BindOptions = { Propagation: "rslave" };
    expect(bodyOf({}, { mounts: [bind({ source: "/a:b", ...slave })] }).HostConfig.Mounts).toEqual([
      { Type: "bind", Source: "/a:b", Target: "/t", ReadOnly: false, BindOptions },
    ]);
  });

  const SELINUX = { ...ENGINE, securityOptions: [...ENGINE.securityOptions, "name=selinux"] };

  test.each<[string, Mount, string]>([
    ["a hostPath keeps its label", bind(), "/s:/t"],
    ["files of the pod's own get the pod's", bind({ relabel: true }), "/s:/t:Z"],
    ["dockershim's order of options", bind({ relabel: true, readOnly: true, ...slave }), "/s:/t:ro,Z,rslave"],
  ])("with SELinux: %s", (_, mount, want) => {
    const paths = { hostsFile: "/p/etc-hosts", terminationLogFile: "/p/log", seccompRoot: "", podLogsDir: "" };
    expect(bodyOf({}, { mounts: [mount], engine: SELINUX, paths }).HostConfig.Binds).toEqual([
      want,
      "/p/etc-hosts:/etc/hosts:Z",
      "/p/log:/dev/termination-log:Z",
    ]);
  });

  const NEW = { ...ENGINE, apiVersion: "1.48" };

  const image = { type: "image", source: "img:1" } as const;
  const ofImage = { Type: "image", Source: "img:1", Target: "/t", ReadOnly: true };
  const forced = { Propagation: "rprivate", ReadOnlyForceRecursive: true };
  test.each<[string, Mount, Json]>([
    [
      "recursiveReadOnly Enabled (1.44)",
      bind({ readOnly: true, recursiveReadOnly: "Enabled" }),
      { Type: "bind", Source: "/s", Target: "/t", ReadOnly: true, BindOptions: forced },
    ],
    [
      "subPath of a named volume (1.45)",
      bind({ ...claim, subPath: "a/b" }),
      { ...ofImage, Type: "volume", Source: "claim", ReadOnly: false, VolumeOptions: { NoCopy: true, Subpath: "a/b" } },
    ],
    ["an image (1.48)", bind(image), ofImage],
    ["image with subPath (1.48)", bind({ ...image, subPath: "etc" }), { ...ofImage, ImageOptions: { Subpath: "etc" } }],
  ])("%s, refused by an older engine", (_, mount, want) => {
    expect(bodyOf({}, { mounts: [mount], engine: NEW }).HostConfig.Mounts).toEqual([want]);
    expect(() => bodyOf({}, { mounts: [mount] })).toThrow(
      /needs an engine with API 1\.\d+ or newer, this one has 1\.41/,
    );
  });

  test("read-only leaves what is mounted below writable, also where engines make whole trees read-only (1.44)", () => {
    const readOnly = { Type: "bind", Source: "/s", Target: "/t", ReadOnly: true };
    expect(bodyOf({}, { mounts: [bind({ readOnly: true })], engine: NEW }).HostConfig).toMatchObject({
      Mounts: [{ ...readOnly, BindOptions: { ReadOnlyNonRecursive: true } }],
    });
    expect(bodyOf({}, { mounts: [bind(ifPossible)], engine: NEW }).HostConfig).toMatchObject({ Binds: ["/s:/t:ro"] });
    const ofThePod = bind({ readOnly: true, relabel: true });
    expect(bodyOf({}, { mounts: [ofThePod], engine: NEW }).HostConfig).toMatchObject({ Binds: ["/s:/t:ro"] });
  });

  test("a volume at /etc/hosts takes the place of the managed file", () => {
    const paths = { hostsFile: "/p/etc-hosts", seccompRoot: "", podLogsDir: "" };
    const mounts = [bind({ target: "/etc/hosts" })];
    expect(bodyOf({}, { mounts, paths }).HostConfig.Binds).toEqual(["/s:/etc/hosts"]);
  });
});

test("the log path label is there only with a log directory", () => {
  const labelsOf = (podLogsDir: string) =>
    bodyOf({}, { restartCount: 2, paths: { seccompRoot: "", podLogsDir } }).Labels as Json;
  expect(labelsOf("/logs")["io.kubernetes.container.logpath"]).toBe("/logs/default_web-node1_u1/c/2.log");
  expect(labelsOf("")).not.toHaveProperty(["io.kubernetes.container.logpath"]);
});

test("on a kernel that forbids negative OOM scores they become 0, others stay", () => {
  const engine = { ...ENGINE, negativeOomScores: false };
  expect(bodyOf({ spec: { priorityClassName: "system-node-critical" } }, { engine }).HostConfig.OomScoreAdj).toBe(0);
  expect(bodyOf({}, { engine }).HostConfig.OomScoreAdj).toBe(1000);
});

test("runtimeClassName is a runtime of the engine, or the pod is refused", () => {
  const spec = { runtimeClassName: "runsc" };
  expect(bodyOf({ spec }, { engine: { ...ENGINE, runtimes: ["runc", "runsc"] } }).HostConfig.Runtime).toBe("runsc");
  expect(() => bodyOf({ spec })).toThrow('spec.runtimeClassName: the engine has no runtime "runsc", only runc');
});
