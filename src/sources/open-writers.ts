import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/**
 * Looking at a process takes about 0.05 ms; a machine with thousands must not hold up the loop for long. Our own CPU
 * time, not the clock: on a busy machine we may wait long for little work.
 */
const BUDGET_CPU_MS = 100;

/**
 * Which of the files some process holds open for writing: they are not finished, however good they look. As far as
 * /proc shows (our own processes only, when not root); an empty answer when it takes too long.
 * @param files absolute paths without symbolic links
 */
export function findOpenWriters(files: ReadonlySet<string>, proc = "/proc"): Set<string> {
  const written = new Set<string>();
  const before = process.cpuUsage();
  let pids: string[];
  try {
    // Who writes a file has mostly just been started for it.
    pids = youngestFirst(
      readdirSync(proc).filter((name) => /^\d+$/.test(name)),
      readLastPid(proc),
    );
  } catch {
    return written;
  }
  for (const pid of pids) {
    const { user, system } = process.cpuUsage(before);
    if (user + system > BUDGET_CPU_MS * 1000) return written;
    let fds: string[];
    try {
      fds = readdirSync(`${proc}/${pid}/fd`);
    } catch {
      continue; // Gone, or not ours to look at.
    }
    for (const fd of fds) {
      try {
        const target = readlinkSync(`${proc}/${pid}/fd/${fd}`);
        if (files.has(target) && isWritable(readFileSync(`${proc}/${pid}/fdinfo/${fd}`, "utf8"))) written.add(target);
      } catch {
        // Closed in between.
      }
    }
  }
  return written;
}

/** Process ids are given in turn and begin anew at the top: those above the last one given are the oldest. */
export function youngestFirst(pids: readonly string[], lastPid: number): string[] {
  const isOld = (pid: string) => Number(Number(pid) > lastPid);
  return pids.toSorted((a, b) => isOld(a) - isOld(b) || Number(b) - Number(a));
}

/** The process id that was given last, at the end of `loadavg`. */
function readLastPid(proc: string): number {
  try {
    const lastPid = Number(readFileSync(`${proc}/loadavg`, "utf8").trim().split(" ").at(-1));
    return lastPid > 0 ? lastPid : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY; // Then as if they had not begun anew.
  }
}

/** The access mode is in the last two bits of the octal `flags` line: 1 write only, 2 read and write. */
function isWritable(fdinfo: string): boolean {
  const flags = /^flags:\s*([0-7]+)/m.exec(fdinfo);
  return flags !== null && (Number.parseInt(flags[1]!, 8) & 3) !== 0;
}
