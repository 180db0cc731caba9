import { TestNode } from "../../test/support/test-node.ts";
import type { BenchCase, Measurement } from "../bench-case.ts";
import { readMegabytes } from "../process-usage.ts";
import { SETTLE_MS, startWithPods } from "../running-pods.ts";

async function measure(count: number): Promise<Measurement[]> {
  await using node = new TestNode();
  const kubelet = await startWithPods(node, count);
  await Bun.sleep(SETTLE_MS);
  const pods = `${count} ${count === 1 ? "pod" : "pods"}`;
  return [
    { what: `RSS with ${pods}`, unit: "MB", value: readMegabytes(kubelet.pid, "VmRSS"), goal: { atMost: 70 } },
    { what: `  of which anonymous`, unit: "MB", value: readMegabytes(kubelet.pid, "RssAnon") },
    { what: `  peak since start`, unit: "MB", value: readMegabytes(kubelet.pid, "VmHWM") },
  ];
}

const memory = (count: number): BenchCase => ({
  name: `memory-${count}`,
  about: `memory of the long-running kubelet with ${count === 1 ? "one pod" : `${count} pods`}, shortly after the start`,
  run: () => measure(count),
});

export const memoryCases: readonly BenchCase[] = [memory(1), memory(50)];
