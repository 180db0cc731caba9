import { describe, expect, test } from "bun:test";
import type { Pod, PodStatus } from "../../src/base/api/pod.ts";
import type { DesiredPod } from "../../src/base/model/desired-state.ts";
import type { BlockedPod } from "../../src/kubelet/blocked-pods.ts";
import { PodStatusStore, type PublishedWorker } from "../../src/kubelet/pod-status-store.ts";
import { aPod } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";

const podOf = (name: string) => aPod({}, { name, namespace: "default", uid: name });
const statusOf = (podIP: string): PodStatus => ({ phase: "Running", podIP });

/** A store of two desired pods and one that terminates, each with a worker. */
function aStore() {
  const store = new PodStatusStore(new FakeClock());
  const desired: DesiredPod[] = ["a", "c"].map((name) => ({
    pod: podOf(name),
    source: "file",
    origin: "test",
    revision: "1",
  }));
  const workers = new Map<string, PublishedWorker>();
  const blocked = new Map<string, BlockedPod>();
  const pods = new Map(["a", "b", "c", "d"].map((name) => [name, podOf(name)]));
  for (const one of desired) pods.set(one.pod.metadata.uid!, one.pod);
  const deletion = { timestamp: new Date("2026-01-01T00:00:00Z"), gracePeriodSeconds: 30 };
  const setStatus = (name: string, podIP: string) =>
    workers.set(name, {
      status: statusOf(podIP),
      revision: { pod: pods.get(name)! },
      snapshot: { containers: [] },
      deletion: name === "b" ? deletion : undefined,
    } as never);
  for (const name of ["a", "b", "c"]) setStatus(name, "10.0.0.1");
  store.noteSeen(desired, () => true);
  const list = () => store.list(desired, (uid) => blocked.get(uid), workers);
  return { store, desired, workers, blocked, setStatus, list };
}

const shown = (pods: readonly Pod[]) => pods.map(({ metadata, status }) => `${metadata.name} ${status?.podIP}`);

describe("a status that changes", () => {
  test("makes this pod a new object, at its place, and leaves the others as they are", () => {
    const { store, setStatus, list } = aStore();
    const before = list();
    expect(shown(before)).toEqual(["a 10.0.0.1", "b 10.0.0.1", "c 10.0.0.1"]);
    setStatus("c", "10.0.0.9");
    store.changed("c");
    const after = list();
    expect(shown(after)).toEqual(["a 10.0.0.1", "b 10.0.0.1", "c 10.0.0.9"]);
    expect(after[0]).toBe(before[0]!);
    expect(after[1]).toBe(before[1]!);
    expect(shown(before)).toEqual(["a 10.0.0.1", "b 10.0.0.1", "c 10.0.0.1"]);
    expect(list()).toBe(after);
    store.changed();
    expect(list()).toBe(after);
  });

  test("of a pod that terminates keeps its deletion", () => {
    const { store, setStatus, list } = aStore();
    const { metadata } = list()[1]!;
    expect(metadata.deletionGracePeriodSeconds).toBe(30);
    setStatus("b", "10.0.0.9");
    store.changed("b");
    expect(shown(list())[1]).toBe("b 10.0.0.9");
    expect(list()[1]!.metadata).toEqual(metadata);
  });

  test("of a pod that is refused shows the refusal", () => {
    const { store, blocked, setStatus, list } = aStore();
    list();
    blocked.set("a", { rejection: { reason: "OutOfcpu", message: "no" }, since: new Date(0) });
    setStatus("a", "10.0.0.9");
    store.changed("a");
    const [refused] = list();
    expect(refused!.status).toMatchObject({ phase: "Failed", reason: "OutOfcpu" });
    // A change of another pod makes no new version of this one.
    setStatus("c", "10.0.0.9");
    store.changed("c");
    expect(list()[0]).toBe(refused!);
  });

  test("of a pod that was not listed yet lists all again", () => {
    const { store, desired, setStatus, list } = aStore();
    list();
    desired.push({ ...desired[0]!, pod: podOf("d") });
    setStatus("d", "10.0.0.4");
    store.changed("d");
    expect(shown(list()).at(-1)).toBe("d 10.0.0.4");
  });
});

test("listeners get the pod that changed alone, and undefined when anything may have", () => {
  const { store } = aStore();
  const told: (string | undefined)[] = [];
  const stop = store.changes.add((uid) => told.push(uid));
  store.changed("a");
  store.changed();
  stop();
  store.changed("a");
  expect(told).toEqual(["a", undefined]);
});
