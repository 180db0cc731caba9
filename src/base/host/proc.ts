import { hexToIpv6 } from "../text/ip-range.ts";

/** Counters of an interface; in `/proc/<pid>/net/dev` four more follow those of each direction. */
const NET_FIELDS = [
  "rxBytes",
  "rxPackets",
  "rxErrors",
  "rxDropped",
  "",
  "",
  "",
  "",
  "txBytes",
  "txPackets",
  "txErrors",
  "txDropped",
] as const;

/** Interface counters of `/proc/<pid>/net/dev`, since the interface was made. */
export type InterfaceCounters = { name: string } & Record<Exclude<(typeof NET_FIELDS)[number], "">, number>;

/** Descriptors and states of the processes of one cgroup. */
export interface ProcessCounts {
  fds: number;
  /** undefined: too many descriptors to read each. */
  sockets: number | undefined;
  sleeping: number;
  running: number;
  stopped: number;
  /** Waiting for a disk, mostly. */
  uninterruptible: number;
}

/** `/proc/<pid>/net/dev`, in its order, without the loopback and the host's ends of containers' interfaces. Source: cAdvisor. */
export function parseNetDev(text: string): InterfaceCounters[] {
  const interfaces: InterfaceCounters[] = [];
  for (const line of text.split("\n").slice(2)) {
    const colon = line.indexOf(":");
    if (colon < 0) continue;
    const name = line.slice(0, colon).trim();
    if (name === "lo" || name.startsWith("veth") || name.startsWith("docker")) continue;
    const counts = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/);
    interfaces.push({ name, ...toCounters(NET_FIELDS, counts) });
  }
  return interfaces;
}

export interface Route {
  device: string;
  /** As `172.17.0.0/16`. */
  subnet: string;
  /** The device itself is in the subnet: no router is between. */
  isDirect: boolean;
}

/** The routes of IPv4 in `/proc/net/route`, by network (`0.0.0.0/0` is the default one). Source: proc(5). */
export function parseRoutes(table: string): Route[] {
  return table.split("\n").flatMap((line) => {
    const [device = "", destination = "", gateway, , , , , mask = ""] = line.trim().split(/\s+/);
    if (!/^[0-9A-F]{8}$/i.test(destination) || !/^[0-9A-F]{8}$/i.test(mask)) return [];
    const bits = Number.parseInt(mask, 16).toString(2).replaceAll("0", "").length;
    // The kernel prints addresses as numbers in the order of the machine's bytes.
    const address = [6, 4, 2, 0].map((at) => Number.parseInt(destination.slice(at, at + 2), 16)).join(".");
    return [{ device, subnet: `${address}/${bits}`, isDirect: gateway === "00000000" }];
  });
}

/** `/proc/net/ipv6_route`. */
export const parseIpv6Routes = (table: string): Route[] =>
  table.split("\n").flatMap((line) => {
    const [digits = "", bits = "", , , gateway, , , , , device = ""] = line.trim().split(/\s+/);
    if (!/^[0-9a-f]{32}$/.test(digits)) return [];
    const subnet = `${hexToIpv6(digits)}/${Number.parseInt(bits, 16)}`;
    return [{ device, subnet, isDirect: /^0+$/.test(gateway ?? "") }];
  });

/** The interface of the default route; undefined when there is none. */
export const parseDefaultInterface = (table: string): string | undefined =>
  parseRoutes(table).find(({ subnet }) => subnet === "0.0.0.0/0")?.device;

/** State of a `/proc/<pid>/stat` line as cAdvisor names it; undefined for a zombie or an unreadable line. */
export function parseProcessState(stat: string): ProcessState | undefined {
  // The command is in parentheses and may contain parentheses and spaces.
  return PROCESS_STATES[stat.charAt(stat.lastIndexOf(")") + 2)];
}

type ProcessState = "sleeping" | "running" | "stopped" | "uninterruptible";

const PROCESS_STATES: Readonly<Record<string, ProcessState | undefined>> = {
  S: "sleeping",
  I: "sleeping",
  R: "running",
  T: "stopped",
  t: "stopped",
  D: "uninterruptible",
};

/** `Max open files` of `/proc/<pid>/limits`; -1 is "unlimited", as cAdvisor shows it. */
export function parseOpenFilesLimit(limits: string): { soft: number; hard: number } | undefined {
  const match = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits);
  if (!match) return undefined;
  const toNumber = (text: string | undefined) => (text === "unlimited" ? -1 : Number(text));
  return { soft: toNumber(match[1]), hard: toNumber(match[2]) };
}

/** Seconds since the epoch at which the machine started, from `/proc/stat`. */
export function parseBootTimeSeconds(stat: string): number | undefined {
  const match = /^btime (\d+)/m.exec(stat);
  return match ? Number(match[1]) : undefined;
}

/** Time that one core has spent, in ticks. */
export interface CoreTimes {
  /** Programs, niced ones and virtual machines included. */
  user: number;
  /** The kernel, interrupts included. */
  system: number;
  /** Idle while a task waited for a disk. */
  wait: number;
  /** Other machines of the same host had the core. */
  stolen: number;
  idle: number;
}

/** The cores of `/proc/stat`, in their order; cores that are switched off are left out. */
export function parseCoreTimes(stat: string): CoreTimes[] {
  return [...stat.matchAll(/^cpu\d+ (.*)$/gm)].map(([, fields = ""]) => {
    const [user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, stolen = 0] = fields
      .split(" ")
      .map(Number);
    return { user: user + nice, system: system + irq + softirq, wait, stolen, idle };
  });
}

/** Tasks that exist, from `/proc/loadavg` (`0.21 0.18 0.07 1/130 16059`). */
export function parseTaskCount(loadavg: string): number | undefined {
  const match = /\s\d+\/(\d+)\s/.exec(loadavg);
  return match ? Number(match[1]) : undefined;
}

/** Counters of a disk in `/proc/diskstats`, which follow its numbers and its name. */
const DISK_FIELDS = [
  "reads",
  "readsMerged",
  "sectorsRead",
  "readMilliseconds",
  "writes",
  "writesMerged",
  "sectorsWritten",
  "writeMilliseconds",
  "inProgress",
  "ioMilliseconds",
  "weightedIoMilliseconds",
] as const;

/** One disk of `/proc/diskstats`. Times in milliseconds, sectors of 512 bytes. */
export type DiskCounters = { major: number; minor: number; name: string } & Record<
  (typeof DISK_FIELDS)[number],
  number
>;

export function parseDiskstats(text: string): DiskCounters[] {
  return text.split("\n").flatMap((line) => {
    const [major, minor, name = "", ...counts] = line.trim().split(/\s+/);
    if (counts.length < DISK_FIELDS.length) return [];
    return [{ major: Number(major), minor: Number(minor), name, ...toCounters(DISK_FIELDS, counts) }];
  });
}

/** Numbers by the names of their columns; a column without a name is left out, a missing number is 0. */
function toCounters<F extends string>(
  fields: readonly F[],
  numbers: readonly string[],
): Record<Exclude<F, "">, number> {
  const named = fields.flatMap((field, index) => (field === "" ? [] : [[field, Number(numbers[index] ?? 0)]]));
  return Object.fromEntries(named);
}

/** An amount of `/proc/meminfo`: bytes, or a number where the line has no unit. */
export function meminfoBytes(meminfo: string, name: string): number | undefined {
  const match = new RegExp(`^${name}:\\s+(\\d+)( kB)?`, "m").exec(meminfo);
  return match ? Number(match[1]) * (match[2] ? 1024 : 1) : undefined;
}
