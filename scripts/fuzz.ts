// Fuzzes the parsers: `npm run fuzz -- [--seconds=60] [--seed=N] [--length=1048576] [target…]`.
// Prints each input that fails and ends with exit code 1 if there is one. Add such inputs to the seeds of their target.
import { parseArgs } from "node:util";
import { fuzz } from "../test/fuzz/fuzz-target.ts";
import { TARGETS } from "../test/fuzz/targets.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string" }, seed: { type: "string" }, length: { type: "string" } },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const targets = TARGETS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
if (targets.length === 0) {
  console.error(`no such target; there are ${TARGETS.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
const secondsEach = Number(values.seconds ?? 60) / targets.length;
for (const target of targets) {
  const end = Date.now() + secondsEach * 1000;
  const stop = () => Date.now() > end;
  const maxLength = Number(values.length ?? 262_144);
  const failures = await fuzz(target, { iterations: Number.MAX_SAFE_INTEGER, seed, maxLength, stop });
  console.log(`${target.name}: ${failures.length} failures (--seed=${seed})`);
  for (const { reason, input } of failures) {
    const shown = JSON.stringify(input);
    console.log(`  ${reason}\n  ${shown.slice(0, 2000)}${shown.length > 2000 ? `… (${input.length} characters)` : ""}`);
    process.exitCode = 1;
  }
}
