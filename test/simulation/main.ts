import { parseArgs } from "node:util";
import { simulate } from "./simulation.ts";

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
const seed = Number(values.seed);
const days = Number(values.days);
const startNs = Bun.nanoseconds();
const result = await simulate({
  seed,
  days,
  pods: Number(values.pods),
  only: values.only === undefined ? undefined : new Set(values.only.split(",").filter(Boolean).map(Number)),
  mutant: values.mutant,
  trace: values.trace ? (line) => process.stdout.write(`${line}\n`) : undefined,
});
const seconds = (Bun.nanoseconds() - startNs) / 1e9;
if (values.json) process.stdout.write(`${JSON.stringify({ seed, days, seconds, ...result })}\n`);
else {
  const { failure } = result;
  if (failure)
    process.stdout.write(`${failure.steps.join("\n")}\n\nseed ${seed} fails at ${failure.at}: ${failure.message}\n`);
  else
    process.stdout.write(
      `seed ${seed}: ${days} days, ${result.actions.length} actions, ${result.processes} processes, ${result.requests} requests\n`,
    );
  process.stdout.write(`hash ${result.hash}, ${seconds.toFixed(1)} s\n`);
}
process.exit(result.failure ? 1 : 0);
