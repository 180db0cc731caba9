import { describe, expect, test } from "bun:test";
import type { ContainerStatus, PodCondition, PodStatus } from "../../../src/base/api/pod.ts";
import {
  computeStatusPatch,
  findStepBack,
  mergePodStatus,
  withObservedGeneration,
} from "../../../src/cluster/pods/status-patch.ts";

const EARLIER = "2026-11-22T10:00:00Z";
const NOW = "2026-11-22T11:00:00Z";
const LATER = "2026-11-22T12:00:00Z";

const condition = (type: string, status: "True" | "False", more: Partial<PodCondition> = {}): PodCondition => ({
  type,
  status,
  lastTransitionTime: NOW,
  ...more,
});
const container = (name: string, state: ContainerStatus["state"]): ContainerStatus => ({
  name,
  state,
  lastState: {},
  ready: false,
  restartCount: 0,
  image: "i",
  imageID: "",
});
const exited = (exitCode: number) => ({ terminated: { exitCode } });
const running = { running: { startedAt: NOW } };

describe("the status to report", () => {
  test("conditions of others stay, and times move only with the status", () => {
    const api: PodStatus = {
      startTime: EARLIER,
      qosClass: "Burstable",
      conditions: [
        condition("Ready", "True", { lastTransitionTime: EARLIER }),
        condition("ContainersReady", "True", { lastTransitionTime: EARLIER }),
        condition("example.com/gate", "True", { lastTransitionTime: EARLIER }),
      ],
    };
    const ours: PodStatus = {
      phase: "Running",
      startTime: NOW,
      conditions: [condition("Ready", "False"), condition("ContainersReady", "True")],
    };
    expect(mergePodStatus(ours, api, [], LATER)).toEqual({
      phase: "Running",
      startTime: EARLIER,
      qosClass: "Burstable",
      conditions: [
        condition("Ready", "False"),
        condition("ContainersReady", "True", { lastTransitionTime: EARLIER }),
        condition("example.com/gate", "True", { lastTransitionTime: EARLIER }),
      ],
    });
  });

  test("a condition that this node alone sets is removed when it no longer holds", () => {
    const pending = condition("PodResizePending", "True");
    const api: PodStatus = { conditions: [condition("Ready", "True"), pending, condition("example.com/gate", "True")] };
    const ours: PodStatus = { conditions: [condition("Ready", "True")] };
    const wanted = mergePodStatus(ours, api, [], NOW);
    expect(wanted.conditions?.map(({ type }) => type)).toEqual(["Ready", "example.com/gate"]);
    expect(computeStatusPatch("u", api, wanted)?.status).toEqual({
      conditions: [{ type: "PodResizePending", $patch: "delete" }],
    });
    expect(computeStatusPatch("u", { conditions: wanted.conditions! }, wanted)).toBeUndefined();
  });

  test("the generation of the spec is reported where the API server counts them", () => {
    const ours = { conditions: [condition("Ready", "True")] };
    expect(withObservedGeneration(ours, 3)).toEqual({
      observedGeneration: 3,
      conditions: [condition("Ready", "True", { observedGeneration: 3 })],
    });
    expect(withObservedGeneration(ours, undefined)).toBe(ours);
  });

  test.each([
    { when: "a gate without a condition", known: [], want: "False", reason: "ReadinessGatesNotReady" },
    { when: "a gate that is False", known: [condition("g", "False")], want: "False", reason: "ReadinessGatesNotReady" },
    { when: "a gate that is True", known: [condition("g", "True")], want: "True", reason: undefined },
  ])("$when makes Ready $want", ({ known, want, reason }) => {
    // The worker knows no gates: it reports what no condition is there for.
    const ours = { conditions: [condition("Ready", "False", { reason: "ReadinessGatesNotReady", message: "m" })] };
    const ready = mergePodStatus(ours, { conditions: [...known] }, [{ conditionType: "g" }], LATER).conditions?.[0];
    expect(ready).toMatchObject({ type: "Ready", status: want });
    expect(ready?.reason).toBe(reason);
    // It changes with the gate, not with the containers.
    expect(ready?.lastTransitionTime).toBe(want === "True" ? LATER : NOW);
  });

  test("containers that are not ready count before the gates", () => {
    const ours = { conditions: [condition("Ready", "False", { reason: "ContainersNotReady" })] };
    const api = { conditions: [condition("g", "True")] };
    expect(mergePodStatus(ours, api, [{ conditionType: "g" }], LATER).conditions?.[0]?.reason).toBe(
      "ContainersNotReady",
    );
  });
});

describe("the patch", () => {
  const before: PodStatus = {
    phase: "Pending",
    message: "waits",
    podIPs: [{ ip: "10.0.0.1" }],
    conditions: [condition("Ready", "False", { reason: "ContainersNotReady", message: "m" }), condition("g", "True")],
    containerStatuses: [container("a", {})],
  };

  test("an image that has several names keeps the one that was reported, for the same container", () => {
    const status = (image: string, containerID: string): PodStatus => ({
      phase: "Running",
      containerStatuses: [{ ...container("a", running), image, containerID }],
    });
    const merged = (ours: PodStatus, api: PodStatus) =>
      mergePodStatus(ours, api, [], NOW).containerStatuses?.[0]?.image;
    expect(merged(status("busybox:1.35", "docker://1"), status("busybox:1.29", "docker://1"))).toBe("busybox:1.29");
    expect(merged(status("busybox:1.35", "docker://2"), status("busybox:1.29", "docker://1"))).toBe("busybox:1.35");
  });

  test("is nothing when nothing differs, null and absent are the same", () => {
    const conditions = [{ ...condition("Ready", "False"), lastProbeTime: null } as unknown as PodCondition];
    const api: PodStatus = { phase: "Running", conditions: [condition("Ready", "False")] };
    expect(computeStatusPatch("u", api, { phase: "Running", conditions })).toBeUndefined();
  });

  test("has what differs, deletes what no longer holds and leaves the rest", () => {
    const wanted: PodStatus = {
      phase: "Running",
      podIPs: [{ ip: "10.0.0.2" }],
      conditions: [condition("Ready", "True"), condition("g", "True")],
      containerStatuses: [container("a", running)],
    };
    expect(computeStatusPatch("u", before, wanted)).toEqual({
      metadata: { uid: "u" },
      status: {
        phase: "Running",
        message: null,
        podIPs: [{ ip: "10.0.0.2" }, { $patch: "replace" }],
        conditions: [{ ...condition("Ready", "True"), reason: null, message: null }],
        containerStatuses: [container("a", running)],
      },
    } as never);
  });

  test("a first list of addresses has no directive: old servers would keep it", () => {
    const patch = computeStatusPatch("u", {}, { podIPs: [{ ip: "10.0.0.2" }] });
    expect(patch?.status).toEqual({ podIPs: [{ ip: "10.0.0.2" }] });
  });
});

describe("a status never goes back", () => {
  test.each([
    { from: "Failed", to: "Running", back: true },
    { from: "Succeeded", to: "Failed", back: true },
    { from: "Failed", to: "Failed", back: false },
    { from: "Running", to: "Pending", back: false },
    { from: "Running", to: "Succeeded", back: false },
  ] as const)("$from to $to: $back", ({ from, to, back }) => {
    expect(findStepBack({ phase: from }, { phase: to }) !== undefined).toBe(back);
  });

  test.each([
    { policy: "Always", exitCode: 0, back: false },
    { policy: "OnFailure", exitCode: 1, back: false },
    { policy: "OnFailure", exitCode: 0, back: true },
    { policy: "Never", exitCode: 1, back: true },
  ])("a container that exited with $exitCode runs again under $policy: $back", ({ policy, exitCode, back }) => {
    const api = { containerStatuses: [container("a", exited(exitCode))] };
    const wanted = { containerStatuses: [container("a", running)] };
    expect(findStepBack(api, wanted, policy) !== undefined).toBe(back);
  });
});
