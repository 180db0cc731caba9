import { readFileSync } from "node:fs";

const MS_PER_TICK = 10;

/** Fields of /proc/<pid>/stat after the name, which may itself hold spaces. `fields` starts with the state. */
export interface ProcessStat {
  name: string;
  fields: string[];
}

/** @returns undefined for a process that has ended */
export function readStat(pid: number): ProcessStat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const nameEnd = stat.lastIndexOf(")");
    return { name: stat.slice(stat.indexOf("(") + 1, nameEnd), fields: stat.slice(nameEnd + 2).split(" ") };
  } catch {
    return undefined;
  }
}

/**
 * User and system time of processes so far, all their threads. Unit: milliseconds, in steps of 10.
 * @throws Error when one has ended: its time would be missing from the sum
 */
export function readCpuMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const fields = readStat(pid)?.fields;
    if (fields === undefined) throw new Error(`process ${pid} has ended while it was measured`);
    return sum + (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
  }, 0);
}

/** CPU of some processes over the time that `during` takes. Unit: % of a core. */
export async function measureCpuPercent(pids: readonly number[], during: () => Promise<unknown>): Promise<number> {
  const beforeMs = readCpuMs(pids);
  const startMs = performance.now();
  await during();
  return (100 * (readCpuMs(pids) - beforeMs)) / (performance.now() - startMs);
}

/** @returns MB of one line of /proc/<pid>/status */
export function readMegabytes(pid: number, line: "VmRSS" | "RssAnon" | "VmHWM"): number {
  const kilobytes = new RegExp(`^${line}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no ${line}`);
  return (Number(kilobytes) * 1024) / 1e6;
}
