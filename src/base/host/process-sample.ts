import { readdirSync } from "node:fs";
import { namesIfReadable, readTextIfReadable, SYSTEM_FILE_BYTES } from "../files/whole-file.ts";
import type { ProcessSample } from "../model/pod-snapshot.ts";

/** The name runc gives its own process inside a container until that becomes the program. */
const RUNTIME_NAME = "runc:[";
/** USER_HZ: Linux reports times to programs in hundredths of a second. */
const MS_PER_TICK = 10;

interface Process {
  name: string;
  state: string;
  cpuMs: number;
  session: number;
  children: number[];
}

/** Samples each main process with its descendants. @param proc for tests */
export function sampleProcesses(mainPids: readonly number[], proc = "/proc"): ProcessSample[] {
  const table = readTable(proc);
  return mainPids.map((pid) => sampleOne(pid, table, proc));
}

/** Whether a pid of the engine is a process here: not so with an engine elsewhere. @param containerId all 64 digits */
export function isOfContainer(pid: number, containerId: string, proc = "/proc"): boolean {
  return (readTextIfReadable(`${proc}/${pid}/cgroup`, SYSTEM_FILE_BYTES) ?? "").includes(containerId);
}

/**
 * Kills the processes of an exec: its main process, all descendants, and the rest of its session. Ending the stream
 * would leave them running (kubernetes#26895). Only processes in a cgroup with the container's id are killed: a pid may
 * have been reused, or mean another process here.
 * @param containerId all 64 digits
 * @returns how many processes got SIGKILL
 */
export function killExecProcesses(hostPid: number, containerId: string): number {
  if (hostPid <= 1 || containerId.length < 64) return 0;
  const table = readTable("/proc");
  const doomed = new Set<number>();
  const queue = [...table].flatMap(([pid, { session }]) => (pid === hostPid || session === hostPid ? pid : []));
  for (let pid = queue.shift(); pid !== undefined; pid = queue.shift()) {
    if (doomed.has(pid) || !isOfContainer(pid, containerId)) continue;
    doomed.add(pid);
    queue.push(...(table.get(pid)?.children ?? []));
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

function sampleOne(mainPid: number, table: ReadonlyMap<number, Process>, proc: string): ProcessSample {
  const sample: ProcessSample = { state: "asleep", switches: 0, cpuMs: 0 };
  const main = table.get(mainPid);
  if (!main || main.state === "Z" || main.state === "X") return { ...sample, state: "gone" };
  const queue = [mainPid];
  for (let pid = queue.shift(); pid !== undefined; pid = queue.shift()) {
    const { cpuMs = 0, children = [] } = table.get(pid) ?? {};
    queue.push(...children);
    sample.cpuMs += cpuMs;
    for (const status of threadStatuses(pid, proc)) {
      if (/^State:\s+[RD]/m.test(status)) sample.state = "busy";
      for (const [, count] of status.matchAll(/^(?:non)?voluntary_ctxt_switches:\s+(\d+)/gm))
        sample.switches += Number(count);
    }
  }
  return main.name.startsWith(RUNTIME_NAME) ? { ...sample, state: "starting" } : sample;
}

/** Every process by pid. */
function readTable(proc: string): Map<number, Process> {
  const table = new Map<number, Process>();
  const parents = new Map<number, number>();
  for (const entry of readdirSync(proc)) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = readTextIfReadable(`${proc}/${entry}/stat`, SYSTEM_FILE_BYTES);
    if (stat === undefined) continue; // It ended meanwhile.
    // The name in parentheses may hold anything, parentheses and blanks too: the fields follow the last one.
    const nameEnd = stat.lastIndexOf(")");
    const fields = stat.slice(nameEnd + 2).split(" ");
    table.set(Number(entry), {
      name: stat.slice(stat.indexOf("(") + 1, nameEnd),
      state: fields[0] ?? "",
      session: Number(fields[3]),
      cpuMs: (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK,
      children: [],
    });
    parents.set(Number(entry), Number(fields[1]));
  }
  for (const [pid, parent] of parents) table.get(parent)?.children.push(pid);
  return table;
}

/** None for a process that ended meanwhile: the next sample finds its parent changed. */
const threadStatuses = (pid: number, proc: string): string[] =>
  namesIfReadable(`${proc}/${pid}/task`).flatMap(
    (thread) => readTextIfReadable(`${proc}/${pid}/task/${thread}/status`, SYSTEM_FILE_BYTES) ?? [],
  );
