import { parseProcCgroup } from "../cgroups/cgroup-layout.ts";
import type { CgroupReader } from "../cgroups/cgroup-reader.ts";
import { meminfoBytes } from "../cgroups/cgroup-v2.ts";
import { parseBootTimeSeconds } from "../cgroups/proc.ts";
import { readNames, readText } from "../cgroups/read-text.ts";
import { parseProcessUsage } from "../metrics/process-metrics.ts";

/** One process, as cAdvisor's `ps` resource shows it: the name of the program, never its arguments. */
export interface ProcessInfo {
  user: string;
  pid: number;
  parent_pid: number;
  /** e.g. `06:21` or `Nov20`. */
  start_time: string;
  percent_cpu: number;
  percent_mem: number;
  /** Bytes. */
  rss: number;
  virtual_size: number;
  status: string;
  /** CPU time, `hh:mm:ss`. */
  running_time: string;
  cgroup_path: string;
  cmd: string;
  fd_count: number;
}

/** Facts of the node that all processes are measured against. */
export interface ProcessContext {
  nowSeconds: number;
  bootSeconds: number;
  memoryBytes: number;
  /** Names of the users of the node, by id. */
  users: ReadonlyMap<string, string>;
}

/** Processes in a cgroup and below it. `/` is every process of the node. */
export function readProcesses(
  reader: CgroupReader,
  cgroupPath: string,
  now: Date,
  roots: { proc: string; etc: string },
): ProcessInfo[] {
  const { proc, etc } = roots;
  const context: ProcessContext = {
    nowSeconds: now.getTime() / 1000,
    bootSeconds: parseBootTimeSeconds(readText(`${proc}/stat`) ?? "") ?? 0,
    memoryBytes: meminfoBytes(readText(`${proc}/meminfo`) ?? "", "MemTotal") ?? 0,
    users: parseUsers(readText(`${etc}/passwd`) ?? ""),
  };
  return processIds(reader, cgroupPath, proc).flatMap((pid) => {
    const directory = `${proc}/${pid}`;
    const [stat, status] = [readText(`${directory}/stat`), readText(`${directory}/status`)];
    if (stat === undefined || status === undefined) return []; // It ended meanwhile.
    const paths = parseProcCgroup(readText(`${directory}/cgroup`) ?? "");
    const cgroup = paths.get("memory") ?? paths.get("") ?? "/";
    const info = toProcessInfo(stat, status, cgroup, context);
    return info ? [{ ...info, fd_count: readNames(`${directory}/fd`).length }] : [];
  });
}

/** undefined when the texts are not those of a process. */
export function toProcessInfo(
  stat: string,
  status: string,
  cgroupPath: string,
  context: ProcessContext,
): ProcessInfo | undefined {
  const usage = parseProcessUsage(stat);
  if (!usage) return undefined;
  const line = (name: string) => new RegExp(`^${name}:\\s+(.*)`, "m").exec(status)?.[1] ?? "";
  const uid = line("Uid").split(/\s/)[0] ?? "";
  const rss = meminfoBytes(status, "VmRSS") ?? 0;
  const startSeconds = context.bootSeconds + usage.startedAfterBootSeconds;
  const livedSeconds = Math.max(1, context.nowSeconds - startSeconds);
  return {
    user: context.users.get(uid) ?? uid,
    pid: Number(line("Pid")),
    parent_pid: Number(line("PPid")),
    start_time: toStartTime(startSeconds, context.nowSeconds),
    percent_cpu: Math.round((usage.cpuSeconds / livedSeconds) * 1000) / 10,
    percent_mem: context.memoryBytes > 0 ? Math.round((rss / context.memoryBytes) * 1000) / 10 : 0,
    rss,
    virtual_size: usage.virtualBytes,
    status: line("State").slice(0, 1),
    running_time: toClockTime(usage.cpuSeconds),
    cgroup_path: cgroupPath,
    cmd: line("Name"),
    fd_count: 0,
  };
}

/** Names by user id of a passwd file. */
export function parseUsers(passwd: string): Map<string, string> {
  const users = new Map<string, string>();
  for (const line of passwd.split("\n")) {
    const [name, , uid] = line.split(":");
    if (name && uid && !users.has(uid)) users.set(uid, name);
  }
  return users;
}

function processIds(reader: CgroupReader, cgroupPath: string, proc: string): number[] {
  if (cgroupPath === "/") {
    return readNames(proc)
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  }
  const found: number[] = [];
  const visit = (path: string) => {
    const directories = reader.ofPath(path);
    found.push(...reader.processIds(directories));
    for (const child of reader.children(directories)) visit(`${path}/${child}`);
  };
  visit(cgroupPath);
  return found;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// As ps: the time of day for a day, then the date. In UTC, like every time of the API.
function toStartTime(startSeconds: number, nowSeconds: number): string {
  const start = new Date(startSeconds * 1000);
  if (nowSeconds - startSeconds < 86_400) return start.toISOString().slice(11, 16);
  return `${MONTHS[start.getUTCMonth()]}${String(start.getUTCDate()).padStart(2, "0")}`;
}

function toClockTime(seconds: number): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}
