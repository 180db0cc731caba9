import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { PressureType } from "../../src/base/model/node.ts";
import {
  computeNodePressure,
  type EvictionSettings,
  findExceededLimit,
  findPressureRefusal,
  NO_HISTORY,
  type PodUsage,
  rankForEviction,
  toEvictionMessage,
} from "../../src/plan/eviction.ts";
import { aContainer, aPod } from "../support/builders.ts";

const MI = 2 ** 20;
const settings: EvictionSettings = {
  hard: [
    { signal: "nodefs.available", percentage: 10 },
    { signal: "memory.available", quantity: 100 * MI },
  ],
  soft: [{ signal: "memory.available", quantity: 200 * MI }],
  softGraceMs: { "memory.available": 30_000 },
  minimumReclaim: [{ signal: "memory.available", quantity: 50 * MI }],
  transitionMs: 300_000,
};
const signals = (memoryMi: number, diskPercent = 50) => ({
  "memory.available": { capacity: 1000 * MI, available: memoryMi * MI },
  "nodefs.available": { capacity: 1000, available: diskPercent * 10 },
});

/** Samples ten seconds apart: free memory in Mi, or `[memory, free disk per cent]`. @returns the last, in words */
function after(...samples: (number | [number, number])[]) {
  let seen = computeNodePressure(NO_HISTORY, signals(1000), settings, 0);
  for (const [index, sample] of samples.entries()) {
    const [memory, disk] = typeof sample === "number" ? [sample, 50] : sample;
    seen = computeNodePressure(seen.history, signals(memory, disk), settings, (index + 1) * 10_000);
  }
  return [...seen.due.map(({ kind, signal }) => `${kind} ${signal}`), ...[...seen.pressures].sort()];
}

describe("thresholds", () => {
  test.each([
    { when: "enough of all", samples: [500], want: [] },
    { when: "exactly the threshold is enough", samples: [200], want: [] },
    { when: "below the hard one", samples: [99], want: ["hard memory.available", "MemoryPressure"] },
    { when: "below the soft one, not yet", samples: [199], want: ["MemoryPressure"] },
    { when: "below the soft one for 30 s", samples: [199, 199, 199, 199], want: ["soft memory.available", "MemoryPressure"] },
    { when: "a break starts the grace again", samples: [199, 199, 300, 199, 199], want: ["MemoryPressure"] },
    { when: "met until the minimum reclaim is free too", samples: [99, 149], want: ["hard memory.available", "MemoryPressure"] },
    { when: "free with the minimum reclaim; pressure is still shown", samples: [99, 251], want: ["MemoryPressure"] },
    { when: "memory is more urgent than disk", samples: [[99, 9]], want: ["hard memory.available", "hard nodefs.available", "DiskPressure", "MemoryPressure"] },
    { when: "pressure passes after the transition period", samples: [99, ...Array(29).fill(500)], want: ["MemoryPressure"] },
    { when: "and is over then", samples: [99, ...Array(30).fill(500)], want: [] },
  ] as { when: string; samples: (number | [number, number])[]; want: string[] }[])("$when", ({ samples, want }) => {
    expect(after(...samples)).toEqual(want);
  });

  test("a signal that cannot be read is not pressure", () => {
    expect(computeNodePressure(NO_HISTORY, {}, settings, 0)).toMatchObject({ due: [], pressures: new Set() });
  });
}); // biome-ignore format: tables

function candidate(
  name: string,
  usedMi: number,
  given: { requestMi?: number; priority?: number; className?: string } = {},
) {
  const { requestMi, priority, className } = given;
  const resources = requestMi === undefined ? {} : { requests: { memory: `${requestMi}Mi` } };
  const pod = aPod(
    {
      containers: [aContainer({ resources } as never)],
      ...(priority !== undefined && { priority }),
      ...(className && { priorityClassName: className }),
    } as Partial<Pod["spec"]>,
    { name, uid: name },
  );
  const usage: PodUsage = { memoryBytes: new Map([["app", usedMi * MI]]), processes: usedMi };
  return { pod, usage };
}

describe("the order of evictions", () => {
  const less = candidate("b", 1);
  test.each<[when: string, resource: "memory" | "pids", pods: ReturnType<typeof candidate>[], want: string]>([
    ["the largest user", "memory", [candidate("a", 10), candidate("b", 30), candidate("c", 20)], "b c a"],
    ["above the request before below it", "memory", [candidate("a", 90, { requestMi: 100 }), less], "b a"],
    ["by priority among those above", "memory", [candidate("a", 90, { priority: 10 }), less], "b a"],
    ["above its request", "memory", [candidate("a", 90, { priority: 10 }), candidate("b", 5, { requestMi: 9 })], "a b"],
    ["critical ones never", "memory", [candidate("a", 90, { className: "system-node-critical" }), less], "b"],
    [
      "processes: by priority, then by their number",
      "pids",
      [candidate("a", 1), candidate("b", 90, { priority: 5 }), candidate("c", 3)],
      "c a b",
    ],
  ])("%s", (_when, resource, pods, want) => {
    const order = rankForEviction(pods, resource).map(({ pod }) => pod.metadata.name);
    expect(order.join(" ")).toBe(want);
  });

  test("upstream's message", () => {
    const memory = { signal: "memory.available", kind: "hard", threshold: 100 * MI, available: 50 * MI } as const;
    expect(toEvictionMessage(memory, candidate("a", 90, { requestMi: 64 }))).toBe(
      "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container app was using 90Mi, which exceeds its request of 64Mi. ",
    );
    const pids = { signal: "pid.available", kind: "hard", threshold: 100, available: 9 } as const;
    expect(toEvictionMessage(pids, candidate("a", 90))).toBe(
      "The node was low on resource: pids. Threshold quantity: 100, available: 9. ",
    );
    const disk = { signal: "imagefs.inodesFree", kind: "hard", threshold: 100, available: 9 } as const;
    expect(toEvictionMessage(disk, candidate("a", 90))).toBe(
      "The node was low on resource: inodes. Threshold quantity: 100, available: 9. The disk is that of images. ",
    );
  });
});

const pod = aPod({
  containers: [
    aContainer({ resources: { limits: { "ephemeral-storage": "10Mi" } } } as never),
    aContainer({ name: "b" }),
  ],
  volumes: [{ name: "cache", emptyDir: { sizeLimit: "4Mi" } }],
} as Partial<Pod["spec"]>);
const disk = (volumeMi: number, appMi: number, otherMi = 0) => ({
  volumes: new Map([["cache", { usedBytes: volumeMi * MI, inodes: 1, ephemeral: true }]]),
  containers: new Map([
    ["app", appMi * MI],
    ["b", otherMi * MI],
  ]),
});
test.each([
  ["just what is allowed", disk(4, 6), undefined],
  ["the volume", disk(5, 0), 'Usage of EmptyDir volume "cache" exceeds the limit "4Mi". '],
  ["all", disk(4, 5, 2), "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "],
])("limits of the disk: %s", (_when, use, want) => {
  expect(findExceededLimit(pod, use)?.message).toBe(want);
});

test.each<[when: string, bestEffort: boolean, pressures: PressureType[], want: string | undefined]>([
  ["no pressure", true, [], undefined],
  ["memory, best effort", true, ["MemoryPressure"], "The node had condition: [MemoryPressure]. "],
  ["memory, burstable", false, ["MemoryPressure"], undefined],
  ["disk, burstable", false, ["DiskPressure"], "The node had condition: [DiskPressure]. "],
])("a new pod under pressure: %s", (_when, bestEffort, pressures, want) => {
  expect(findPressureRefusal(aPod(), bestEffort, new Set(pressures))).toBe(want);
  expect(
    findPressureRefusal(aPod({ priorityClassName: "system-node-critical" }), true, new Set(pressures)),
  ).toBeUndefined();
});
