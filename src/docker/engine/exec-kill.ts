import { readdirSync } from "node:fs";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../../base/files/bounded-read.ts";

/** {@link killExecProcesses}, in this thread or another one: a machine may have many processes. */
export type KillExecProcesses = (hostPid: number, containerId: string) => number | Promise<number>;

/**
 * Kills the processes of an exec: its main process, all descendants, and the rest of its session. Ending the stream
 * would leave them running (kubernetes#26895). Only processes in a cgroup with the container's id are killed: a pid may
 * have been reused, or mean another process here.
 * @param containerId all 64 digits
 * @returns how many processes got SIGKILL
 */
export function killExecProcesses(hostPid: number, containerId: string): number {
  if (hostPid <= 1 || containerId.length < 64) return 0;
  const processes = readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map((entry) => readStat(Number(entry)))
    .filter((seen) => seen !== undefined);
  const doomed = new Set<number>();
  const queue = processes.filter(({ pid, session }) => pid === hostPid || session === hostPid).map(({ pid }) => pid);
  for (let pid = queue.shift(); pid !== undefined; pid = queue.shift()) {
    if (doomed.has(pid) || !belongsTo(pid, containerId)) continue;
    doomed.add(pid);
    queue.push(...processes.filter(({ parent }) => parent === pid).map((child) => child.pid));
  }
  let killed = 0;
  // Parents first, so that none of them can start another child in the meantime.
  for (const pid of doomed) {
    try {
      process.kill(pid, "SIGKILL");
      killed++;
    } catch {
      // ESRCH: the process has already ended. EPERM: not root; the caller reports the time-out either way.
    }
  }
  return killed;
}

function belongsTo(pid: number, containerId: string): boolean {
  try {
    return readBoundedText(`/proc/${pid}/cgroup`, SYSTEM_FILE_BYTES).includes(containerId);
  } catch {
    return false;
  }
}

interface ProcessStat {
  pid: number;
  parent: number;
  session: number;
}

function readStat(pid: number): ProcessStat | undefined {
  try {
    const stat = readBoundedText(`/proc/${pid}/stat`, SYSTEM_FILE_BYTES);
    // The name in parentheses may hold anything, parentheses and blanks too: the fields follow the last one.
    const [, parent, , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { pid, parent: Number(parent), session: Number(session) };
  } catch {
    return undefined;
  }
}
