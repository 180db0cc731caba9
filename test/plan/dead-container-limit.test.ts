import { expect, test } from "bun:test";
import type { ContainerSnapshot } from "../../src/base/model/pod-snapshot.ts";
import { computeSurplusDead, type DeadContainer, findDeadContainers } from "../../src/plan/dead-container-limit.ts";
import { anExited, aRunning, aSnapshot, aSyncState, at } from "../support/builders.ts";

/** `a/app@3` is container app of pod a, created (and ended) at second 3; `!` = its restart rests on it. */
function dead(text: string): DeadContainer {
  const [, podUid = "", name = "", second = "", needed = ""] = /^(\w+)\/(\w+)@(\d+)(!?)$/.exec(text) ?? [];
  const ms = Number(second) * 1000;
  return { podUid, name, id: text, createdAt: at(ms), exitedAtMs: ms, isNeeded: needed === "!" };
}

test.each<[when: string, max: number, there: string, going: string]>([
  ["no limit", -1, "a/app@1 a/app@2", ""],
  ["just as many as the limit", 2, "a/app@1 a/app@2", ""],
  ["one too many: the oldest goes", 1, "a/app@2 b/app@1", "b/app@1"],
  ["one with more than a fair share gives first, though another is older", 2, "a/app@1 b/app@2 b/app@3", "b/app@2"],
  ["fair shares are not enough: the oldest of all go too", 1, "a/app@1 b/app@2 b/app@3", "b/app@2 a/app@1"],
  ["what a restart rests on stays", 0, "a/app@1! b/app@2", "b/app@2"],
  ["what ended a moment ago stays", 0, "a/app@1 b/app@99", "a/app@1"],
])("%s", (_when, maxInAll, there, going) => {
  const surplus = computeSurplusDead(there.split(" ").map(dead), { maxInAll, minTtlMs: 5_000 }, 100_000);
  expect(surplus.map(({ id }) => id).join(" ")).toBe(going);
});

test.each<{ newest: string; container: ContainerSnapshot; needed: boolean[] }>([
  { newest: "runs", container: aRunning("app", { id: "new" }), needed: [false] },
  { newest: "was made and not started", container: aRunning("app", { id: "new", state: "created" }), needed: [true] },
  { newest: "is being removed", container: anExited("app", 1, { id: "gone" }), needed: [true] },
  { newest: "has ended", container: anExited("app", 1, { id: "new" }), needed: [true, false] },
])("the restart count of a container is read from the one before, when the newest $newest: $needed", (row) => {
  const state = aSyncState();
  state.removing.add("gone");
  const dead = findDeadContainers("u1", aSnapshot([row.container, anExited("app", 1, { id: "old" })]), state, true);
  expect(dead.map(({ isNeeded }) => isNeeded)).toEqual(row.needed);
});
