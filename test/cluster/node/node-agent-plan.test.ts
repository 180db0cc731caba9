import { describe, expect, test } from "bun:test";
import type { Condition } from "../../../src/base/api/meta.ts";
import {
  type ApiNode,
  computeAdoption,
  computeNodeStatusPatch,
  conditionEvents,
  findReboot,
  isStatusChanged,
  type RegistrationSettings,
  toNewNode,
  withExtendedResources,
} from "../../../src/cluster/node/node-agent.ts";
import { registrationSettings as settings } from "./registration-settings.ts";

const ATTACH = "volumes.kubernetes.io/controller-managed-attach-detach";
const CLOUD_TAINT = { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" };

const node = (labels: Record<string, string> = {}): ApiNode => ({
  metadata: { name: "n", labels },
  spec: { taints: [{ key: "shown", effect: "NoSchedule" }] },
});
const condition = (status: string, changes: Partial<Condition> = {}): Condition => ({
  type: "Ready",
  status,
  lastHeartbeatTime: "2026-11-22T11:00:00Z",
  lastTransitionTime: "2026-11-22T11:00:00Z",
  reason: "r",
  message: "m",
  ...changes,
});

describe("a new Node", () => {
  test.each([
    { flag: "nothing", set: {}, want: {} },
    {
      flag: "--register-with-taints",
      set: { nodeTaints: [{ key: "k", value: "", effect: "NoExecute" }] },
      want: { taints: [{ key: "k", effect: "NoExecute" }] },
    },
    { flag: "--cloud-provider=external", set: { cloudProvider: "external" }, want: { taints: [CLOUD_TAINT] } },
    { flag: "--provider-id", set: { providerId: "aws:///i-1" }, want: { providerID: "aws:///i-1" } },
    {
      flag: "--register-schedulable=false",
      set: { registerSchedulable: false },
      want: { taints: [{ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" }], unschedulable: true },
    },
  ] as const)("$flag", ({ set, want }) => {
    expect(toNewNode(node(), settings(set as Partial<RegistrationSettings>)).spec).toEqual(want as never);
  });

  test("--enable-controller-attach-detach and --node-ip are annotations", () => {
    const made = toNewNode(
      node(),
      settings({ enableControllerAttachDetach: true, cloudProvider: "external", nodeIp: "10.0.0.1" }),
    );
    expect(made.metadata.annotations).toEqual({ [ATTACH]: "true", "alpha.kubernetes.io/provided-node-ip": "10.0.0.1" });
  });
});

describe("a Node that exists", () => {
  const existing = (changes: Partial<ApiNode["metadata"]> = {}): ApiNode => ({
    metadata: { name: "n", labels: { "kubernetes.io/os": "linux", own: "kept" }, ...changes },
    spec: {},
  });

  test("nothing differs: no patch", () => {
    expect(computeAdoption(existing(), node({ "kubernetes.io/os": "linux" }), settings())).toBeUndefined();
  });

  test("default labels are set again, others are the administrator's", () => {
    const wanted = node({ "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", own: "option" });
    expect(computeAdoption(existing(), wanted, settings())).toEqual({
      metadata: { labels: { "kubernetes.io/arch": "arm64" } },
    });
  });

  test("an annotation that no longer holds is removed", () => {
    const before = existing({ annotations: { [ATTACH]: "true", other: "kept" } });
    expect(computeAdoption(before, node(), settings())).toEqual({ metadata: { annotations: { [ATTACH]: null } } });
  });
});

describe("the status of the Node", () => {
  test.each([
    { what: "another heartbeat", next: { lastHeartbeatTime: "2026-11-22T12:00:00Z" }, want: false },
    { what: "another message", next: { message: "x" }, want: true },
    { what: "another status", next: { status: "False" }, want: true },
  ])("$what is a change: $want", ({ next, want }) => {
    const before = { conditions: [condition("True")], nodeInfo: { bootID: "a" } };
    const after = { conditions: [condition("True", next)], nodeInfo: { bootID: "a" } };
    expect(isStatusChanged(before, after)).toBe(want);
  });

  test("conditions of others count for nothing, fields that the server drops neither", () => {
    const before = { conditions: [condition("True"), condition("True", { type: "NetworkUnavailable" })] };
    expect(isStatusChanged(before, { conditions: [condition("True")], features: {} })).toBe(false);
  });

  test("an extended resource in the capacity of the Node is allocatable, and no change once it is", () => {
    const next = { capacity: { cpu: "2" }, allocatable: { cpu: "1" }, conditions: [condition("True")] };
    const before = { ...next, capacity: { cpu: "4", "example.com/dongle": "3" } };
    const reported = withExtendedResources(before, next);
    expect(reported).toMatchObject({
      capacity: { cpu: "2", "example.com/dongle": "3" },
      allocatable: { cpu: "1", "example.com/dongle": "3" },
    });
    expect(isStatusChanged(before, reported)).toBe(true);
    expect(isStatusChanged(reported, withExtendedResources(reported, next))).toBe(false);
    expect(withExtendedResources(undefined, next)).toBe(next);
  });

  test("the patch has what differs, and keeps the time of a transition that did not happen", () => {
    const before = {
      conditions: [condition("True", { lastTransitionTime: "2026-11-01T00:00:00Z" })],
      addresses: [{ type: "InternalIP", address: "10.0.0.1" }],
      capacity: { cpu: "2" },
    };
    const next = {
      conditions: [condition("True")],
      addresses: [{ type: "InternalIP", address: "10.0.0.2" }],
      capacity: { cpu: "2" },
    };
    expect(computeNodeStatusPatch(before, next)).toEqual({
      status: {
        addresses: [{ type: "InternalIP", address: "10.0.0.2" }, { $patch: "replace" }],
        conditions: [condition("True", { lastTransitionTime: "2026-11-01T00:00:00Z" })],
      },
    });
  });

  test.each([
    { before: "False", next: "True", want: ["NodeReady"] },
    { before: "True", next: "False", want: ["NodeNotReady"] },
    { before: "True", next: "True", want: [] },
  ])("Ready from $before to $next is the event $want", ({ before, next, want }) => {
    expect(conditionEvents([condition(before)], [condition(next)])).toEqual([...want]);
  });

  test("a kubelet that registers reports its pressures, and Ready with its first transition", () => {
    const pressure = condition("False", { type: "MemoryPressure" });
    expect(conditionEvents(undefined, [pressure, condition("True")])).toEqual(["NodeHasSufficientMemory"]);
  });

  test.each([
    { before: "a", next: "a", want: undefined },
    { before: "", next: "a", want: undefined },
    { before: "a", next: "b", want: "Node n has been rebooted, boot id: b" },
  ])("boot id $before, then $next: $want", ({ before, next, want }) => {
    expect(findReboot("n", { nodeInfo: { bootID: before } }, { nodeInfo: { bootID: next } })).toBe(want as never);
  });
});
