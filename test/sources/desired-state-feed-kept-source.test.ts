import { expect, test } from "bun:test";
import { withoutRunnables } from "../../src/sources/desired-state-feed.ts";
import type { Objects } from "../../src/sources/source-set.ts";

const text = (names: { pods?: string[]; secrets?: string[]; deployments?: string[]; claims?: string[] }) => {
  const named = (name: string) => ({ metadata: { name, namespace: "default" } });
  const objects = (kind: string, all: string[] = []) => all.map((name) => ({ kind, object: named(name) }));
  return {
    pods: (names.pods ?? []).map((name) => ({ pod: named(name) })),
    configMaps: [],
    secrets: (names.secrets ?? []).map(named),
    objects: [...objects("Deployment", names.deployments), ...objects("PersistentVolumeClaim", names.claims)],
  } as unknown as Objects;
};
const A = text({ pods: ["a"], secrets: ["own"] });
const B = text({ pods: ["b"] });
const SHARED = text({ secrets: ["shared"] });
const CLAIM = text({ deployments: ["d"], claims: ["c"], secrets: ["s"] });

test.each([
  ["a Secret leaves with the last pod of its text", { A, B, SHARED }, ["default/a"], { B, SHARED }],
  ["one of a text of its own leaves with the last pod", { A, SHARED }, ["default/a"], {}],
  [
    "a workload counts as its pods, a claim stays",
    { CLAIM, A },
    ["Deployment default/d"],
    { CLAIM: text({ claims: ["c"] }), A },
  ],
  ["no pod of them is here", { A, B }, ["default/z"], { A, B }],
  ["nor a pod at all", { SHARED }, ["default/z"], { SHARED }],
] as const)("%s", (_, before, keys, after) => {
  const left = withoutRunnables(new Map(Object.entries(before)), new Set(keys));
  expect(Object.fromEntries(left)).toEqual(after);
});
