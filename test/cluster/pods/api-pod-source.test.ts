import { describe, expect, test } from "bun:test";
import type { ApiPod } from "../../../src/cluster/pods/api-pod-source.ts";
import { ApiPodSource } from "../../../src/cluster/pods/api-pod-source.ts";
import type { ObjectReference } from "../../../src/plan/object-references.ts";
import type { Checkpoint } from "../../../src/sources/checkpoint-store.ts";
import type { SourceSet } from "../../../src/sources/source-set.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

const aPod = (name: string, more: { metadata?: object; status?: object; spec?: object } = {}): ApiPod =>
  ({
    metadata: { name, namespace: "default", uid: `uid-${name}`, ...more.metadata },
    spec: { nodeName: "n", containers: [{ name: "c", image: "busybox:1.35" }], ...more.spec },
    ...(more.status && { status: more.status }),
  }) as ApiPod;

/** A source on a clock that stands still. @param isSettled whether an object was asked for */
function aSource(
  isSettled: (reference: ObjectReference) => boolean = () => true,
  kept?: Checkpoint,
  { clock = new FakeClock(), onPublish = () => {} } = {},
) {
  const sets: SourceSet[] = [];
  const source = new ApiPodSource({
    server: "https://api",
    clock,
    logger: new RecordingLogger(),
    objects: { setReferences: onPublish, isSettled, configMaps: () => [], secrets: () => [], restore: () => {} },
    claims: { setPods: () => {}, isSettled: () => true, resolve: (desired) => desired },
    tokens: { revisionOf: () => undefined, retain: () => {} },
    lastKnownGood: () => kept,
  });
  source.start((set) => sets.push(set));
  const names = () => sets.at(-1)?.pods.map(({ pod }) => pod.metadata.name);
  return { source, clock, sets, names };
}

describe("the pods of an API server", () => {
  test("there is no set before the first list", async () => {
    const { clock, sets } = aSource();
    await clock.advance(60_000);
    expect(sets).toEqual([]);
  });

  test("a pod keeps its own name and UID, a mirror pod is not run", async () => {
    const { source, clock, sets, names } = aSource();
    source.setPods([aPod("a"), aPod("m", { metadata: { annotations: { "kubernetes.io/config.mirror": "h" } } })]);
    await clock.advance(100);
    expect(names()).toEqual(["a"]);
    expect(sets.at(-1)?.pods[0]).toMatchObject({ pod: { metadata: { uid: "uid-a" } }, isBound: true, source: "api" });
    expect(sets.at(-1)?.isComplete).toBe(true);
  });

  test("a status alone makes no new set; an end, a deletion and its grace period do", async () => {
    const { source, clock, sets } = aSource();
    const isEmitted = async (more: { metadata?: object; status?: object }) => {
      const before = sets.length;
      source.setPods([aPod("a", more), aPod("b")]);
      await clock.advance(100);
      return sets.length > before;
    };
    const deletionTimestamp = "2026-11-22T10:00:00Z";
    expect(await isEmitted({})).toBe(true);
    expect(await isEmitted({ status: { phase: "Running" }, metadata: { resourceVersion: "7" } })).toBe(false);
    expect(await isEmitted({ metadata: { labels: { a: "1" } } })).toBe(true);
    expect(await isEmitted({ metadata: { labels: { a: "1" }, uid: "another" } })).toBe(true);
    expect(await isEmitted({ metadata: { labels: { a: "1" }, deletionTimestamp } })).toBe(true);
    expect(
      await isEmitted({ metadata: { labels: { a: "1" }, deletionTimestamp, deletionGracePeriodSeconds: 1 } }),
    ).toBe(true);
    expect(await isEmitted({ status: { phase: "Failed" } })).toBe(true);
  });

  test("sets that take long to make are made less often", async () => {
    let spentMs = 0;
    class BusyClock extends FakeClock {
      override monotonicMs() {
        return super.monotonicMs() + spentMs;
      }
    }
    const options = {
      clock: new BusyClock(),
      onPublish: () => {
        spentMs += 100;
      },
    };
    const { source, clock, sets } = aSource(undefined, undefined, options);
    source.setPods([aPod("a")]);
    await clock.advance(20);
    expect(sets).toHaveLength(1);
    source.setPods([aPod("a"), aPod("b")]);
    await clock.advance(250);
    expect(sets).toHaveLength(1);
    await clock.advance(100);
    expect(sets).toHaveLength(2);
  });

  test("a terminating pod is left out, with its grace period", async () => {
    const { source, clock, sets, names } = aSource();
    source.setPods([
      aPod("a", { metadata: { deletionTimestamp: "2026-11-22T10:00:00Z", deletionGracePeriodSeconds: 7 } }),
    ]);
    await clock.advance(100);
    expect(names()).toEqual([]);
    expect(sets.at(-1)?.deletions?.get("uid-a")).toMatchObject({ graceSeconds: 7 });
  });

  test("a new pod waits until its objects were asked for, and the set is not complete meanwhile", async () => {
    let isKnown = false;
    const { source, clock, sets, names } = aSource(() => isKnown);
    const volumes = [{ name: "v", configMap: { name: "cm" } }];
    source.setPods([aPod("a", { spec: { volumes } }), aPod("b")]);
    await clock.advance(100);
    expect(names()).toEqual(["b"]);
    expect(sets.at(-1)?.isComplete).toBe(false);
    isKnown = true;
    source.changed();
    await clock.advance(100);
    expect(names()).toEqual(["a", "b"]);
    expect(sets.at(-1)?.isComplete).toBe(true);
  });
});

describe("an own restart while the API server is unreachable", () => {
  test("the pods of the checkpoint run, and nothing is removed by it", async () => {
    const first = aSource();
    first.source.setPods([aPod("a")]);
    await first.clock.advance(100);
    const { clock, sets, names, source } = aSource(() => true, first.source.checkpoint());
    await clock.advance(4_000);
    expect(sets).toEqual([]);
    await clock.advance(2_000);
    expect(names()).toEqual(["a"]);
    expect(sets.at(-1)?.isComplete).toBe(false);
    source.setPods([]);
    await clock.advance(100);
    expect(names()).toEqual([]);
    expect(sets.at(-1)?.isComplete).toBe(true);
  });

  test("a pod that has ended is not in the checkpoint: it would run again", async () => {
    const { source, clock } = aSource();
    source.setPods([aPod("a"), aPod("done", { status: { phase: "Succeeded" } })]);
    await clock.advance(100);
    const kept = [...(source.checkpoint()?.texts.values() ?? [])].flatMap(({ pods }) => pods);
    expect(kept.map(({ pod }) => pod.metadata.name)).toEqual(["a"]);
  });
});
