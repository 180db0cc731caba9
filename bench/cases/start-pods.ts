import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeContainersOf, TestNode } from "../../test/support/test-node.ts";
import { type BenchCase, type Measurement, median } from "../bench-case.ts";
import { type PodBodies, readPodBodies, startBare } from "../floor.ts";
import { idlePod, startByRunOnce } from "../running-pods.ts";

const ROUNDS = 3;
/** Tried once each; the best one is the floor's. */
const CONCURRENCIES = [1, 2, 4, 8, 16];

/** With more pods than this: one round, and the two concurrencies that were best with fewer pods. */
const LONG = { above: 110, rounds: 1, concurrencies: [4, 8] };

async function measure(count: number): Promise<Measurement[]> {
  await using node = new TestNode();
  const floorNode = node.bareName;
  const manifests = join(node.directory, "pods");
  mkdirSync(manifests);
  for (let i = 0; i < count; i++) {
    writeFileSync(join(manifests, `p${i}.json`), JSON.stringify(idlePod(`p${i}`)));
  }

  // The first start loads the pause image; what follows measures pods.
  await startByRunOnce(node, manifests);
  const bodies = await readPodBodies(node.docker, await node.listAll(), floorNode);
  if (bodies.length !== count) throw new Error(`expected ${count} sandboxes, found ${bodies.length}`);
  await removeContainersOf(node.docker, node.name);

  const { concurrency, runs: floorRuns } = await findFloor(node, bodies, floorNode);
  const rounds = count > LONG.above ? LONG.rounds : ROUNDS;
  const runs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    runs.push(await startByRunOnce(node, manifests));
    await removeContainersOf(node.docker, node.name);
    floorRuns.push(await floorRun(node, bodies, floorNode, concurrency));
  }
  return [
    {
      what: `${count} ${count === 1 ? "pod" : "pods"} from nothing to running`,
      unit: "ms",
      value: median(runs),
      runs,
      floor: median(floorRuns),
      floorText: `same calls, ${concurrency} at a time`,
      goal: { ratioAtMost: count >= 50 ? 1.1 : 1.3 },
    },
  ];
}

async function floorRun(node: TestNode, bodies: PodBodies[], floorNode: string, concurrency: number): Promise<number> {
  try {
    return await startBare(node.docker, bodies, concurrency);
  } finally {
    await removeContainersOf(node.docker, floorNode);
  }
}

/** The concurrency at which the bare loop is fastest on this machine. */
async function findFloor(node: TestNode, bodies: PodBodies[], floorNode: string) {
  let best = { concurrency: 1, ms: Number.POSITIVE_INFINITY };
  const candidates = bodies.length > LONG.above ? LONG.concurrencies : CONCURRENCIES;
  for (const concurrency of candidates.filter((one) => one <= bodies.length)) {
    const ms = await floorRun(node, bodies, floorNode, concurrency);
    if (ms < best.ms) best = { concurrency, ms };
  }
  return { concurrency: best.concurrency, runs: [best.ms] };
}

const startPods = (count: number): BenchCase => ({
  name: `start-${count}`,
  about: `--runonce with ${count === 1 ? "one pod" : `${count} pods`} of one container, against the same calls from a bare loop`,
  run: () => measure(count),
});

export const startPodsCases: readonly BenchCase[] = [startPods(1), startPods(50), startPods(110), startPods(220)];
