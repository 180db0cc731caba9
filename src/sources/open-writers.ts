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
    // The youngest first: who writes a file has mostly just been started for it.
    pids = readdirSync(proc)
      .filter((name) => /^\d+$/.test(name))
      .sort((a, b) => Number(b) - Number(a));
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

/** The access mode is in the last two bits of the octal `flags` line: 1 write only, 2 read and write. */
function isWritable(fdinfo: string): boolean {
  const flags = /^flags:\s*([0-7]+)/m.exec(fdinfo);
  return flags !== null && (Number.parseInt(flags[1]!, 8) & 3) !== 0;
}
