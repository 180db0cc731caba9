import { beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Lived, live } from "./live.ts";
import { listMutants, mutate, readMutant } from "./simulated-modules.ts";

test.each(listMutants())("the planted mistake %s has its place in src", (name) => {
  const mutation = readMutant(name);
  expect(() => mutate(readFileSync(join(import.meta.dir, "../..", mutation.file), "utf8"), mutation)).not.toThrow();
});

/** Machines of `npm test`; CI lives more of them. */
const SEEDS = Array.from({ length: Number(process.env.KUBELET_TS_SIMULATE_SEEDS ?? 6) }, (_, index) => index + 1);
const DAYS = Number(process.env.KUBELET_TS_SIMULATE_DAYS ?? 20);
const PODS = 6;
const LIMIT_MS = 240_000 + 10_000 * SEEDS.length;

const results = new Map(SEEDS.map((seed) => [seed, Promise.withResolvers<Lived>()]));

beforeAll(() => {
  const lanes = Array.from({ length: availableParallelism() }, (_, lane) =>
    SEEDS.filter((_, index) => index % availableParallelism() === lane),
  );
  for (const seeds of lanes) {
    const run = async () => {
      for await (const one of live(seeds, { days: DAYS, pods: PODS })) results.get(one.seed)?.resolve(one);
    };
    run().catch((error) => {
      for (const seed of seeds) results.get(seed)?.reject(error);
    });
  }
});

for (const seed of SEEDS) {
  test.concurrent(
    `machine ${seed} keeps every rule of docs/reliability.md for ${DAYS} days`,
    async () => {
      const { failure } = await results.get(seed)!.promise;
      expect(failure === undefined ? "" : `${failure.steps.join("\n")}\n${failure.message}`).toBe("");
    },
    LIMIT_MS,
  );
}

test(
  "the same seed gives the same run twice, also after another machine in the same process",
  async () => {
    const hashes = async (seeds: readonly number[]) =>
      (await Array.fromAsync(live(seeds, { days: 3, pods: PODS }))).map(({ hash }) => hash);
    const [[first], [, second]] = await Promise.all([hashes([1]), hashes([2, 1])]);
    expect(first).toBe(second!);
  },
  LIMIT_MS,
);
