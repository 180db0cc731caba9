import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readStat } from "./process-usage.ts";

/**
 * The processes of the engine behind a Unix socket: dockerd, and the containerd it has started (or the machine's, when it
 * has started none). Not the shims, of which each container has one.
 */
export function findEngineProcesses(socketPath: string): number[] {
  const daemon = findListener(socketPath, "dockerd");
  if (daemon === undefined) throw new Error(`no process "dockerd" of this machine listens on ${socketPath}`);
  const containerds = processIds().filter((pid) => nameOf(pid) === "containerd");
  const own = containerds.filter((pid) => parentOf(pid) === daemon);
  return [daemon, ...(own.length > 0 ? own : containerds.slice(0, 1))];
}

function findListener(socketPath: string, name: string): number | undefined {
  const inodes = readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[7] !== undefined && sameFile(columns[7], socketPath))
    .map((columns) => `socket:[${columns[6]}]`);
  return processIds().find((pid) => nameOf(pid) === name && descriptorsOf(pid).some((link) => inodes.includes(link)));
}

/** The same socket is `/run/docker.sock` to some and `/var/run/docker.sock` to others. */
const sameFile = (a: string, b: string) => a.replace(/^\/var\/run\//, "/run/") === b.replace(/^\/var\/run\//, "/run/");

const processIds = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

const nameOf = (pid: number) => readStat(pid)?.name;

const parentOf = (pid: number) => Number(readStat(pid)?.fields[1]);

function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`);
    } catch {
      return []; // Closed meanwhile.
    }
  });
}
