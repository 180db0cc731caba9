import { writeSync } from "node:fs";
import { parseArgs } from "node:util";
import { hasCollections } from "./collections.ts";
import { type SimulationResult, simulate } from "./simulation.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    days: { type: "string", default: "365" },
    pods: { type: "string", default: "30" },
    only: { type: "string" },
    mutant: { type: "string" },
    trace: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const days = Number(values.days);
let seed = 0;
let startNs = 0;

/** Prints it. At once, also where the loop never comes to an end. */
function report(result: SimulationResult): void {
  const seconds = (Bun.nanoseconds() - startNs) / 1e9;
  const { failure } = result;
  const said = failure
    ? `${failure.steps.join("\n")}\n\nseed ${seed} fails at ${failure.at}: ${failure.message}\n`
    : `seed ${seed}: ${days} days, ${result.actions.length} actions, ${result.processes} processes, ${result.requests} requests\n`;
  const text = values.json
    ? JSON.stringify({ seed, days, seconds, ...result })
    : `${said}hash ${result.hash}, ${seconds.toFixed(1)} s`;
  writeAll(Buffer.from(`${text}\n`));
  if (failure) process.exit(1);
}

function writeAll(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}

// Where nothing is left to wait for, the process ends before its machines do.
process.exitCode = 1;
const seeds = values.seed.split(",").map(Number);
const alone = seeds.length > 1 ? seeds.find(hasCollections) : undefined;
if (alone !== undefined) throw new Error(`machine ${alone} needs a process of its own: --seed=${alone}`);
// One after the other: the program is loaded and compiled once. The first that fails is the last.
for (const each of seeds) {
  seed = each;
  startNs = Bun.nanoseconds();
  const result = await simulate({
    seed,
    days,
    pods: Number(values.pods),
    only: values.only === undefined ? undefined : new Set(values.only.split(",").filter(Boolean).map(Number)),
    mutant: values.mutant,
    trace: values.trace ? (line) => process.stdout.write(`${line}\n`) : undefined,
    onBusy: report,
  });
  report(result);
}
process.exit(0);
