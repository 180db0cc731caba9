import { join } from "node:path";
import { hasCollections } from "./collections.ts";
import { processEnvironment } from "./simulated-modules.ts";
import type { SimulationResult } from "./simulation.ts";

const MAIN = join(import.meta.dir, "main.ts");
/** Machines that live in a process one after the other: what each has used is collected late. */
const MOST_TOGETHER = 8;

export interface Life {
  days: number;
  pods: number;
  only?: readonly number[];
  /** A planted mistake. */
  mutant?: string;
}

export type Lived = SimulationResult & { seed: number; seconds: number };

/** Lives machines one after the other, in few processes: compiling the program takes longer than ten days of a machine. @throws Error */
export async function* live(seeds: readonly number[], life: Life): AsyncGenerator<Lived> {
  for (let left = [...seeds]; left.length > 0; ) {
    const alone = left.findIndex(hasCollections);
    const count = alone === 0 ? 1 : Math.min(alone < 0 ? left.length : alone, MOST_TOGETHER);
    let lived = 0;
    for await (const one of liveInOneProcess(left.slice(0, count), life)) {
      lived++;
      yield one;
    }
    left = left.slice(lived);
  }
}

/** Ends with the first that fails. */
async function* liveInOneProcess(seeds: readonly number[], { days, pods, only, mutant }: Life): AsyncGenerator<Lived> {
  const args = [`--seed=${seeds}`, `--days=${days}`, `--pods=${pods}`, "--json"];
  if (mutant !== undefined) args.push(`--mutant=${mutant}`);
  if (only) args.push(`--only=${only}`);
  const env = processEnvironment();
  await using child = Bun.spawn([process.execPath, MAIN, ...args], { env, stdout: "pipe", stderr: "pipe" });
  const errors = new Response(child.stderr).text();
  const decoder = new TextDecoder();
  let rest = "";
  let lived = 0;
  for await (const chunk of child.stdout) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      lived++;
      yield JSON.parse(line) as Lived;
    }
  }
  if (lived === 0 || rest !== "") throw new Error(`seeds ${seeds} ended without a result: ${(await errors) || rest}`);
}
