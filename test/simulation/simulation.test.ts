import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { listMutants, mutate, processEnvironment, readMutant } from "./simulated-modules.ts";
import type { SimulationResult } from "./simulation.ts";

const MAIN = join(import.meta.dir, "main.ts");

async function live(seed: number, days: number, pods = 6): Promise<SimulationResult> {
  const args = [`--seed=${seed}`, `--days=${days}`, `--pods=${pods}`, "--json"];
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    env: processEnvironment(),
    stdout: "pipe",
    stderr: "inherit",
  });
  return JSON.parse(await new Response(child.stdout).text()) as SimulationResult;
}

test.each(listMutants())("the planted mistake %s has its place in src", (name) => {
  const mutation = readMutant(name);
  expect(() => mutate(readFileSync(join(import.meta.dir, "../..", mutation.file), "utf8"), mutation)).not.toThrow();
});

/** Machines of `npm test`; CI lives more of them. */
const SEEDS = Array.from({ length: Number(process.env.KUBELET_TS_SIMULATE_SEEDS ?? 6) }, (_, index) => index + 1);
const DAYS = Number(process.env.KUBELET_TS_SIMULATE_DAYS ?? 20);
const LIMIT_MS = 300_000;

for (const seed of SEEDS) {
  test.concurrent(
    `machine ${seed} keeps every rule of docs/reliability.md for ${DAYS} days`,
    async () => {
      const { failure } = await live(seed, DAYS);
      expect(failure === undefined ? "" : `${failure.steps.join("\n")}\n${failure.message}`).toBe("");
    },
    LIMIT_MS,
  );
}

test(
  "the same seed gives the same run twice",
  async () => {
    const [first, second] = await Promise.all([live(1, 3), live(1, 3)]);
    expect(first.hash).toBe(second.hash);
  },
  LIMIT_MS,
);
