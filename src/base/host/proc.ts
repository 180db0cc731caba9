/** Interface counters of `/proc/<pid>/net/dev`, since the interface was made. */
export interface InterfaceCounters {
  name: string;
  rxBytes: number;
  rxPackets: number;
  rxErrors: number;
  rxDropped: number;
  txBytes: number;
  txPackets: number;
  txErrors: number;
  txDropped: number;
}

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
    const field = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/)
      .map(Number);
    const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0] = field;
    const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = field.slice(8);
    interfaces.push({ name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped });
  }
  return interfaces;
}

/** Interface of the default route in `/proc/net/route`; undefined without one. */
export function parseDefaultInterface(route: string): string | undefined {
  for (const line of route.split("\n").slice(1)) {
    const [name, destination, , , , , , mask] = line.split(/\s+/);
    if (destination === "00000000" && mask === "00000000") return name;
  }
  return undefined;
}

/** State of a `/proc/<pid>/stat` line as cAdvisor names it; undefined for a zombie or an unreadable line. */
export function parseProcessState(stat: string): "sleeping" | "running" | "stopped" | "uninterruptible" | undefined {
  // The command is in parentheses and may contain parentheses and spaces.
  switch (stat.charAt(stat.lastIndexOf(")") + 2)) {
    case "S":
    case "I":
      return "sleeping";
    case "R":
      return "running";
    case "T":
    case "t":
      return "stopped";
    case "D":
      return "uninterruptible";
    default:
      return undefined;
  }
}

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

/** One disk of `/proc/diskstats`. Times in milliseconds, sectors of 512 bytes. */
export interface DiskCounters {
  major: number;
  minor: number;
  name: string;
  reads: number;
  readsMerged: number;
  sectorsRead: number;
  readMilliseconds: number;
  writes: number;
  writesMerged: number;
  sectorsWritten: number;
  writeMilliseconds: number;
  inProgress: number;
  ioMilliseconds: number;
  weightedIoMilliseconds: number;
}

export function parseDiskstats(text: string): DiskCounters[] {
  const disks: DiskCounters[] = [];
  for (const line of text.split("\n")) {
    const field = line.trim().split(/\s+/);
    if (field.length < 14) continue;
    const number = (index: number) => Number(field[index]);
    disks.push({
      major: number(0),
      minor: number(1),
      name: field[2]!,
      reads: number(3),
      readsMerged: number(4),
      sectorsRead: number(5),
      readMilliseconds: number(6),
      writes: number(7),
      writesMerged: number(8),
      sectorsWritten: number(9),
      writeMilliseconds: number(10),
      inProgress: number(11),
      ioMilliseconds: number(12),
      weightedIoMilliseconds: number(13),
    });
  }
  return disks;
}
