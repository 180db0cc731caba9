/**
 * `npm run bench [-- case…]`: runs the cases named (all when none is), prints a table and writes bench/results/<time>.json.
 * `npm run bench -- --list` names them. Needs dist/kubelet-ts and a Docker engine; removes what it started.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { BINARY } from "../test/support/kubelet-process.ts";
import { liveNodes } from "../test/support/test-node.ts";
import { type BenchCase, type Measurement, meetsGoal, ratioOf } from "./bench-case.ts";
import { clusterCases } from "./cases/cluster.ts";
import { deploymentsCases } from "./cases/deployments.ts";
import { lifecycleCases } from "./cases/lifecycle.ts";
import { localApiCases } from "./cases/local-api.ts";
import { manifestsCases } from "./cases/manifests.ts";
import { memoryCases } from "./cases/memory.ts";
import { pageCases } from "./cases/page.ts";
import { probesCases } from "./cases/probes.ts";
import { processStartCases } from "./cases/process-start.ts";
import { serverCases } from "./cases/server.ts";
import { servicesCases } from "./cases/services.ts";
import { startPodsCases } from "./cases/start-pods.ts";
import { steadyCases } from "./cases/steady.ts";
import { toTable } from "./report.ts";

const CASES: readonly BenchCase[] = [
  ...processStartCases,
  ...manifestsCases,
  ...startPodsCases,
  ...deploymentsCases,
  ...memoryCases,
  ...lifecycleCases,
  ...steadyCases,
  ...probesCases,
  ...serverCases,
  ...localApiCases,
  ...servicesCases,
  ...pageCases,
  ...clusterCases,
];

const RESULTS = join(import.meta.dir, "results");

function versionOfBinary(): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([BINARY, "--version"]);
  if (exitCode !== 0) throw new Error(`${BINARY} --version ended with ${exitCode}: ${stderr.toString().trim()}`);
  return stdout.toString().trim();
}

function choose(names: readonly string[]): readonly BenchCase[] {
  const unknown = names.find((name) => !CASES.some((known) => known.name === name));
  if (unknown !== undefined) {
    console.error(`There is no case "${unknown}". Known: ${CASES.map((known) => known.name).join(", ")}`);
    process.exit(2);
  }
  return names.length === 0 ? CASES : CASES.filter((known) => names.includes(known.name));
}

const args = process.argv.slice(2);
if (args.includes("--list")) {
  for (const { name, about } of CASES) console.log(`${name.padEnd(16)} ${about}`);
  process.exit(0);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, async () => {
    console.error(`\n${signal}: cleaning up`);
    await Promise.allSettled([...liveNodes].map((node) => node.cleanUp()));
    process.exit(1);
  });
}

const chosen = choose(args);
const binary = versionOfBinary();
console.log(`${binary}, ${cpus().length} × ${cpus()[0]?.model ?? "?"}, Linux ${release()}\n`);
const startedAt = new Date();
const results: { case: string; measurements: Measurement[]; error?: string }[] = [];
for (const one of chosen) {
  console.log(`… ${one.name}: ${one.about}`);
  try {
    results.push({ case: one.name, measurements: await one.run() });
  } catch (error) {
    const text = (error as Error).message;
    console.error(`  failed: ${text}`);
    results.push({ case: one.name, measurements: [], error: text });
  }
}

const measurements = results.flatMap((result) => result.measurements);
console.log(`\n${toTable(measurements)}`);

mkdirSync(RESULTS, { recursive: true });
const file = join(RESULTS, `${startedAt.toISOString().replaceAll(":", "").slice(0, 17)}Z.json`);
const report = {
  date: startedAt.toISOString(),
  binary,
  machine: { cpus: cpus().length, model: cpus()[0]?.model, memoryBytes: totalmem(), kernel: release() },
  cases: results.map((result) => ({
    ...result,
    measurements: result.measurements.map((one) => ({ ...one, ratio: ratioOf(one), met: meetsGoal(one) })),
  })),
};
writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
console.log(`\nWritten to ${file}`);
process.exit(results.some((result) => result.error !== undefined) ? 1 : 0);
