import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeContainersOf, TestNode } from "../../test/support/test-node.ts";
import { type BenchCase, type Measurement, median } from "../bench-case.ts";
import { measureCpuPercent } from "../process-usage.ts";
import { idlePod, SETTLE_MS, untilRunning } from "../running-pods.ts";

const COUNT = 100;
const ROUNDS = 3;
const REST_MS = 30_000;

const idleDeployment = (name: string) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: idlePod(name).spec },
  },
});

type ToManifest = (name: string) => object;

/** @returns milliseconds from process start to exit 0 */
async function startByRunOnce(node: TestNode, toManifest: ToManifest): Promise<number> {
  const directory = join(node.directory, toManifest.name);
  mkdirSync(directory, { recursive: true });
  for (let i = 0; i < COUNT; i++) writeFileSync(join(directory, `p${i}.json`), JSON.stringify(toManifest(`p${i}`)));
  const started = performance.now();
  const { exitCode, stderr } = await node.runOnce([directory]);
  const ms = performance.now() - started;
  if (exitCode !== 0) throw new Error(`--runonce ended with ${exitCode}:\n${stderr}`);
  await removeContainersOf(node.docker, node.name);
  return ms;
}

/** CPU of a kubelet at rest, with a root directory of its own: the pods of `--runonce` belong to theirs. Unit: % of a core. */
async function measureRest(toManifest: ToManifest): Promise<number> {
  const node = new TestNode();
  try {
    for (let i = 0; i < COUNT; i++) node.writeManifest(`p${i}.json`, toManifest(`p${i}`));
    const kubelet = await node.start();
    await untilRunning(node, COUNT);
    await Bun.sleep(SETTLE_MS);
    return await measureCpuPercent([kubelet.pid], () => Bun.sleep(REST_MS));
  } finally {
    await node.cleanUp();
  }
}

async function measure(): Promise<Measurement[]> {
  await using node = new TestNode();
  // The first start loads the pause image.
  await startByRunOnce(node, idlePod);
  const runs: number[] = [];
  const plain: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    plain.push(await startByRunOnce(node, idlePod));
    runs.push(await startByRunOnce(node, idleDeployment));
  }
  const rest = await measureRest(idleDeployment);
  const restOfPods = await measureRest(idlePod);
  return [
    {
      what: `${COUNT} Deployments of one pod from nothing to running`,
      unit: "ms",
      value: median(runs),
      runs,
      floor: median(plain),
      floorText: "the same pods without Deployments",
      goal: { ratioAtMost: 1.1 },
    },
    {
      what: `CPU of the kubelet with ${COUNT} Deployments at rest, over ${REST_MS / 1000} s`,
      unit: "%",
      value: rest,
      floor: restOfPods,
      floorText: "the same pods without Deployments",
    },
  ];
}

export const deploymentsCases: readonly BenchCase[] = [
  {
    name: "deployments-100",
    about: "--runonce with 100 Deployments of one pod, and their rest, against the same pods given plainly",
    run: measure,
  },
];
