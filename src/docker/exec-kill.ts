import { readdirSync, readFileSync } from "node:fs";

/**
 * Kills what an exec started: its main process and everything below it. Aborting the stream would leave all that running
 * in the container for ever (kubernetes#26895).
 *
 * Only processes in a cgroup that bears the container's id are touched: so a pid that was reused in the meantime, or that
 * means something else here (the engine lives on another machine or in another pid namespace), stays unharmed.
 * @param hostPid `Pid` of the exec's inspect.
 * @param containerId All 64 digits.
 * @returns how many processes got SIGKILL.
 */
export function killExecProcesses(hostPid: number, containerId: string): number {
  if (hostPid <= 1 || containerId.length < 64 || !belongsTo(hostPid, containerId)) return 0;
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = parentOf(Number(entry));
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const doomed: number[] = [];
  const queue = [hostPid];
  for (let pid = queue.shift(); pid !== undefined; pid = queue.shift()) {
    if (!belongsTo(pid, containerId)) continue;
    doomed.push(pid);
    queue.push(...(children.get(pid) ?? []));
  }
  let killed = 0;
  // Parents first, so that none of them can start another child in the meantime.
  for (const pid of doomed) {
    try {
      process.kill(pid, "SIGKILL");
      killed++;
    } catch {
      // ESRCH: it has ended by itself, which is as good. EPERM: not root; the caller reports the time-out either way.
    }
  }
  return killed;
}

function belongsTo(pid: number, containerId: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(containerId);
  } catch {
    return false;
  }
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may hold anything, parentheses and blanks too: what counts stands after the last one.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}
