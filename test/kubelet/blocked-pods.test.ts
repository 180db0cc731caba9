import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { DesiredPod } from "../../src/base/model/desired-state.ts";
import { decideAdmission } from "../../src/kubelet/blocked-pods.ts";
import type { PodWorker } from "../../src/kubelet/pod-worker.ts";
import { aPod } from "../support/builders.ts";
import { stateOf } from "../support/kubelet-world.ts";

const desired = (name: string, more: Partial<DesiredPod> = {}): DesiredPod => ({
  pod: aPod({}, { name, uid: name }),
  source: "file",
  origin: "",
  revision: "r",
  ...more,
});
const worker = (phase: string) => ({ isRemoving: false, status: { phase } as Pod["status"] }) as unknown as PodWorker;

test("ended pods that never run again request no resources", () => {
  const asked: string[] = [];
  const phases = { bound: "Failed", job: "Succeeded", again: "Succeeded", running: "Running" };
  decideAdmission({
    desired: stateOf([], {
      pods: [
        desired("bound", { isBound: true }),
        desired("job", { runsOnce: true }),
        desired("again"),
        desired("running", { runsOnce: true }),
      ],
    }),
    workers: new Map(Object.entries(phases).map(([uid, phase]) => [uid, worker(phase)] as const)) as never,
    observed: [],
    earlierOf: () => undefined,
    evictions: new Map(),
    isComplete: true,
    rules: {
      admit: (pods) => {
        asked.push(...pods.map(({ pod }) => pod.metadata.uid!));
        return { rejections: new Map(), resizes: new Map(), refusedEdits: new Map() };
      },
      holdOf: () => undefined,
    },
  });
  expect(asked).toEqual(["again", "running"]);
});
