import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { ContainerInspectSchema } from "../../src/docker/engine/schemas.ts";
import { toObserved } from "../../src/docker/inspect-to-snapshot.ts";
import { LABEL } from "../../src/docker/labels.ts";

const identity = {
  [LABEL.podName]: "web-node1",
  [LABEL.podNamespace]: "default",
  [LABEL.podUid]: "uid",
  [LABEL.node]: "node1",
  [LABEL.root]: "root",
};
const containerLabels = {
  ...identity,
  [LABEL.containerName]: "app",
  [LABEL.type]: "container",
  [LABEL.sandboxId]: "sandbox",
  [LABEL.containerHash]: "hash",
  [LABEL.restartCount]: "3",
};
const sandboxLabels = {
  ...identity,
  [LABEL.containerName]: "POD",
  [LABEL.type]: "podsandbox",
  [LABEL.sandboxHash]: "sandbox-hash",
  [LABEL.sandboxAttempt]: "2",
};

/** An inspect as far as it is read; `state` and `rest` over a container that runs. */
function inspect(state: object, labels: Record<string, string> = containerLabels, rest: object = {}) {
  return v.parse(ContainerInspectSchema, {
    Id: "id",
    Created: "2026-01-02T03:04:05.123456789Z",
    Name: "/k8s_app_web-node1_default_uid_3",
    Image: "sha256:image",
    State: {
      Status: "running",
      Running: true,
      Paused: false,
      OOMKilled: false,
      Dead: false,
      Pid: 42,
      ExitCode: 0,
      Error: "",
      StartedAt: "2026-01-02T03:04:06Z",
      FinishedAt: "0001-01-01T00:00:00Z",
      ...state,
    },
    Config: { Image: "sha256:image", Labels: labels },
    HostConfig: { CpuShares: 2, CpuPeriod: 100000, NetworkMode: "container:sandbox" },
    NetworkSettings: { Networks: {} },
    ...rest,
  });
}

const exited = { Status: "exited", Running: false, Pid: 0, FinishedAt: "2026-01-02T03:05:00Z" };

describe("a container", () => {
  const created = { Status: "created", Running: false, Pid: 0, StartedAt: "0001-01-01T00:00:00Z" };
  test.each<[when: string, state: object, want: object]>([
    ["runs", {}, { state: "running", pid: 42, exitCode: 0 }],
    ["is paused: it is alive", { Status: "paused", Paused: true }, { state: "running", paused: true }],
    ["ended", { ...exited, ExitCode: 3 }, { state: "exited", exitCode: 3 }],
    ["was killed for memory", { ...exited, ExitCode: 137, OOMKilled: true }, { oomKilled: true }],
    ["was never started", created, { state: "created", exitCode: 0 }],
    [
      "could not be started",
      { ...created, ExitCode: 127, Error: "no such file" },
      { state: "created", exitCode: 127, error: "no such file" },
    ],
    ...[
      "cannot join network of a non running container: 6fee",
      "can't join IPC of container 6fee: container 6fee is not running",
      "No such container: 6fee",
      'connection error: desc = "transport: Error while dialing": unavailable',
    ].map((message): [string, object, object] => [
      `never ran: ${message}`,
      { ...created, ExitCode: 128, Error: message },
      { state: "created", exitCode: 0 },
    ]),
    ["is being removed", { ...exited, Status: "removing", Dead: true }, { state: "exited" }],
  ])("that %s", (_when, state, want) => {
    const observed = toObserved(inspect(state));
    expect(observed?.kind).toBe("container");
    expect(observed?.kind === "container" && observed.container).toMatchObject(want as never);
  });

  test("has its identity, restart count, hash and name", () => {
    expect(toObserved(inspect({}))).toMatchObject({
      pod: { uid: "uid", name: "web-node1", namespace: "default" },
      container: {
        name: "app",
        sandboxId: "sandbox",
        hash: "hash",
        restartCount: 3,
        dockerName: "k8s_app_web-node1_default_uid_3",
      },
    });
  });

  test.each([
    ["made by hand", { [LABEL.node]: "node1" }],
    ["without a type", { ...containerLabels, [LABEL.type]: "" }],
    ["without a pod", { ...containerLabels, [LABEL.podUid]: "" }],
  ])("%s has no snapshot", (_, labels) => {
    expect(toObserved(inspect({}, labels))).toBeUndefined();
  });

  test("has its back-off; a label that cannot be read is as if it were not there", () => {
    const labels = { ...containerLabels, [LABEL.restartCount]: "many", [LABEL.backOff]: "40000" };
    expect(toObserved(inspect({}, labels))).toMatchObject({ container: { restartCount: 0, backOffMs: 40_000 } });
  });
});

describe("a sandbox", () => {
  const bridge = { IPAddress: "172.17.0.2", GlobalIPv6Address: "fd00::2" };

  test("that runs is ready, with its addresses, IPv4 first", () => {
    const rest = { NetworkSettings: { Networks: { bridge } }, HostConfig: { NetworkMode: "default" } };
    expect(toObserved(inspect({}, sandboxLabels, rest))).toMatchObject({
      kind: "sandbox",
      sandbox: { state: "ready", attempt: 2, hash: "sandbox-hash", ips: ["172.17.0.2", "fd00::2"], hostNetwork: false },
    });
  });

  test("as API 1.52 shows it: no addresses besides those of its networks", () => {
    const rest = {
      NetworkSettings: {
        SandboxID: "s",
        SandboxKey: "/var/run/docker/netns/s",
        Ports: {},
        Networks: { pods: { IPAddress: "10.1.0.7", IPPrefixLen: 24, Gateway: "10.1.0.1", DNSNames: ["web"] } },
      },
      HostConfig: { NetworkMode: "pods" },
    };
    expect(toObserved(inspect({}, sandboxLabels, rest))).toMatchObject({ sandbox: { ips: ["10.1.0.7"] } });
  });

  test("in several networks has the addresses of the first", () => {
    const Networks = { back: { IPAddress: "10.2.0.7" }, front: { IPAddress: "10.1.0.7" } };
    const rest = { NetworkSettings: { Networks }, HostConfig: { NetworkMode: "front" } };
    expect(toObserved(inspect({}, sandboxLabels, rest))).toMatchObject({ sandbox: { ips: ["10.1.0.7"] } });
  });

  test("on the host's network has none of its own", () => {
    const rest = { NetworkSettings: { Networks: { host: { IPAddress: "" } } }, HostConfig: { NetworkMode: "host" } };
    expect(toObserved(inspect({}, sandboxLabels, rest))).toMatchObject({ sandbox: { hostNetwork: true, ips: [] } });
  });

  test("that ended, or was disconnected from its networks, is not ready and has no addresses", () => {
    const rest = { NetworkSettings: { Networks: { bridge } } };
    const unusable = { sandbox: { state: "notready", ips: [] } };
    expect(toObserved(inspect(exited, sandboxLabels, rest))).toMatchObject(unusable);
    // Runs, after `docker network disconnect`.
    expect(toObserved(inspect({}, sandboxLabels))).toMatchObject(unusable);
  });
});
