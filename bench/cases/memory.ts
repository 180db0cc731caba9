import { readFileSync } from "node:fs";
import { TestNode } from "../../test/support/test-node.ts";
import type { BenchCase, Measurement } from "../bench-case.ts";
import { idlePod, untilRunning } from "../running-pods.ts";

/** What starting up needed is given back within this time. */
const SETTLE_MS = 10_000;

/** @returns MB of one line of /proc/<pid>/status, e.g. `VmRSS` */
function readMegabytes(pid: number, line: string): number {
  const kilobytes = new RegExp(`^${line}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no ${line}`);
  return (Number(kilobytes) * 1024) / 1e6;
}

async function measure(count: number): Promise<Measurement[]> {
  const node = new TestNode();
  try {
    for (let i = 0; i < count; i++) node.writeManifest(`p${i}.json`, idlePod(`p${i}`));
    const kubelet = await node.start();
    await untilRunning(node, count);
    await Bun.sleep(SETTLE_MS);
    const pods = `${count} ${count === 1 ? "pod" : "pods"}`;
    return [
      { what: `RSS with ${pods}`, unit: "MB", value: readMegabytes(kubelet.pid, "VmRSS"), goal: { atMost: 70 } },
      { what: `  of which anonymous`, unit: "MB", value: readMegabytes(kubelet.pid, "RssAnon") },
      { what: `  peak since start`, unit: "MB", value: readMegabytes(kubelet.pid, "VmHWM") },
    ];
  } finally {
    await node.cleanUp();
  }
}

const memory = (count: number): BenchCase => ({
  name: `memory-${count}`,
  about: `memory of the long-running kubelet with ${count === 1 ? "one pod" : `${count} pods`}, shortly after the start`,
  run: () => measure(count),
});

export const memoryCases: readonly BenchCase[] = [memory(1), memory(50)];
