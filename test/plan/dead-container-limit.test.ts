import { expect, test } from "bun:test";
import { computeSurplusDead, type DeadContainer } from "../../src/plan/dead-container-limit.ts";
import { at } from "../support/builders.ts";

/** `a/app@3` is container app of pod a, created (and ended) at second 3; `!` = its restart rests on it. */
function dead(text: string): DeadContainer {
  const [, podUid = "", name = "", second = "", needed = ""] = /^(\w+)\/(\w+)@(\d+)(!?)$/.exec(text) ?? [];
  const ms = Number(second) * 1000;
  return { podUid, name, id: text, createdAt: at(ms), exitedAtMs: ms, isNeeded: needed === "!" };
}

test.each([
  { when: "no limit", max: -1, there: ["a/app@1", "a/app@2"], want: [] },
  { when: "just as many as the limit", max: 2, there: ["a/app@1", "a/app@2"], want: [] },
  { when: "one too many: the oldest goes", max: 1, there: ["a/app@2", "b/app@1"], want: ["b/app@1"] },
  {
    when: "who has more than a fair share gives first, though another is older",
    max: 2,
    there: ["a/app@1", "b/app@2", "b/app@3"],
    want: ["b/app@2"],
  },
  {
    when: "fair shares are not enough: the oldest of all go too",
    max: 1,
    there: ["a/app@1", "b/app@2", "b/app@3"],
    want: ["b/app@2", "a/app@1"],
  },
  { when: "what a restart rests on stays", max: 0, there: ["a/app@1!", "b/app@2"], want: ["b/app@2"] },
  { when: "what ended a moment ago stays", max: 0, there: ["a/app@1", "b/app@99"], want: ["a/app@1"] },
] as const)("$when", ({ max, there, want }) => {
  const going = computeSurplusDead(there.map(dead), { maxInAll: max, minTtlMs: 5_000 }, 100_000);
  expect(going.map(({ id }) => id)).toEqual([...want]);
});
