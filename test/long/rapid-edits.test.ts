import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LABEL } from "../../src/docker/labels.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { KubeletProcess } from "../support/kubelet-process.ts";
import { sleeper } from "../support/manifests.ts";
import { countDescriptors } from "../support/open-files.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { callEngine, type TestNode } from "../support/test-node.ts";

/**
 * KUBELET_TS_SOAK: minutes instead of one round; `npm run soak` sets it. In the first fifth of them our process is killed
 * now and then, after that one process lives to the end, so that it shows what grows. KUBELET_TS_SEED repeats a run.
 */
const SOAK_MINUTES = Number(process.env.KUBELET_TS_SOAK ?? 0);
const SEED = Number(process.env.KUBELET_TS_SEED ?? 20_260_102);
const EDITS_PER_ROUND = 500;
const MANIFESTS = 20;
/** Mean pause between two edits: 500 of them take most of a minute. */
const PAUSE_MS = 90;
const CONVERGE_MS = 180_000;
/** Milliseconds after a start at which the binary is killed while all pods start; each continues what the last one left. */
const KILL_POINTS_MS = [20, 60, 100, 150, 200, 300, 400, 500, 650, 800, 1000, 1300, 1600, 2000];
/** A container that is killed often enough waits this long before it is started again: less than any wait in this test. */
const FLAGS = ["--crash-loop-back-off-max=20s"];
/** How much a process that has just begun grows by its first edits. */
const WARM_UP_KIB = 40 * 1024;
/** Growth and shrinkage of the heap from round to round; 2 KiB leaked with each edit would be 20 MiB in half an hour. */
const SWING_KIB = 15 * 1024;

/** The manifest of a pod in short; that of pod `p3` is the file `p3.json`. */
interface Wish {
  revision: number;
  label: number;
  volume: boolean;
}

function toManifest(pod: string, { revision, label, volume }: Wish): string {
  const mount = volume ? { volumeMounts: [{ name: "data", mountPath: "/data" }] } : {};
  const spec = {
    terminationGracePeriodSeconds: 2,
    ...(volume && { volumes: [{ name: "data", emptyDir: { medium: revision % 2 === 0 ? "Memory" : "" } }] }),
  };
  return JSON.stringify(
    sleeper(pod, { ...mount, args: [String(revision)] }, spec, { labels: { label: String(label) } }),
  );
}

/** Makes random edits in a directory of manifests, and knows the pods they have to end in. */
class Operator {
  readonly #directory: string;
  readonly #random: () => number;
  /** Keys are names of pods. */
  readonly wanted = new Map<string, Wish>();

  constructor(node: TestNode, random: () => number) {
    this.#directory = node.manifestDir;
    this.#random = random;
    for (let index = 0; index < MANIFESTS; index++) this.#write(`p${index}`, this.#wish());
  }

  edit(): void {
    const pod = `p${this.#number(MANIFESTS)}`;
    const wish = this.wanted.get(pod);
    const chance = this.#random();
    if (!wish || chance < 0.5) this.#write(pod, this.#wish());
    else if (chance < 0.75) this.#write(pod, { ...wish, label: wish.label + 1 });
    else {
      this.wanted.delete(pod);
      rmSync(join(this.#directory, `${pod}.json`));
    }
  }

  #write(pod: string, wish: Wish): void {
    this.wanted.set(pod, wish);
    const path = join(this.#directory, `${pod}.json`);
    const inPlace = this.#random() < 0.5;
    writeFileSync(inPlace ? path : `${path}.tmp`, toManifest(pod, wish));
    if (!inPlace) renameSync(`${path}.tmp`, path);
  }

  #wish(): Wish {
    return { revision: this.#number(4), label: 0, volume: this.#random() < 0.4 };
  }

  #number(below: number): number {
    return Math.floor(this.#random() * below);
  }
}

/** Kills, stops, restarts or removes a container or a sandbox of the node. */
async function disturb(node: TestNode, random: () => number): Promise<void> {
  const all = (await node.listAll()).filter(({ State }) => State === "running");
  const victim = all[Math.floor(random() * all.length)];
  if (!victim) return;
  const action = ["kill", "kill", "stop?t=1", "restart?t=1", "remove"][Math.floor(random() * 5)]!;
  try {
    if (action === "remove") await node.docker.removeContainer(victim.Id, { force: true });
    else await callEngine(`/containers/${victim.Id}/${action}`);
  } catch {
    // It is gone, or going.
  }
}

/** Differences between the engine and the desired state; empty when there are none. */
async function findDifferences(node: TestNode, wanted: ReadonlyMap<string, Wish>): Promise<string[]> {
  const found: string[] = [];
  const running = new Map<string, string[]>();
  for (const { Labels, State, Names } of await node.listAll()) {
    const pod = (Labels[LABEL.podName] ?? "").replace(`-${node.name}`, "");
    const what = Labels[LABEL.type] === "podsandbox" ? "POD" : (Labels[LABEL.containerName] ?? "");
    if (!wanted.has(pod)) found.push(`${Names[0]} of an undesired pod`);
    // One dead predecessor of each container is kept.
    if (State === "running") running.set(pod, [...(running.get(pod) ?? []), what].sort());
    else if (what === "POD") found.push(`${Names[0]} is ${State}`);
  }
  for (const pod of wanted.keys()) {
    const have = running.get(pod)?.join();
    if (have !== "POD,app") found.push(`${pod} has ${have}`);
  }
  const pods = await node.pods();
  if (pods.length !== wanted.size) found.push(`/pods has ${pods.length} pods, not ${wanted.size}`);
  for (const { metadata, status, spec } of pods) {
    const wish = wanted.get(metadata.name?.replace(`-${node.name}`, "") ?? "");
    if (status.phase !== "Running") found.push(`${metadata.name} is ${status.phase}`);
    if (metadata.labels?.label !== String(wish?.label))
      found.push(`${metadata.name} has label ${metadata.labels?.label}`);
    if (spec.containers[0]?.args?.[0] !== String(wish?.revision)) found.push(`${metadata.name} is an old revision`);
    const data = join(node.rootDir, "pods", metadata.uid!, "volumes", "kubernetes.io~empty-dir", "data");
    if (existsSync(data) !== wish?.volume)
      found.push(`${metadata.name} ${wish?.volume ? "lacks" : "still has"} its volume`);
  }
  const uids = new Set(pods.map(({ metadata }) => metadata.uid!));
  const podsDir = join(node.rootDir, "pods");
  const dirs = existsSync(podsDir) ? readdirSync(podsDir) : [];
  for (const uid of dirs) if (!uids.has(uid)) found.push(`directory of pod ${uid}`);
  for (const cgroup of strayCgroups(uids, seenUids(node))) found.push(`cgroup ${cgroup}`);
  return found;
}

const knownUids = new Map<string, Set<string>>();
const seenUids = (node: TestNode) => knownUids.get(node.name) ?? new Set<string>();

async function noteUids(node: TestNode): Promise<void> {
  const known = seenUids(node);
  for (const { Labels } of await node.listAll()) known.add(Labels[LABEL.podUid] ?? "");
  known.delete("");
  knownUids.set(node.name, known);
}

/** Cgroups of pods this node has had and does not want any more. */
function strayCgroups(wanted: ReadonlySet<string>, had: ReadonlySet<string>): string[] {
  const root = "/sys/fs/cgroup";
  const parents = [root, ...readdirSync(root).map((name) => join(root, name))].flatMap((folder) =>
    ["kubepods", "kubepods/besteffort", "kubepods/burstable"].map((path) => join(folder, path)),
  );
  return parents
    .filter((path) => existsSync(path))
    .flatMap((path) => readdirSync(path).map((name) => join(path, name)))
    .filter((path) => [...had].some((uid) => !wanted.has(uid) && path.includes(uid)));
}

const residentKiB = (kubelet: KubeletProcess) =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${kubelet.pid}/status`, "utf8"))?.[1]);

/** The containers run what the manifests say: compared by the requests that the engine received. */
async function expectRevisions(node: TestNode, wanted: ReadonlyMap<string, Wish>): Promise<void> {
  for (const { Id, Labels } of await node.running("app")) {
    const wish = wanted.get((Labels[LABEL.podName] ?? "").replace(`-${node.name}`, ""));
    const { Config } = (await node.docker.inspectContainerRaw(Id)) as { Config: { Cmd: string[] } };
    expect(Config.Cmd).toEqual([String(wish?.revision)]);
  }
}

const untilRight = (node: TestNode, wanted: ReadonlyMap<string, Wish>) =>
  node.until(
    `exactly the ${wanted.size} wanted pods`,
    async () => {
      const found = await findDifferences(node, wanted);
      if (found.length > 0) throw new Error(found.join("\n"));
      return true;
    },
    CONVERGE_MS,
  );

describeWithEngine("rapid edits", () => {
  test(
    `end in exactly the desired set and leak nothing (seed ${SEED})`,
    () => editRapidly(testNode(), seededRandom(SEED)),
    SOAK_MINUTES * 60_000 + 600_000,
  );
});

async function editRapidly(node: TestNode, random: () => number): Promise<void> {
  const operator = new Operator(node, random);
  for (const afterMs of KILL_POINTS_MS) {
    const killed = node.spawn([...node.flags(), ...FLAGS]);
    await Bun.sleep(afterMs);
    await killed.kill();
  }
  let kubelet = await node.start(FLAGS);
  await untilRight(node, operator.wanted);
  const descriptorsAtRest = countDescriptors(kubelet.pid);

  const editFor = async (edits: number, isCalm: boolean) => {
    for (let edit = 0; edit < edits; edit++) {
      operator.edit();
      if (random() < 0.06) await disturb(node, random);
      if (random() < 0.01 && !isCalm) {
        await kubelet.kill();
        kubelet = node.spawn([...node.flags(), ...FLAGS]);
      }
      if (edit % 10 === 0) await noteUids(node);
      await Bun.sleep(random() * 2 * PAUSE_MS);
    }
    await untilRight(node, operator.wanted);
    await expectRevisions(node, operator.wanted);
  };

  const startMs = Date.now();
  const minutes = () => (Date.now() - startMs) / 60_000;
  do await editFor(EDITS_PER_ROUND, false);
  while (minutes() < SOAK_MINUTES / 5);

  // The same process through rounds without kills of its own: nothing may grow.
  const [descriptors, resident] = [countDescriptors(kubelet.pid), residentKiB(kubelet)];
  const rounds: number[] = [];
  do {
    await editFor(SOAK_MINUTES > 0 ? EDITS_PER_ROUND : EDITS_PER_ROUND / 5, true);
    rounds.push(residentKiB(kubelet));
    const figures = `${rounds.at(-1)} KiB resident, ${countDescriptors(kubelet.pid)} descriptors`;
    if (SOAK_MINUTES > 0) console.info(`after ${minutes().toFixed(1)} minutes: ${figures}`);
  } while (minutes() < SOAK_MINUTES);
  // Connections to the engine are kept for a while: idle ones come and go.
  await node.until(
    "descriptors to be closed",
    () => countDescriptors(kubelet.pid) <= Math.max(descriptors, descriptorsAtRest) + 10,
  );
  const first = rounds.slice(0, Math.floor(rounds.length / 2));
  const warmKiB = first.length === 0 ? resident + WARM_UP_KIB : Math.max(...first) + SWING_KIB;
  await node.until("memory to be freed", () => residentKiB(kubelet) < warmKiB);

  for (const file of readdirSync(node.manifestDir)) rmSync(join(node.manifestDir, file), { force: true });
  await untilRight(node, new Map());
  expect(await node.listAll()).toEqual([]);
  expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(node.rootDir);
}
