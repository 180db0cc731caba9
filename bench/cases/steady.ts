import { readFileSync } from "node:fs";
import { engineSocketPath, TestNode } from "../../test/support/test-node.ts";
import type { BenchCase, Measurement } from "../bench-case.ts";
import { cpuMsOf, findEngineProcesses } from "../engine-processes.ts";
import { idlePod, untilRunning } from "../running-pods.ts";

const PODS = 110;
const REST_MS = 600_000;
/** What starting up needed is given back within this time. */
const SETTLE_MS = 10_000;
const SAMPLES = 20;

export interface SteadyOptions {
  pods: number;
  /** How long nothing is asked of the kubelet; the engine is measured without it for a fifth of that. */
  restMs: number;
}

/** @returns megabytes of one line of /proc/<pid>/status */
function readMegabytes(pid: number, line: "VmRSS" | "RssAnon"): number {
  const kilobytes = new RegExp(`^${line}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kilobytes) * 1024) / 1e6;
}

/** CPU of some processes over a time in which `during` runs. Unit: % of a core. */
async function percentOf(pids: readonly number[], ms: number, during: () => Promise<unknown>): Promise<number> {
  const before = cpuMsOf(pids);
  await during();
  return (100 * (cpuMsOf(pids) - before)) / ms;
}

/** What the kubelet and its engine need while nothing happens, and what the engine needs alone with the same containers. */
export async function measureSteady({ pods, restMs }: SteadyOptions): Promise<Measurement[]> {
  const node = new TestNode();
  try {
    const engine = findEngineProcesses(engineSocketPath());
    for (let index = 0; index < pods; index++) node.writeManifest(`p${index}.json`, idlePod(`p${index}`));
    const kubelet = await node.start();
    await untilRunning(node, pods);
    await Bun.sleep(SETTLE_MS);
    const resident: number[] = [readMegabytes(kubelet.pid, "VmRSS")];
    const rest = async () => {
      for (let sample = 0; sample < SAMPLES; sample++) {
        await Bun.sleep(restMs / SAMPLES);
        resident.push(readMegabytes(kubelet.pid, "VmRSS"));
      }
    };
    let engineWith = Number.NaN;
    const own = await percentOf([kubelet.pid], restMs, async () => {
      engineWith = await percentOf(engine, restMs, rest);
    });
    const anonymous = readMegabytes(kubelet.pid, "RssAnon");
    await kubelet.stop();
    await Bun.sleep(SETTLE_MS);
    const engineAlone = await percentOf(engine, restMs / 5, () => Bun.sleep(restMs / 5));
    const minutes = restMs / 60_000;
    const last = resident.at(-1) ?? Number.NaN;
    return [
      {
        what: `CPU of the kubelet with ${pods} pods, nobody asking, over ${minutes} min`,
        unit: "%",
        value: own,
        goal: { atMost: 0.3 },
      },
      { what: "  of dockerd and containerd meanwhile", unit: "%", value: engineWith },
      { what: "  of these without the kubelet, the same containers running", unit: "%", value: engineAlone },
      {
        what: "  the difference: what the kubelet makes the engine do",
        unit: "%",
        value: engineWith - engineAlone,
        goal: { atMost: 0.1 },
      },
      {
        what: `RSS with ${pods} pods after ${minutes} min`,
        unit: "MB",
        value: last,
        runs: resident,
        goal: { atMost: 70 },
      },
      { what: "  of which anonymous", unit: "MB", value: anonymous },
      { what: "  grown since the start was over", unit: "MB", value: last - (resident[0] ?? Number.NaN) },
    ];
  } finally {
    await node.cleanUp();
  }
}

export const steadyCases: readonly BenchCase[] = [
  {
    name: "steady",
    about: `CPU of us and of the engine, and memory, with ${PODS} pods at rest for ${REST_MS / 60_000} minutes`,
    run: () => measureSteady({ pods: PODS, restMs: REST_MS }),
  },
];
