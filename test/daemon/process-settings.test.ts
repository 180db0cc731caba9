import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { applyProcessSettings } from "../../src/daemon/process-settings.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();
const SWAP_ON = "Filename Type Size Used Priority\n/swapfile file 1048572 0 -2\n/dev/zram0 partition 4096 0 5\n";
const OPTIONS = { failSwapOn: false, maxOpenFiles: 1_000_000, oomScoreAdj: -999 };

function machine(limits = "1024 524288", swaps = "Filename Type Size Used Priority\n", codes = [0]) {
  const proc = tempDir();
  mkdirSync(join(proc, "self"));
  writeFileSync(join(proc, "swaps"), swaps);
  writeFileSync(join(proc, "self/oom_score_adj"), "0\n");
  writeFileSync(
    join(proc, "self/limits"),
    `Limit Soft Hard Units\nMax open files            ${limits.replace(" ", "     ")}    files\n`,
  );
  const commands: string[] = [];
  const run = async (command: readonly string[]) => {
    commands.push(command.join(" "));
    return { code: codes[commands.length - 1] ?? 1, stderr: "Operation not permitted" };
  };
  return { host: { proc, run, pid: 42 }, commands, logger: new RecordingLogger() };
}

test("the OOM score is set and the limit of open files raised", async () => {
  const { host, commands, logger } = machine();
  await applyProcessSettings(OPTIONS, logger, host);
  expect(readFileSync(join(host.proc, "self/oom_score_adj"), "utf8")).toBe("-999");
  expect(commands).toEqual(["prlimit --pid=42 --nofile=1000000:1000000"]);
  expect(logger.lines).toEqual([]);
});

test.each([
  { limits: "1048576 1048576", wanted: 1_000_000, codes: [], commands: [] },
  { limits: "unlimited unlimited", wanted: 1_000_000, codes: [], commands: [] },
  { limits: "1024 4096", wanted: 2048, codes: [0], commands: ["prlimit --pid=42 --nofile=2048:4096"] },
  {
    limits: "1024 4096",
    wanted: 9000,
    codes: [1, 0],
    commands: ["prlimit --pid=42 --nofile=9000:9000", "prlimit --pid=42 --nofile=4096:4096"],
  },
  { limits: "4096 4096", wanted: 9000, codes: [1], commands: ["prlimit --pid=42 --nofile=9000:9000"] },
])("open files: $limits to $wanted", async ({ limits, wanted, codes, commands }) => {
  const at = machine(limits, undefined, [...codes]);
  await applyProcessSettings({ ...OPTIONS, maxOpenFiles: wanted }, at.logger, at.host);
  expect(at.commands).toEqual([...commands]);
  expect(at.logger.lines.length).toBe(codes.at(-1) === 1 ? 1 : 0);
});

test("swap is logged, and is an error with --fail-swap-on", async () => {
  const { host, logger } = machine("1048576 1048576", SWAP_ON);
  await applyProcessSettings(OPTIONS, logger, host);
  expect(logger.lines).toEqual([
    "debug Swap is on (/swapfile, /dev/zram0); containers get none of it unless --memory-swap-behavior=LimitedSwap",
  ]);
  expect(() => applyProcessSettings({ ...OPTIONS, failSwapOn: true }, logger, host)).toThrow(
    "Swap is on (/swapfile, /dev/zram0); switch it off, or remove --fail-swap-on",
  );
});

test("on this machine nothing is thrown", async () => {
  const before = readFileSync("/proc/self/oom_score_adj", "utf8");
  const logger = new RecordingLogger();
  await applyProcessSettings({ failSwapOn: false, maxOpenFiles: 100, oomScoreAdj: Number(before) }, logger);
  expect(readFileSync("/proc/self/oom_score_adj", "utf8")).toBe(before);
});
