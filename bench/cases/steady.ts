import { engineSocketPath, TestNode } from "../../test/support/test-node.ts";
import type { BenchCase, Measurement } from "../bench-case.ts";
import { findEngineProcesses } from "../engine-processes.ts";
import { measureCpuPercent, readMegabytes } from "../process-usage.ts";
import { SETTLE_MS, startWithPods } from "../running-pods.ts";

const PODS = 110;
/** Time without requests to the kubelet; the engine alone is measured for a fifth of that. */
const REST_MS = 600_000;
const SAMPLES = 20;

/** Use of the kubelet and its engine while nothing happens, and of the engine alone with the same containers. */
async function measureSteady(): Promise<Measurement[]> {
  await using node = new TestNode();
  const engine = findEngineProcesses(engineSocketPath());
  const kubelet = await startWithPods(node, PODS);
  await Bun.sleep(SETTLE_MS);
  const resident: number[] = [readMegabytes(kubelet.pid, "VmRSS")];
  const rest = async () => {
    for (let sample = 0; sample < SAMPLES; sample++) {
      await Bun.sleep(REST_MS / SAMPLES);
      resident.push(readMegabytes(kubelet.pid, "VmRSS"));
    }
  };
  let engineWith = Number.NaN;
  const own = await measureCpuPercent([kubelet.pid], async () => {
    engineWith = await measureCpuPercent(engine, rest);
  });
  const anonymous = readMegabytes(kubelet.pid, "RssAnon");
  await kubelet.stop();
  await Bun.sleep(SETTLE_MS);
  const engineAlone = await measureCpuPercent(engine, () => Bun.sleep(REST_MS / 5));
  const minutes = REST_MS / 60_000;
  const last = resident.at(-1) ?? Number.NaN;
  return [
    {
      what: `CPU of the kubelet with ${PODS} pods, without requests, over ${minutes} min`,
      unit: "%",
      value: own,
      goal: { atMost: 0.3 },
    },
    { what: "  of dockerd and containerd meanwhile", unit: "%", value: engineWith },
    { what: "  of these without the kubelet, the same containers running", unit: "%", value: engineAlone },
    {
      what: "  the difference: work that the kubelet causes in the engine",
      unit: "%",
      value: engineWith - engineAlone,
      goal: { atMost: 0.1 },
    },
    {
      what: `RSS with ${PODS} pods after ${minutes} min`,
      unit: "MB",
      value: last,
      runs: resident,
      goal: { atMost: 70 },
    },
    { what: "  of which anonymous", unit: "MB", value: anonymous },
    { what: "  grown since the start was over", unit: "MB", value: last - (resident[0] ?? Number.NaN) },
  ];
}

export const steadyCases: readonly BenchCase[] = [
  {
    name: "steady",
    about: `CPU of the kubelet and of the engine, and memory, with ${PODS} pods at rest for ${REST_MS / 60_000} minutes`,
    run: measureSteady,
  },
];
