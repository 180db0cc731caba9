import { hostname, networkInterfaces } from "node:os";
import { namesIfReadable, readTextIfReadable, SYSTEM_FILE_BYTES } from "../files/whole-file.ts";
import type { NodeInfo } from "../model/node.ts";
import { meminfoBytes, parseDefaultInterface } from "./proc.ts";

/** Architecture of this machine, as images and nodes name it. */
export const ARCHITECTURE = process.arch === "x64" ? "amd64" : process.arch;

/** Lower-cased host name, or the value of `--hostname-override`. */
export const readNodeName = (override: string) => (override || hostname()).trim().toLowerCase();

/** Facts of this machine. Missing files (an unusual kernel) yield zero or an empty text. */
export function readNodeInfo(name: string, nodeIp: string): NodeInfo {
  const meminfo = readText("/proc/meminfo");
  return {
    name,
    ip: nodeIp || readDefaultAddress(),
    cpuCount: navigator.hardwareConcurrency,
    memoryBytes: meminfoBytes(meminfo, "MemTotal") ?? 0,
    swapBytes: meminfoBytes(meminfo, "SwapTotal") ?? 0,
    ...readPidLimit(),
    hugePageBytes: readHugePages("/sys/kernel/mm/hugepages"),
  };
}

/** Source: the kubelet takes the lower of the two. */
function readPidLimit(): { pidLimit?: number } {
  const limits = ["pid_max", "threads-max"].map((name) => Number(readText(`/proc/sys/kernel/${name}`).trim()));
  const known = limits.filter((limit) => limit > 0);
  return known.length > 0 ? { pidLimit: Math.min(...known) } : {};
}

/** Huge pages set aside: `hugepages-2048kB/nr_hugepages` counts those of `hugepages-2Mi`. */
export function readHugePages(directory: string): Record<string, number> {
  const bytes: Record<string, number> = {};
  for (const name of namesIfReadable(directory)) {
    const kibibytes = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0);
    if (kibibytes === 0) continue;
    const count = Number(readText(`${directory}/${name}/nr_hugepages`).trim());
    bytes[`hugepages-${toBinarySize(kibibytes)}`] = count * kibibytes * 1024;
  }
  return bytes;
}

/** `2048` KiB is `2Mi`, as resource names write it. */
function toBinarySize(kibibytes: number): string {
  const units = ["Ki", "Mi", "Gi", "Ti"];
  let [size, unit] = [kibibytes, 0];
  while (size % 1024 === 0 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${size}${units[unit]}`;
}

/** Address of the interface with the default route; else the first that is not loopback; else loopback. */
export function readDefaultAddress(): string {
  const interfaces = networkInterfaces();
  const preferred = parseDefaultInterface(readText("/proc/net/route"));
  const names = preferred ? [preferred, ...Object.keys(interfaces)] : Object.keys(interfaces);
  for (const family of ["IPv4", "IPv6"]) {
    for (const name of names) {
      const address = interfaces[name]?.find((it) => it.family === family && !it.internal && !isLinkLocal(it.address));
      if (address) return address.address;
    }
  }
  return "127.0.0.1";
}

const CAP_SYS_RESOURCE = 1n << 24n;

/**
 * Whether an engine on this machine may lower an OOM score (CAP_SYS_RESOURCE). What cannot be read counts as yes.
 * @param own text of `/proc/self/status`
 * @param init text of `/proc/1/status`: what an engine that is root may have
 */
export function mayLowerOomScores(isRoot: boolean, own: string, init: string): boolean {
  const [text, set] = isRoot ? [own, "CapEff"] : [init, "CapBnd"];
  const capabilities = new RegExp(`^${set}:\\s*([0-9a-f]+)$`, "m").exec(text)?.[1];
  return capabilities === undefined || (BigInt(`0x${capabilities}`) & CAP_SYS_RESOURCE) !== 0n;
}

/** {@link mayLowerOomScores}, of this process and this machine. */
export const readMayLowerOomScores = () =>
  mayLowerOomScores(process.getuid?.() === 0, readText("/proc/self/status"), readText("/proc/1/status"));

const isLinkLocal = (address: string) => address.startsWith("fe80:") || address.startsWith("169.254.");

const readText = (path: string): string => readTextIfReadable(path, SYSTEM_FILE_BYTES) ?? "";
