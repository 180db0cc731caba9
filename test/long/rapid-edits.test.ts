import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LABEL } from "../../src/docker/labels.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { KubeletProcess } from "../support/kubelet-process.ts";
import { podSpec, sleeper } from "../support/manifests.ts";
import { seededRandom } from "../support/seeded-random.ts";
import type { TestNode } from "../support/test-node.ts";
import { callEngine, readEngine } from "../support/test-node.ts";

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
/** A container that is killed often enough waits this long before it is started again: less than any wait in this test. */
const FLAGS = ["--crash-loop-back-off-max=20s"];
/** How much a process that has just begun grows by its first edits. */
const WARM_UP_KIB = 40 * 1024;
/** Growth and shrinkage of the heap from round to round; 2 KiB leaked with each edit would be 20 MiB in half an hour. */
const SWING_KIB = 15 * 1024;

interface Wish {
  pod: string;
  revision: number;
  label: number;
  volume: boolean;
  second: boolean;
  /** In a Docker network of the user's own, instead of the engine's bridge. */
  network: boolean;
}

function toManifest({ pod, revision, label, volume, second, network }: Wish, networkName: string): string {
  const mount = volume ? { volumeMounts: [{ name: "data", mountPath: "/data" }] } : {};
  const container = (name: string, args: string[] = []) => podSpec({ ...mount, name, args }).containers[0]!;
  const spec = {
    terminationGracePeriodSeconds: 2,
    ...(volume && { volumes: [{ name: "data", emptyDir: { medium: revision % 2 === 0 ? "Memory" : "" } }] }),
    containers: [container("app", [String(revision)]), ...(second ? [container("other")] : [])],
  };
  const annotations = network ? { "kubelet-ts.io/network": networkName } : {};
  return JSON.stringify(sleeper(pod, {}, spec, { labels: { label: String(label) }, annotations }));
}

/** Makes random edits in a directory of manifests, and knows the set of pods they have to end in. */
class Operator {
  readonly #directory: string;
  readonly #network: string;
  readonly #random: () => number;
  /** Texts of the directory by file name. */
  readonly files = new Map<string, Wish>();
  #count = 0;

  constructor(node: TestNode, random: () => number) {
    this.#directory = node.manifestDir;
    this.#network = networkOf(node);
    this.#random = random;
    for (let index = 0; index < MANIFESTS; index++) this.#write(`m${index}.json`, this.#wish(`p${index}`));
  }

  /** One edit; says which. */
  edit(): string {
    const kind = this.#pick(["change", "change", "label", "delete", "create", "rename", "duplicate", "broken", "pod"]);
    const file = this.#pick([...this.files.keys()]);
    if (kind === "create" || file === undefined) return this.#create();
    const wish = this.files.get(file)!;
    switch (kind) {
      case "change":
        this.#write(file, { ...this.#wish(wish.pod), label: wish.label });
        break;
      case "label":
        this.#write(file, { ...wish, label: wish.label + 1 });
        break;
      case "delete":
        this.files.delete(file);
        rmSync(join(this.#directory, file));
        break;
      case "rename":
        this.#rename(file, `r${this.#count++}.json`);
        break;
      case "duplicate":
        this.#write(`d${this.#count++}.json`, { ...wish });
        break;
      case "broken":
        // Half a text for a moment, in place: what was there stays, then what is there counts.
        writeFileSync(join(this.#directory, file), toManifest(wish, this.#network).slice(0, 40));
        writeFileSync(join(this.#directory, file), toManifest(wish, this.#network));
        break;
      default:
        // The same file becomes another pod.
        this.#write(file, this.#wish(`p${this.#number(MANIFESTS)}`));
    }
    return `${kind} ${file}`;
  }

  /** At the end each pod has one text, so that it is clear which of them counts. */
  settle(): Map<string, Wish> {
    const pods = new Map<string, Wish>();
    for (const [file, wish] of [...this.files].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (pods.has(wish.pod)) {
        this.files.delete(file);
        rmSync(join(this.#directory, file));
      } else pods.set(wish.pod, wish);
    }
    return pods;
  }

  #create(): string {
    if (this.files.size >= 2 * MANIFESTS) return "nothing";
    const file = `n${this.#count++}.json`;
    this.#write(file, this.#wish(`p${this.#number(MANIFESTS)}`));
    return `create ${file}`;
  }

  #rename(from: string, to: string): void {
    renameSync(join(this.#directory, from), join(this.#directory, to));
    this.files.set(to, this.files.get(from)!);
    this.files.delete(from);
  }

  #write(file: string, wish: Wish): void {
    this.files.set(file, wish);
    const inPlace = this.#random() < 0.5;
    const scratch = join(this.#directory, `.${file}.tmp`);
    writeFileSync(inPlace ? join(this.#directory, file) : scratch, toManifest(wish, this.#network));
    if (!inPlace) renameSync(scratch, join(this.#directory, file));
  }

  #wish(pod: string): Wish {
    const [volume, second, network] = [this.#random() < 0.4, this.#random() < 0.3, this.#random() < 0.25];
    return { pod, revision: this.#number(4), label: 0, volume, second, network };
  }

  #number(below: number): number {
    return Math.floor(this.#random() * below);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#number(from.length)] as T;
  }
}

const networkOf = (node: TestNode) => `net-${node.name}`;

/** Kills, stops, restarts or removes a container or a sandbox of the node. */
async function disturb(node: TestNode, random: () => number): Promise<string> {
  const all = (await node.listAll()).filter(({ State }) => State === "running");
  const victim = all[Math.floor(random() * all.length)];
  if (!victim) return "no container";
  const action = ["kill", "kill", "stop?t=1", "restart?t=1", "remove"][Math.floor(random() * 5)]!;
  try {
    if (action === "remove") await node.docker.removeContainer(victim.Id, { force: true });
    else await callEngine(`/containers/${victim.Id}/${action}`);
  } catch {
    // It is gone, or going.
  }
  return `${action} ${victim.Names[0]}`;
}

/** Differences between the engine and the desired state; empty when there are none. */
async function findDifferences(node: TestNode, wanted: ReadonlyMap<string, Wish>): Promise<string[]> {
  const found: string[] = [];
  const all = await node.listAll();
  const names = new Map<string, string[]>();
  for (const { Labels, State, Names } of all) {
    const pod = (Labels[LABEL.podName] ?? "").replace(`-${node.name}`, "");
    const what = Labels[LABEL.type] === "podsandbox" ? "POD" : (Labels[LABEL.containerName] ?? "");
    const wish = wanted.get(pod);
    if (!wish) found.push(`${Names[0]} of an undesired pod`);
    // One dead predecessor of each container is kept.
    if (State === "running") names.set(pod, [...(names.get(pod) ?? []), what]);
    else if (what === "POD") found.push(`${Names[0]} is ${State}`);
  }
  for (const [pod, { second }] of wanted) {
    const have = (names.get(pod) ?? []).sort().join();
    const want = ["POD", "app", ...(second ? ["other"] : [])].sort().join();
    if (have !== want) found.push(`${pod} has ${have}, not ${want}`);
  }
  const pods = await node.pods();
  const wishOf = (name = "") => wanted.get(name.replace(`-${node.name}`, ""));
  if (pods.length !== wanted.size) found.push(`/pods has ${pods.length} pods, not ${wanted.size}`);
  for (const { metadata, status, spec } of pods) {
    const wish = wishOf(metadata.name);
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
  const inNetwork = await podsInNetwork(node);
  for (const [pod, { network }] of wanted) {
    if (inNetwork.has(pod) !== network) found.push(`${pod} is ${network ? "not " : ""}in the network`);
  }
  for (const pod of inNetwork) if (!wanted.has(pod)) found.push(`${pod} is in the network, and not desired`);
  for (const cgroup of strayCgroups(uids, seenUids(node))) found.push(`cgroup ${cgroup}`);
  return found;
}

/** Pods with an end in the network, by name. */
async function podsInNetwork(node: TestNode): Promise<Set<string>> {
  const { Containers } = JSON.parse(await readEngine(`/networks/${networkOf(node)}`)) as {
    Containers: Record<string, { Name: string }>;
  };
  return new Set(Object.values(Containers).map(({ Name }) => (Name.split("_")[2] ?? "").replace(`-${node.name}`, "")));
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

const descriptorsOf = (kubelet: KubeletProcess) => readdirSync(`/proc/${kubelet.pid}/fd`).length;

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
    async () => {
      const node = testNode();
      await node.docker.createNetwork({ Name: networkOf(node) });
      try {
        await editRapidly(node, seededRandom(SEED));
      } finally {
        await node.cleanUp();
        await node.docker.removeNetwork(networkOf(node));
      }
    },
    SOAK_MINUTES * 60_000 + 600_000,
  );
});

async function editRapidly(node: TestNode, random: () => number): Promise<void> {
  const operator = new Operator(node, random);
  let kubelet = await node.start(FLAGS);
  await untilRight(node, operator.settle());
  const descriptorsAtRest = descriptorsOf(kubelet);

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
    const wanted = operator.settle();
    await untilRight(node, wanted);
    await expectRevisions(node, wanted);
  };

  const startMs = Date.now();
  const minutes = () => (Date.now() - startMs) / 60_000;
  do await editFor(EDITS_PER_ROUND, false);
  while (minutes() < SOAK_MINUTES / 5);

  // The same process through rounds without kills of its own: nothing may grow.
  const [descriptors, resident] = [descriptorsOf(kubelet), residentKiB(kubelet)];
  const rounds: number[] = [];
  do {
    await editFor(SOAK_MINUTES > 0 ? EDITS_PER_ROUND : EDITS_PER_ROUND / 5, true);
    rounds.push(residentKiB(kubelet));
    const figures = `${rounds.at(-1)} KiB resident, ${descriptorsOf(kubelet)} descriptors`;
    if (SOAK_MINUTES > 0) console.info(`after ${minutes().toFixed(1)} minutes: ${figures}`);
  } while (minutes() < SOAK_MINUTES);
  // Connections to the engine are kept for a while: idle ones come and go.
  await node.until(
    "descriptors to be closed",
    () => descriptorsOf(kubelet) <= Math.max(descriptors, descriptorsAtRest) + 10,
  );
  const first = rounds.slice(0, Math.floor(rounds.length / 2));
  const warmKiB = first.length === 0 ? resident + WARM_UP_KIB : Math.max(...first) + SWING_KIB;
  await node.until("memory to be freed", () => residentKiB(kubelet) < warmKiB);

  for (const file of readdirSync(node.manifestDir)) rmSync(join(node.manifestDir, file), { force: true });
  await untilRight(node, new Map());
  expect(await node.listAll()).toEqual([]);
  expect(await podsInNetwork(node)).toEqual(new Set());
  expect((await node.docker.listNetworks()).map(({ Name }) => Name).filter((name) => name.includes(node.name))).toEqual(
    [networkOf(node)],
  );
  expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(node.rootDir);
}
