import { writeFileSync } from "node:fs";
import { readBoundedText, readTextIfReadable, SYSTEM_FILE_BYTES } from "../base/files/whole-file.ts";
import { parseOpenFilesLimit } from "../base/host/proc.ts";
import { runProgram } from "../base/host/run-program.ts";
import type { Logger } from "../base/model/logger.ts";
import type { KubeletOptions } from "../config/option-table.ts";

interface ProcessSettingsHost {
  /** `/proc` of the machine. */
  proc: string;
  /** Runs a command to its end; resolves to its exit code and its standard error. */
  run: (command: readonly string[]) => Promise<{ code: number; stderr: string }>;
  pid: number;
}

const HOST: ProcessSettingsHost = {
  proc: "/proc",
  pid: process.pid,
  run: async (command) => {
    try {
      const { exitCode, stderr } = await runProgram(command, { timeoutMs: 10_000, maxBytes: 65_536 });
      return { code: exitCode, stderr: stderr.trim() };
    } catch (error) {
      return { code: 127, stderr: (error as Error).message };
    }
  },
};

/**
 * Applies the options that concern this process and the machine: swap, open files, OOM score. A setting that the system
 * refuses is logged at --v=2 and is not fatal. Resolves when all settings are applied; callers need not wait for that.
 * @throws Error when swap is on and `failSwapOn` is set
 */
export function applyProcessSettings(
  options: Pick<KubeletOptions, "failSwapOn" | "maxOpenFiles" | "oomScoreAdj">,
  logger: Logger,
  host: ProcessSettingsHost = HOST,
): Promise<void> {
  checkSwap(options.failSwapOn, logger, host);
  setOomScore(options.oomScoreAdj, logger, host);
  return raiseOpenFiles(options.maxOpenFiles, logger, host);
}

function checkSwap(failSwapOn: boolean, logger: Logger, host: ProcessSettingsHost): void {
  // A kernel without swap has no such file.
  const swaps = readTextIfReadable(`${host.proc}/swaps`, SYSTEM_FILE_BYTES) ?? "";
  const lines = swaps.trim().split("\n").slice(1);
  const names = lines.map((line) => line.split(/\s+/, 1)[0]).filter(Boolean);
  if (names.length === 0) return;
  if (failSwapOn) {
    throw new Error(`Swap is on (${names.join(", ")}); switch it off, or remove --fail-swap-on`);
  }
  logger.debug(`Swap is on (${names.join(", ")}); containers get none of it unless --memory-swap-behavior=LimitedSwap`);
}

function setOomScore(score: number, logger: Logger, host: ProcessSettingsHost): void {
  const file = `${host.proc}/self/oom_score_adj`;
  try {
    if (Number(readBoundedText(file, SYSTEM_FILE_BYTES)) === score) return;
    writeFileSync(file, String(score));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    logger.debug(`Our own OOM score cannot be set to ${score} (${code}): it needs CAP_SYS_RESOURCE`);
  }
}

/** Bun cannot make the system call that raises the limit of its own process: prlimit of util-linux does it from outside. */
async function raiseOpenFiles(wanted: number, logger: Logger, host: ProcessSettingsHost): Promise<void> {
  const limits = parseOpenFilesLimit(readTextIfReadable(`${host.proc}/self/limits`, SYSTEM_FILE_BYTES) ?? "");
  // Below zero: unlimited.
  if (!limits || limits.soft < 0 || limits.soft >= wanted) return;
  const attempts = [`${wanted}:${Math.max(wanted, limits.hard)}`];
  // Without the right to raise the hard limit, as far as it goes.
  if (limits.hard < wanted && limits.soft < limits.hard) attempts.push(`${limits.hard}:${limits.hard}`);
  let reason = "";
  for (const limit of attempts) {
    const { code, stderr } = await host.run(["prlimit", `--pid=${host.pid}`, `--nofile=${limit}`]);
    if (code === 0) return;
    reason = stderr;
  }
  logger.debug(`Our limit of open files stays at ${limits.soft} (wanted ${wanted}): ${reason || "prlimit failed"}`);
}
