import { describe, expect, test } from "bun:test";
import type { SandboxRequest } from "../../src/base/model/container-engine.ts";
import { toSandboxCreateBody } from "../../src/docker/create-bodies.ts";
import { aPod, aSandboxRequest, ENGINE, type Json, OWNER } from "./mapping-requests.ts";

const bodyOf = (pod: Parameters<typeof aPod>[0], over: Partial<SandboxRequest> = {}) =>
  toSandboxCreateBody(aSandboxRequest(aPod(pod), over), OWNER) as unknown as Json & { HostConfig: Json };

// The recorded sandboxes (create-bodies-oracle.test.ts) cover the fields that Kubernetes 1.20 has.

test("a pod without settings", () => {
  expect(bodyOf({})).toEqual({
    Image: "pause:1",
    Hostname: "web-node1",
    ExposedPorts: {},
    Labels: expect.any(Object),
    HostConfig: {
      NetworkMode: "default",
      IpcMode: "shareable",
      PortBindings: {},
      SecurityOpt: ["no-new-privileges"],
      CgroupParent: "/kubepods/besteffort/podu1",
      CpuShares: 2,
      OomScoreAdj: -998,
      LogConfig: { Type: "json-file", Config: { "max-size": "10485760", "max-file": "5" } },
    },
  });
});

test.each<[string, Json, Json]>([
  ["hostIPC", { hostIPC: true }, { IpcMode: "host" }],
  [
    "sysctls with slashes",
    { securityContext: { sysctls: [{ name: "net/ipv4/conf/eth0.1/arp_filter", value: "1" }] } },
    { Sysctls: { "net.ipv4.conf.eth0/1.arp_filter": "1" } },
  ],
  [
    "seLinuxOptions",
    { securityContext: { seLinuxOptions: { user: "u", role: "r", type: "t", level: "s0:c1" } } },
    { SecurityOpt: ["label=user:u", "label=role:r", "label=type:t", "label=level:s0:c1", "no-new-privileges"] },
  ],
])("field of the pod → HostConfig of its sandbox: %s", (_, spec, want) => {
  expect(bodyOf({ spec }).HostConfig).toMatchObject(want);
});

test("a host name that the kernel cannot take is refused", () => {
  const spec = { hostname: "h".repeat(60), subdomain: "ss", setHostnameAsFQDN: true };
  expect(() => bodyOf({ spec })).toThrow(/is too long \(64 characters is the max/);
});

describe("DNS", () => {
  test("resolv.conf is given to the engine", () => {
    const dns = { nameservers: ["10.0.0.10"], searches: ["a.example"], options: ["ndots:5"] };
    expect(bodyOf({}, { dns }).HostConfig).toMatchObject({
      Dns: ["10.0.0.10"],
      DnsSearch: ["a.example"],
      DnsOptions: ["ndots:5"],
    });
  });

  test("without a search domain a dot is sent, or the engine takes those of the node", () => {
    const dns = { nameservers: ["10.0.0.10"], searches: [], options: [] };
    expect(bodyOf({}, { dns }).HostConfig.DnsSearch).toEqual(["."]);
  });
});

test("host ports of sidecars are published, not those of init containers", () => {
  const initContainers = [
    { name: "side", image: "i", restartPolicy: "Always", ports: [{ containerPort: 1, hostPort: 1001 }] },
    { name: "init", image: "i", ports: [{ containerPort: 2, hostPort: 1002 }] },
  ];
  expect(bodyOf({ spec: { initContainers } }).ExposedPorts).toEqual({ "1/tcp": {} });
});

describe("Docker network by annotation", () => {
  const networkOf = (annotations: Json, spec: Json = {}) => {
    const body = bodyOf({ metadata: { annotations }, spec });
    return { mode: body.HostConfig.NetworkMode, config: body.NetworkingConfig };
  };

  test("a network of the user's, where other pods reach it by name", () => {
    expect(networkOf({ "kubelet-ts.io/network": "lan" }, { hostname: "hh" })).toEqual({
      mode: "lan",
      config: { EndpointsConfig: { lan: { Aliases: ["web-node1", "web", "hh"] } } },
    });
  });

  test("several, the first with its fixed address", () => {
    const names = ["web-node1", "web"];
    const annotations = { "kubelet-ts.io/network": "front,back,front", "kubelet-ts.io/ip": "10.1.2.3" };
    expect(networkOf(annotations)).toEqual({
      mode: "front",
      config: {
        EndpointsConfig: {
          front: { Aliases: names, IPAMConfig: { IPv4Address: "10.1.2.3" } },
          back: { Aliases: names },
        },
      },
    });
  });

  test("with more names", () => {
    const annotations = { "kubelet-ts.io/network": "lan", "kubelet-ts.io/network-aliases": "my_db,db.lan,web" };
    expect(networkOf(annotations).config).toEqual({
      EndpointsConfig: { lan: { Aliases: ["web-node1", "web", "my_db", "db.lan"] } },
    });
  });

  test("with a fixed address", () => {
    expect(networkOf({ "kubelet-ts.io/network": "lan", "kubelet-ts.io/ip": "10.1.2.3" }).config).toMatchObject({
      EndpointsConfig: { lan: { IPAMConfig: { IPv4Address: "10.1.2.3" } } },
    });
  });

  test.each(["bridge", "none"])("%s has no names of its own", (mode) => {
    expect(networkOf({ "kubelet-ts.io/network": mode })).toEqual({ mode, config: undefined });
  });

  test("hostNetwork wins", () => {
    expect(networkOf({ "kubelet-ts.io/network": "lan" }, { hostNetwork: true })).toEqual({
      mode: "host",
      config: undefined,
    });
  });
});

const remapping = { ...ENGINE, securityOptions: ["name=userns"] };

test.each<[string, Json, SandboxRequest["engine"], string | undefined]>([
  ["an engine that does not remap has nothing to choose", { hostUsers: true }, ENGINE, undefined],
  ["a remapping engine remaps", {}, remapping, undefined],
  ["hostUsers: true takes the pod out", { hostUsers: true }, remapping, "host"],
  ["hostUsers: false leaves it in", { hostUsers: false }, remapping, undefined],
  ["host namespaces can only be shared outside", { hostNetwork: true }, remapping, "host"],
])("user namespaces: %s", (_, spec, engine, want) => {
  expect(bodyOf({ spec }, { engine }).HostConfig.UsernsMode).toBe(want);
});

test("under systemd the cgroup parent is the bare name of a slice", () => {
  const body = bodyOf({ metadata: { uid: "a-b" } }, { engine: { ...ENGINE, cgroupDriver: "systemd" } });
  expect(body.HostConfig.CgroupParent).toBe("kubepods-besteffort-poda_b.slice");
});

test("on a kernel that forbids negative OOM scores pause gets 0", () => {
  const body = bodyOf({}, { engine: { ...ENGINE, negativeOomScores: false } });
  expect(body.HostConfig.OomScoreAdj).toBe(0);
});
