import { expect, test } from "bun:test";
import { findPodBefore, type PodTurn, toTentativeRevision } from "../../src/kubelet/edit-rules.ts";
import { aContainer, aRunning, aSnapshot } from "../support/builders.ts";
import { named, toPodRevision } from "../support/kubelet-world.ts";

/** A pod with a container that uses an unknown ConfigMap, and one that uses none. */
const pod = named("web", {
  containers: [
    aContainer({ name: "configured", image: "now", envFrom: [{ configMapRef: { name: "words", optional: true } }] }),
    aContainer({ name: "plain", image: "now" }),
  ],
});
const snapshot = aSnapshot(["configured", "plain"].map((name) => aRunning(name, { hash: "then" })));

test("without its ConfigMap a container keeps the revision it runs, and others do not", () => {
  const { hashes, isTentative } = toTentativeRevision(toPodRevision({ pod }), snapshot);
  expect(Object.fromEntries(hashes.containers)).toEqual({ configured: "then", plain: "now" });
  expect(isTentative).toBe(true);
});

test("a container that was never started has the revision of the manifest", () => {
  const { hashes } = toTentativeRevision(toPodRevision({ pod }), aSnapshot([]));
  expect(hashes.containers.get("configured")).toBe("now");
});

test("an ended pod is not taken for edited", () => {
  const ended = toTentativeRevision({ ...toPodRevision({ pod }), runRevision: "by its hashes" }, snapshot);
  const hashes = new Map([
    ["configured", "then"],
    ["plain", "now"],
  ]);
  const same = toTentativeRevision(
    { ...toPodRevision({ pod }), runRevision: "", hashes: { ...ended.hashes, containers: hashes } },
    snapshot,
  );
  expect(ended.runRevision).toBe(same.runRevision);
  const bound = { ...toPodRevision({ pod }), runRevision: "uid-web" };
  expect(toTentativeRevision(bound, snapshot).runRevision).toBe("uid-web");
});

const turn = (name: string, is: Partial<PodTurn> = {}): PodTurn => ({
  uid: name,
  name,
  namespace: "default",
  isBroken: false,
  wasBroken: false,
  hasEdit: false,
  isAvailable: true,
  isNext: true,
  ...is,
});

test.each([
  ["alone", turn("a"), [], undefined],
  ["the highest ordinal", turn("db-10"), [turn("db-9"), turn("db-2")], undefined],
  ["another one is higher", turn("db-9"), [turn("db-2"), turn("db-10")], "db-10"],
  ["the higher one has no edit", turn("db-9"), [turn("db-10", { isNext: false })], undefined],
  ["a lower one is not available", turn("db-9"), [turn("db-2", { isAvailable: false, isNext: false })], "db-2"],
  [
    "not Ready",
    turn("db-2", { isBroken: true, isAvailable: false }),
    [turn("db-9", { isAvailable: false })],
    undefined,
  ],
  [
    "not Ready since, and another one has the edit and is not available",
    turn("db-2", { isBroken: true, isAvailable: false }),
    [turn("db-9"), turn("db-10", { isAvailable: false, hasEdit: true })],
    "db-10",
  ],
  [
    "not Ready since before the edit",
    turn("db-2", { isBroken: true, wasBroken: true, isAvailable: false }),
    [turn("db-10", { isAvailable: false, hasEdit: true })],
    undefined,
  ],
] as const)("an edit waits for a pod of its workload: %s", (_, own, others, expected) => {
  expect(findPodBefore(own, others)?.name).toBe(expected);
});
