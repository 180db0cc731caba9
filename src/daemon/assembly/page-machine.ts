import { type CoreTimes, type InterfaceCounters, parseCoreTimes } from "../../base/host/proc.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { CoreUse, InterfaceRow, MachineMemory } from "../../page/wire.ts";
import { knownPaths, type ShownCgroup } from "../../server/page/cgroup-tree.ts";
import { meminfoBytes } from "../../stats/cgroups/cgroup-figures.ts";
import type { CgroupReader } from "../../stats/cgroups/cgroup-reader.ts";
import { readText } from "../../stats/cgroups/read-text.ts";
import type { NodeSample } from "../../stats/node-sample.ts";

export function readMemory(proc = "/proc"): MachineMemory {
  const meminfo = readText(`${proc}/meminfo`) ?? "";
  const bytes = (name: string) => meminfoBytes(meminfo, name) ?? 0;
  return {
    totalBytes: bytes("MemTotal"),
    availableBytes: bytes("MemAvailable"),
    cachedBytes: bytes("Cached") + bytes("Buffers"),
    swapBytes: bytes("SwapTotal"),
    swapUsedBytes: bytes("SwapTotal") - bytes("SwapFree"),
  };
}

/** Interfaces that carried something. Pure. */
export const toInterfaceRows = (interfaces: readonly InterfaceCounters[]): InterfaceRow[] =>
  interfaces
    .filter(({ rxBytes, txBytes }) => rxBytes + txBytes > 0)
    .map(({ name, rxBytes, txBytes, rxErrors, txErrors, rxDropped, txDropped }) => ({
      name,
      receivedBytes: rxBytes,
      sentBytes: txBytes,
      errors: rxErrors + txErrors,
      dropped: rxDropped + txDropped,
    }));

/** Use between two readings; empty when cores were added or removed in between. Pure. */
export function toCoreUse(before: readonly CoreTimes[], after: readonly CoreTimes[]): CoreUse[] {
  if (before.length !== after.length) return [];
  return after.map((now, index) => {
    const then = before[index] ?? now;
    const spent = (kind: keyof CoreTimes) => Math.max(0, now[kind] - then[kind]);
    const all = spent("user") + spent("system") + spent("wait") + spent("stolen") + spent("idle");
    const percent = (kind: keyof CoreTimes) => (all > 0 ? (spent(kind) / all) * 100 : 0);
    return { user: percent("user"), system: percent("system"), wait: percent("wait"), stolen: percent("stolen") };
  });
}

/** Readings that are older are not compared with: their average says nothing about now. */
const MAX_AGE_MS = 60_000;
/** Readings that are younger are: a tick is ten milliseconds. */
const MIN_AGE_MS = 200;
/** Between the two readings of the first request. */
const FIRST_WINDOW_MS = 300;
/** Cgroups that are not of pods, read for one request. */
const MAX_CGROUPS = 64;

interface UsageReading {
  atMs: number;
  usageNanoseconds: number;
}

/** Rates of what the kernel only counts, from one request of the node's view to the next. */
export class MachineRates {
  readonly #clock: Clock;
  readonly #proc: string;
  #cores: { atMs: number; times: CoreTimes[] } | undefined;
  #coreUse: CoreUse[] = [];
  #cgroups = new Map<string, UsageReading>();

  constructor(clock: Clock, proc = "/proc") {
    this.#clock = clock;
    this.#proc = proc;
  }

  /** The first request after a pause waits 300 ms. */
  async cores(): Promise<CoreUse[]> {
    const read = () => ({
      atMs: this.#clock.monotonicMs(),
      times: parseCoreTimes(readText(`${this.#proc}/stat`) ?? ""),
    });
    let now = read();
    let before = this.#cores;
    if (before && now.atMs - before.atMs < MIN_AGE_MS) return this.#coreUse;
    if (!before || now.atMs - before.atMs > MAX_AGE_MS) {
      before = now;
      await this.#clock.sleep(FIRST_WINDOW_MS);
      now = read();
    }
    this.#cores = now;
    this.#coreUse = toCoreUse(before.times, now.times);
    return this.#coreUse;
  }

  /** The cgroups directly below the root and those below them, without the ones of pods. */
  otherCgroups(reader: CgroupReader, sample: NodeSample): ShownCgroup[] {
    const known = knownPaths(sample);
    const found: ShownCgroup[] = [];
    const seen = new Map<string, UsageReading>();
    const atMs = this.#clock.monotonicMs();
    const readBelow = (parent: string, depth: number): void => {
      for (const name of reader.children(reader.ofPath(parent === "" ? "/" : parent))) {
        const path = `${parent}/${name}`;
        if (known.has(path)) continue;
        if (found.length >= MAX_CGROUPS) return;
        const cgroup = reader.open(reader.ofPath(path));
        const stats = cgroup.read("all", { hasQuota: false, kind: "group" });
        cgroup.close();
        if (!stats) continue;
        const { usageNanoseconds } = stats.cpu;
        const before = this.#cgroups.get(path);
        const isComparable = before && atMs - before.atMs >= MIN_AGE_MS && usageNanoseconds >= before.usageNanoseconds;
        const usageNanoCores = isComparable
          ? ((usageNanoseconds - before.usageNanoseconds) / (atMs - before.atMs)) * 1000
          : undefined;
        seen.set(path, { atMs, usageNanoseconds });
        found.push({ path, stats, usageNanoCores });
        if (depth > 1) readBelow(path, depth - 1);
      }
    };
    readBelow("", 2);
    this.#cgroups = seen;
    return found;
  }
}
