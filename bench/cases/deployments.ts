import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeContainersOf, TestNode } from "../../test/support/test-node.ts";
import { type BenchCase, type Measurement, median } from "../bench-case.ts";
import { measureCpuPercent } from "../process-usage.ts";
import { idlePod, SETTLE_MS, startByRunOnce, startWithPods } from "../running-pods.ts";

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

/** Starts and removes the objects once. @returns milliseconds from process start to exit 0 */
async function measureStart(node: TestNode, toManifest: ToManifest): Promise<number> {
  const directory = join(node.directory, toManifest.name);
  mkdirSync(directory, { recursive: true });
  for (let i = 0; i < COUNT; i++) writeFileSync(join(directory, `p${i}.json`), JSON.stringify(toManifest(`p${i}`)));
  const ms = await startByRunOnce(node, directory);
  await removeContainersOf(node.docker, node.name);
  return ms;
}

/** CPU of a kubelet at rest, with its own root directory: the pods of `--runonce` belong to another one. Unit: % of a core. */
async function measureRest(toManifest: ToManifest): Promise<number> {
  await using node = new TestNode();
  const kubelet = await startWithPods(node, COUNT, toManifest);
  await Bun.sleep(SETTLE_MS);
  return await measureCpuPercent([kubelet.pid], () => Bun.sleep(REST_MS));
}

async function measure(): Promise<Measurement[]> {
  await using node = new TestNode();
  // The first start loads the pause image.
  await measureStart(node, idlePod);
  const runs: number[] = [];
  const plain: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    plain.push(await measureStart(node, idlePod));
    runs.push(await measureStart(node, idleDeployment));
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
    about: "--runonce with 100 Deployments of one pod, and their rest, against the same pods without Deployments",
    run: measure,
  },
];
