import type { ClusterObject } from "./api-server-model.ts";
import { type ClusterClients, hasLastingName, isMirror } from "./cluster-clients.ts";
import { hasValues, isLasting, makePod, toList, toManifest, type WantedPod } from "./desired.ts";
import type { WireFaults } from "./engine-http.ts";
import { type EngineModel, hasBadValue, type ModelContainer, type Transition } from "./engine-model.ts";
import { changed, fileOf, LABEL, type Rules } from "./rules.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { DAY_MS, MANIFESTS, ROOT_DIR, type World } from "./world.ts";

/** Longest time that a fault lasts. */
export const LONGEST_FAULT_MS = 40 * 60_000;
const FIRST_NODE_PORT = 30_000;
/** systemd's RestartSec. */
const RESTART_MS = 5_000;

/** A container that nothing keeps from starting, and nothing but its program ends. */
const PLAIN = { hasLiveness: false, hasReadiness: false, pullsAlways: false, hasHooks: false } as const;

const isOf = (labels: ModelContainer["labels"], app: string, name: string) =>
  labels[LABEL.container] === name && labels[LABEL.podName]?.startsWith(`${app}-`) === true;

/** A pod of its own whose containers all run now. */
function isUp({ engine, isRunning }: World, { app, replicas, job, containers }: WantedPod): boolean {
  const names = [...engine.containers.values()].flatMap(({ status, labels }) =>
    status === "running" && labels[LABEL.podName]?.startsWith(`${app}-`) ? (labels[LABEL.container] ?? []) : [],
  );
  const isPlain = replicas === undefined && !job && containers.every(isLasting);
  return isRunning && isPlain && containers.every(({ name }) => names.includes(name));
}

/** People, programs and machines act on the world here. Each action has a chance of its own, so that leaving one out changes no other. */
export class Scene {
  readonly world: World;
  readonly rules: Rules;
  readonly wanted: Map<string, WantedPod>;
  readonly maxPods: number;
  /** Files with errors in them, which their owner mends later. */
  readonly broken = new Set<string>();
  /** When people last changed what they want. */
  changedMs = 0;
  #apps = 0;
  /** Containers of pods before their last edit, by app. */
  readonly #before = new Map<string, WantedPod["containers"]>();
  /** Faults that last now. */
  #faults = 0;
  #isStopping = false;

  constructor(world: World, rules: Rules, wanted: Map<string, WantedPod>, maxPods: number) {
    this.world = world;
    this.rules = rules;
    this.wanted = wanted;
    this.maxPods = maxPods;
    this.#serve();
  }

  // --- files ---

  addPod(random: SeededRandom): void {
    const made = makePod(`web${++this.#apps}`, random, this.world.time.nowMs);
    const others = [...this.wanted.values()].filter(
      ({ replicas, job, source, containers }) =>
        replicas === undefined && !job && source !== "cluster" && containers.every(isLasting),
    );
    const dependsOn = !made.job && others.length > 0 && random.chance(0.5) ? random.pick(others).app : undefined;
    const pod = { ...made, dependsOn };
    const put = (one: WantedPod) => this.put(this.#withKind(one), random);
    const isSubmitted = this.world.hasApi && this.#apps % 3 === 2 && !pod.job && pod.containers.every(isLasting);
    if (isSubmitted) put({ ...pod, source: "api", replicas: pod.replicas ?? 1 });
    else if (this.rules.cluster && this.#apps % 3 !== 1 && !pod.job)
      this.put({ ...pod, source: "cluster", replicas: undefined, dependsOn: undefined }, random);
    else if (this.world.hasUrl && this.#apps % 2 === 1 && !pod.job) put({ ...pod, source: "url" });
    else put(this.#withReplicas(pod));
  }

  /** A Job of its own whose indexes are done within a minute. */
  addJob(random: SeededRandom): WantedPod {
    const made = makePod(`web${++this.#apps}`, random, this.world.time.nowMs);
    const program = ["exit", String(random.whole(1, 15)), "0"];
    const containers = made.containers.slice(0, 1).map((one) => ({ ...one, program, ...PLAIN }));
    const job = { completions: 3, parallelism: random.whole(1, 3), schedule: undefined };
    const pod: WantedPod = { ...made, job, containers, replicas: undefined, restartPolicy: "Never" };
    this.put(pod, random);
    return pod;
  }

  /** Pods of files. */
  inFiles(): WantedPod[] {
    return [...this.wanted.values()].filter(({ source }) => source === "file");
  }

  /** The text of the URL is what people want. */
  #serve(): void {
    this.world.wire.manifests.text = toList([...this.wanted.values()].filter(({ source }) => source === "url"));
  }

  /** The files are what people want: others may be there again after a power cut, or were written elsewhere. */
  writeFiles(): void {
    const { disk } = this.world;
    for (const pod of this.inFiles()) disk.write(fileOf(pod.app), toManifest(pod));
    for (const path of disk.list(MANIFESTS).keys()) {
      const app = path.slice(MANIFESTS.length + 1, -".yaml".length);
      if (!this.wanted.has(app)) disk.remove(path);
    }
  }

  /** After a power cut people see to their files, unless the disk of these is away. */
  repairFiles(): void {
    const { disk, hasMount } = this.world;
    if (!hasMount || !disk.exists(`${MANIFESTS}.away`)) {
      disk.makeDirectory(MANIFESTS);
      this.writeFiles();
    }
    disk.sync();
  }

  removePod(removed: WantedPod, random: SeededRandom): void {
    const { app, source } = removed;
    for (const pod of this.wanted.values())
      if (pod.dependsOn === app) this.put({ ...pod, dependsOn: undefined }, random);
    this.wanted.delete(app);
    this.changedMs = this.world.time.nowMs;
    this.broken.delete(app);
    if (source === "url") return this.#serve();
    this.rules.expectRemoval(app);
    if (source === "cluster") return this.rules.cluster?.reconcile(app);
    if (source === "api") return this.rules.api.remove(removed, random.pick(["Background", "Foreground"] as const));
    this.world.note(`a person removes ${fileOf(app)}`);
    this.world.disk.remove(fileOf(app));
  }

  /** Removes a pod of a file. */
  removeFile(random: SeededRandom): void {
    const pods = this.inFiles();
    if (pods.length > 1 && this.canWrite) this.removePod(random.pick(pods), random);
  }

  pickSubmitted(random: SeededRandom): WantedPod | undefined {
    const pods = [...this.wanted.values()].filter(({ source }) => source === "api");
    return pods.length > 0 ? random.pick(pods) : undefined;
  }

  /** Some pods of files are two of a workload: more where ports of the machine lead to Services. */
  #withReplicas(pod: WantedPod): WantedPod {
    const hasPorts = this.world.firewall.isInstalled;
    const canHave = !pod.job && pod.containers.every(isLasting);
    const replicas = pod.replicas ?? (canHave && this.#apps % (hasPorts ? 2 : 3) === 1 ? 2 : undefined);
    const nodePort = hasPorts && replicas !== undefined ? FIRST_NODE_PORT + this.#apps : undefined;
    return { ...pod, replicas, nodePort };
  }

  /** Some of what has replicas is no Deployment. A pod of a StatefulSet waits for no other: only edits of containers replace it. */
  #withKind(pod: WantedPod): WantedPod {
    const { replicas } = pod;
    const at = replicas === undefined ? 0 : (this.#apps + Math.floor(this.#apps / 3) + this.world.seed) % 5;
    if (replicas === undefined) return pod;
    const withValues = replicas > 1 ? { ...pod, config: 1, hasSecret: true } : pod;
    if (at > 2) return withValues;
    if (at === 0) return { ...pod, kind: "DaemonSet", replicas: 1 };
    return { ...withValues, kind: "StatefulSet", replicas: Math.max(replicas, at), dependsOn: undefined };
  }

  /** Workloads whose replicas people change. */
  get scalable(): WantedPod[] {
    return [...this.wanted.values()].filter(({ replicas, kind }) => replicas !== undefined && kind !== "DaemonSet");
  }

  /** With a partition there is a pod at least: without pods a StatefulSet forgets what it had before. */
  scaled(pod: WantedPod, random: SeededRandom): WantedPod {
    return { ...pod, replicas: random.whole(pod.partition ? 1 : 0, 4) };
  }

  /** Edits a StatefulSet whose first pods keep what they have, until an hour of the next days in which people act. */
  #rollOutFrom(pod: WantedPod, ordinal: number, random: SeededRandom): void {
    const versions = Object.fromEntries(pod.containers.map(({ name, version }) => [name, version]));
    this.put({ ...pod, partition: { ordinal, versions }, containers: pod.containers.map(changed) }, random);
    this.world.time.after(random.whole(0, 1) * 86_400_000 + random.between(4, 20) * 3_600_000, () => {
      const now = this.wanted.get(pod.app);
      if (now?.partition) this.put({ ...now, partition: undefined }, random);
    });
  }

  /** Writes a file as some editor does. */
  put(pod: WantedPod, random: SeededRandom): void {
    const { disk, time } = this.world;
    const next = { ...pod, changedMs: time.nowMs };
    const containers = this.wanted.get(pod.app)?.containers;
    if (containers && containers !== pod.containers) this.#before.set(pod.app, containers);
    if (this.wanted.get(pod.app)?.replicas !== pod.replicas) this.rules.scaledMs.set(pod.app, time.nowMs);
    this.wanted.set(pod.app, next);
    this.changedMs = time.nowMs;
    this.broken.delete(pod.app);
    if (pod.source === "url") {
      this.world.note(`a person writes ${pod.app} to the URL: ${describe(next)}`);
      return this.#serve();
    }
    if (pod.source === "api") {
      this.world.note(`a client applies ${pod.app}: ${describe(next)}`);
      this.rules.expectEdit(next);
      return this.rules.api.apply(next);
    }
    if (pod.source === "cluster") {
      this.world.note(`the cluster wants ${pod.app}: ${describe(next)}`);
      this.rules.expectEdit(next);
      return this.rules.cluster?.reconcile(pod.app);
    }
    const path = fileOf(pod.app);
    const text = toManifest(next);
    const style = random.next();
    const cut = random.next();
    // People cannot write while the directory is away; who moves it back brings everything up to date.
    if (!this.canWrite) return;
    this.world.note(`a person writes ${path}: ${describe(next)}`);
    this.rules.expectEdit(next);
    if (style < 0.4) return disk.replace(path, text);
    if (style < 0.8) return disk.write(path, text);
    // In two pieces, as over a slow line.
    disk.write(path, text.slice(0, Math.floor(cut * text.length)));
    time.after(random.between(1, 300), () => {
      const now = this.wanted.get(pod.app);
      if (!now || this.broken.has(pod.app) || !this.canWrite) return;
      time.stir();
      disk.write(path, toManifest(now));
    });
  }

  /** Containers before the last edit, of a pod that people may give them back: none ends, and no pod keeps what it had. */
  before({ app, job, kind, containers }: WantedPod): WantedPod["containers"] | undefined {
    const before = this.#before.get(app);
    const isLastingPod = !job && kind !== "StatefulSet" && containers.every(isLasting) && before?.every(isLasting);
    return isLastingPod ? before : undefined;
  }

  /** The directory of manifests is where it belongs. */
  get canWrite(): boolean {
    const { disk } = this.world;
    return disk.exists(MANIFESTS) && !disk.exists(`${MANIFESTS}.away`);
  }

  /** Someone moves the manifests, or their disk is not mounted: then there is an empty directory. */
  takeAway(): void {
    const { disk, hasMount } = this.world;
    disk.rename(MANIFESTS, `${MANIFESTS}.away`);
    if (!hasMount) return;
    disk.makeDirectory(MANIFESTS);
    this.world.mountManifests(false);
  }

  /** The directory is there again, with what people wrote meanwhile. */
  bringBackManifests(): void {
    const { disk } = this.world;
    if (!disk.exists(`${MANIFESTS}.away`)) return;
    // Files written meanwhile are in another directory.
    disk.remove(MANIFESTS);
    disk.rename(`${MANIFESTS}.away`, MANIFESTS);
    this.world.mountManifests(true);
    this.writeFiles();
    this.broken.clear();
  }

  /** A person writes a text that must change nothing, and mends it later. */
  breakFile({ app }: WantedPod, text: string, random: SeededRandom): void {
    const { disk, time } = this.world;
    if (!this.canWrite) return;
    this.world.note(`a person breaks ${fileOf(app)}`);
    this.broken.add(app);
    disk.write(fileOf(app), text);
    time.after(random.between(1_000, LONGEST_FAULT_MS), () => {
      const now = this.wanted.get(app);
      if (!now || !this.broken.has(app) || !this.canWrite) return;
      this.broken.delete(app);
      time.stir();
      disk.replace(fileOf(app), toManifest(now));
    });
  }

  pickPod(random: SeededRandom): WantedPod | undefined {
    const pods = [...this.wanted.values()];
    return pods.length > 0 ? random.pick(pods) : undefined;
  }

  /** Edits every container of some pod. @returns false: there is no pod */
  editAny(random: SeededRandom): boolean {
    const pod = this.pickPod(random);
    if (pod) this.put({ ...pod, containers: pod.containers.map(changed) }, random);
    return pod !== undefined;
  }

  editConfig(pod: WantedPod, random: SeededRandom, step = 1): void {
    const wasAtRest = this.rules.isAtRest(pod);
    this.put({ ...pod, config: (pod.config ?? 0) + step, configMs: this.world.time.nowMs }, random);
    if (hasValues(pod)) return this.rules.noteValues(pod.app, wasAtRest);
    const now = this.wanted.get(pod.app);
    if (now) this.wanted.set(pod.app, { ...now, changedMs: pod.changedMs });
  }

  /** Edits the values of a workload whose pods take turns. On every other day they are bad, until a person mends them. */
  editValues(random: SeededRandom): void {
    const pods = this.scalable.filter((pod) => pod.config !== undefined && hasValues(pod) && (pod.replicas ?? 0) > 1);
    if (pods.length === 0) return;
    const pod = random.pick(pods);
    const { time, engine } = this.world;
    const isBad = Math.floor(time.nowMs / DAY_MS) % 2 === 1 && !pod.containers.some(({ hasReadiness }) => hasReadiness);
    this.editConfig(pod, random, isBad ? 0.5 : 1);
    if (!isBad) return;
    // A container of a pod that still has the earlier value.
    time.after(8 * 60_000, () => {
      const isOther = (it: ModelContainer) => it.labels[LABEL.podName]?.startsWith(`${pod.app}-`) && !hasBadValue(it);
      const other = this.world.ownRunning().find((it) => isOther(it) && it.labels[LABEL.container] !== "POD");
      if (other) engine.endByForce(other, 1, "itself");
    });
    time.after(20 * 60_000, () => {
      const now = this.wanted.get(pod.app);
      if (now && !Number.isInteger(now.config)) this.editConfig(now, random, 0.5);
    });
  }

  /** Edits the template of some workload. */
  rollOut(random: SeededRandom): void {
    const workloads = [...this.wanted.values()].filter(({ replicas = 0 }) => replicas > 0);
    if (workloads.length === 0) return;
    const pod = random.pick(workloads);
    const isWhole = pod.kind === "StatefulSet" && !pod.partition && this.rules.isAtRest(pod);
    if (isWhole && random.chance(0.5)) return this.#rollOutFrom(pod, random.whole(1, 3), random);
    this.put({ ...pod, containers: pod.containers.map(changed) }, random);
  }

  /** A container ends with an error again and again, until a person mends it. */
  crashInLoop(random: SeededRandom): void {
    const pod = this.pickPod(random);
    if (!pod || pod.replicas !== undefined) return;
    const [first, ...others] = pod.containers;
    if (!first || !isLasting(first)) return;
    const crashing = { ...changed(first), program: ["exit", String(random.whole(0, 20)), "1"], ...PLAIN };
    this.put({ ...pod, containers: [crashing, ...others] }, random);
    this.world.time.after(random.between(600_000, LONGEST_FAULT_MS), () => {
      const now = this.wanted.get(pod.app);
      const at = now?.containers[0];
      if (!now || at?.program !== crashing.program) return;
      this.put({ ...now, containers: [changed({ ...at, program: ["run"] }), ...now.containers.slice(1)] }, random);
    });
  }

  // --- the process ---

  startProcess(): void {
    const { world } = this;
    if (world.isRunning || this.#isStopping) return;
    world.startProcess();
  }

  /** SIGTERM; systemd's patience is 90 s. */
  stopProcess(downMs: number): void {
    const { world } = this;
    if (!world.isRunning || this.#isStopping) return;
    this.#isStopping = true;
    world.askToStop();
    const poll = (leftMs: number) => {
      if (world.endOfProcess === undefined && leftMs > 0) return void world.time.after(500, () => poll(leftMs - 500));
      world.killProcess();
      this.#isStopping = false;
      world.time.after(downMs, () => this.startProcess());
    };
    poll(90_000);
  }

  killProcess(downMs = RESTART_MS): void {
    this.world.killProcess();
    this.world.time.after(downMs, () => this.startProcess());
  }

  /** Files that people wrote may be lost: they look, and write them again. */
  cutPower(random: SeededRandom): void {
    const { world, rules } = this;
    rules.excuseAll();
    world.cutPower();
    this.repairFiles();
    world.time.after(random.between(20_000, 300_000), () => this.startProcess());
  }

  /** The power is cut, and the manifests are away for a while. After a cut while they are away there are both. */
  bootWithoutManifests(random: SeededRandom, isLastEditLive = false): void {
    const { world, rules } = this;
    if (!this.canWrite) return;
    rules.excuseAll();
    world.cutPower();
    this.takeAway();
    world.time.after(random.between(20_000, 300_000), () => this.startProcess());
    this.expectCheckpoint(isLastEditLive);
    this.endLater(random, () => this.bringBackManifests(), LONGEST_FAULT_MS, 25 * 60_000);
  }

  /** The machine runs the pods it had, although their source is away. */
  expectCheckpoint(isLastEditLive = false): void {
    const { rules, world, changedMs } = this;
    const { lastFaultMs } = rules;
    world.time.after(20 * 60_000, () => {
      // Another fault may be the reason, also one that began before, and an edit may not have been seen before the cut.
      const isAlone = rules.lastFaultMs === lastFaultMs && this.#faults === 1;
      const isLive = isLastEditLive && this.changedMs === changedMs;
      const lastMs = Math.max(this.changedMs, rules.cluster?.changedMs ?? 0);
      if (isAlone && (isLive || world.time.nowMs - lastMs > 3_600_000)) rules.checkWithoutManifests();
    });
  }

  setClock(byMs: number): void {
    const { time } = this.world;
    time.wallOffsetMs += byMs;
    this.rules.jobs.noteClock(time.wallMs);
    this.world.note(`the clock is set by ${byMs / 1000} s`);
  }

  get clusterPods(): WantedPod[] {
    return [...this.wanted.values()].filter(({ source }) => source === "cluster");
  }

  /** A pod goes at once. A successor of another name may run while it does. */
  deleteByForce(random: SeededRandom): void {
    const pods = this.clusterPods.filter(({ app }) => hasLastingName(app));
    const [pod] = pods.length > 0 ? (this.rules.cluster?.podsOf(random.pick(pods).app) ?? []) : [];
    if (pod && this.world.cluster?.isUp) this.rules.cluster?.remove(pod, 0);
  }

  changeCluster(random: SeededRandom): void {
    if (random.chance(0.4)) this.deleteByForce(random);
    else if (random.chance(0.6)) this.editAny(random);
  }

  /** The API server of the cluster is away for a while. Pods are changed at once when it is back. */
  stopApiServer(random: SeededRandom, longestMs: number, shortestMs = 1_000): void {
    const { cluster, clusterWire } = this.world;
    cluster?.setUp(false);
    clusterWire?.breakConnections();
    if (random.chance(0.5)) this.editAny(random);
    this.endLater(
      random,
      () => {
        cluster?.setUp(true);
        this.rules.cluster?.expectReturn();
      },
      longestMs,
      shortestMs,
    );
  }

  // --- the engine ---

  pickContainer(random: SeededRandom, takes?: (container: ModelContainer) => boolean): ModelContainer | undefined {
    const running = this.world.ownRunning();
    const those = takes ? running.filter(takes) : running;
    return those.length > 0 ? random.pick(those) : undefined;
  }

  /** Probes of a container fail for a while. */
  sicken(random: SeededRandom, leastMs: number, takes?: (container: ModelContainer) => boolean): void {
    const container = this.pickContainer(random, takes);
    if (!container) return;
    container.unhealthyUntilMs = this.world.time.nowMs + random.between(leastMs, LONGEST_FAULT_MS);
    this.rules.noteUnhealthy(container);
  }

  /** A fault that has begun ends after a while. */
  endLater(random: SeededRandom, end: () => void, longestMs = LONGEST_FAULT_MS, shortestMs = 100): void {
    const { time } = this.world;
    this.#faults++;
    time.after(random.between(shortestMs, longestMs), () => {
      this.#faults--;
      end();
      this.rules.lastFaultMs = time.nowMs;
      this.world.note("the fault is over");
    });
  }

  /** dockerd restarts, with or without its containers. */
  restartEngine(random: SeededRandom, longestDownMs: number, hasLiveRestore = random.chance(0.4)): void {
    const { engine, wire, firewall, time } = this.world;
    engine.hasLiveRestore = hasLiveRestore;
    if (!engine.hasLiveRestore) this.rules.excuseAll();
    this.world.note("dockerd restarts");
    const downMs = random.between(500, longestDownMs);
    engine.restart(downMs, random.pick(["stop", "kill"] as const));
    time.after(downMs, () => {
      this.rules.services.expectBack();
      firewall.restartDocker();
    });
    wire.breakConnections();
  }
}

const describe = ({ containers, init, replicas, restartPolicy, job, config, hasData, dependsOn }: WantedPod) =>
  [
    job ? JSON.stringify(job) : replicas === undefined ? restartPolicy : `${replicas} replicas`,
    ...(config === undefined ? [] : [`ConfigMap v${config}`]),
    ...(hasData ? ["emptyDir"] : []),
    ...(dependsOn === undefined ? [] : [`after ${dependsOn}`]),
    [...init, ...containers].map(({ name, program, version }) => `${name}=${program.join(" ")} v${version}`).join(", "),
  ].join(" ");

type Run = (scene: Scene, random: SeededRandom) => void;

interface Action {
  /** How often it comes, compared with the others. */
  weight: number;
  isFault: boolean;
  run: Run;
}

const deed = (weight: number, run: Run): Action => ({ weight, isFault: false, run });
const fault = (weight: number, run: Run): Action => ({ weight, isFault: true, run });

/** A fault that lasts. @param begin returns what ends it */
const lasting = (weight: number, begin: (world: World, random: SeededRandom) => () => void, longestMs?: number) =>
  fault(weight, (scene, random) => scene.endLater(random, begin(scene.world, random), longestMs));

/** The engine answers otherwise for a while. */
const onWire = (weight: number, toFaults: (random: SeededRandom) => Partial<WireFaults>, longestMs?: number) =>
  lasting(
    weight,
    ({ wire }, random) => {
      wire.disturb(toFaults(random));
      return () => wire.repair();
    },
    longestMs,
  );

/** Something that others do to a container, which is a reason for its pod to start it again. */
const toContainer = (
  weight: number,
  run: (engine: EngineModel, container: ModelContainer, random: SeededRandom) => void,
) =>
  fault(weight, (scene, random) => {
    const container = scene.pickContainer(random);
    if (!container) return;
    scene.rules.excuse(container.labels["io.kubernetes.pod.name"] ?? "");
    run(scene.world.engine, container, random);
  });

/** Something that happens to a pod of the cluster. */
const toClusterPod = (weight: number, run: (cluster: ClusterClients, pod: ClusterObject) => void) =>
  deed(weight, ({ rules: { cluster }, clusterPods, world }, random) => {
    if (!cluster || clusterPods.length === 0 || !world.cluster?.isUp) return;
    const [pod] = cluster.podsOf(random.pick(clusterPods).app);
    if (pod) run(cluster, pod);
  });

/** A fault between a node and its API server, in which people change their pods. */
const onClusterWire = (weight: number, toFaults: (random: SeededRandom, nowMs: number) => Partial<WireFaults>) =>
  fault(weight, (scene, random) => {
    const { clusterWire: wire, time } = scene.world;
    const { lastFaultMs, wasCalm } = scene.rules;
    if (!wire) return;
    wire.disturb(toFaults(random, time.nowMs));
    time.after(random.between(100, 60_000), () => scene.changeCluster(random));
    scene.endLater(random, () => {
      wire.repair();
      if (wasCalm && scene.rules.lastFaultMs === lastFaultMs) scene.rules.expectReports();
    });
  });

/** Actions on a node of a cluster, in addition. */
export const CLUSTER_ACTIONS: Readonly<Record<string, Action>> = {
  "stop the API server": fault(6, (scene, random) => scene.stopApiServer(random, LONGEST_FAULT_MS)),
  "restart the API server": fault(6, (scene, random) => scene.stopApiServer(random, 60_000)),
  "restart the kubelet while the API server is away": fault(6, (scene, random) => {
    scene.stopApiServer(random, LONGEST_FAULT_MS, 25 * 60_000);
    if (random.chance(0.5)) scene.killProcess(random.between(100, 60_000));
    else scene.stopProcess(random.between(100, 60_000));
    scene.expectCheckpoint();
  }),
  "boot while the API server is away": fault(4, (scene, random) => {
    scene.stopApiServer(random, LONGEST_FAULT_MS, 25 * 60_000);
    scene.cutPower(random);
    scene.expectCheckpoint();
  }),
  "crash during a change of the cluster": fault(6, (scene, random) => {
    if (scene.clusterPods.length === 0) return;
    const pod = random.pick(scene.clusterPods);
    scene.put({ ...pod, containers: pod.containers.map(changed) }, random);
    const { time } = scene.world;
    time.after(random.between(500, 40_000), () => time.crashAfter(random.whole(1, 60)));
  }),
  "end watches": fault(4, ({ world: { cluster } }, random) => {
    cluster?.closeStreams(random.chance(0.5) ? new Error("simulated ECONNRESET") : undefined);
    if (random.chance(0.5)) cluster?.compact();
  }),
  "forget watches": fault(8, (scene, random) => {
    scene.world.cluster?.silenceWatches();
    scene.changeCluster(random);
  }),
  "refuse the node": onClusterWire(3, () => ({ isRefusing: true })),
  "hang the API server": onClusterWire(5, (random, nowMs) => ({
    hangsUntilMs: nowMs + random.between(1_000, 300_000),
  })),
  "lose responses of the API server": onClusterWire(6, (random) => ({ cutShare: random.between(0.02, 0.5) })),
  "answer with errors of the API server": onClusterWire(5, (random) => ({ errorShare: random.between(0.02, 0.6) })),
  "be slow to the node": onClusterWire(3, (random) => ({ latencyMs: random.between(50, 20_000) })),
  "delete a pod of the cluster": toClusterPod(5, (cluster, pod) => cluster.remove(pod)),
  "delete a pod by force": deed(4, (scene, random) => scene.deleteByForce(random)),
  "overwrite a status": toClusterPod(6, (cluster, pod) => cluster.overwriteStatus(pod)),
  "delete the Node": fault(2, ({ world: { cluster } }) => cluster?.remove("nodes//node1", 0)),
  "delete a mirror pod": fault(3, ({ world: { cluster } }, random) => {
    const mirrors = cluster?.all("pods").filter(isMirror) ?? [];
    if (mirrors.length > 0) cluster?.remove(`pods/default/${random.pick(mirrors).metadata.name}`, random.pick([0, 30]));
  }),
};

/** On some machines, in addition. */
export const DRAINS: Readonly<Record<string, Action>> = {
  "drain the node for a while": fault(12, (scene, random) => {
    const { rules, world, wanted } = scene;
    rules.cordon(true);
    for (const { app, replicas } of [...wanted.values()]) {
      if (replicas === undefined || random.chance(0.3)) continue;
      world.time.after(random.between(5_000, 60_000), () => {
        const pod = wanted.get(app);
        if (pod) void rules.deletePod(pod, true);
      });
    }
    const restart = random.between(10_000, 300_000);
    if (random.chance(0.6)) world.time.after(restart, () => scene.killProcess());
    scene.endLater(random, () => rules.cordon(false), LONGEST_FAULT_MS, 6 * 60_000);
  }),
};

/** With another version of the program. */
export const EXCHANGES: Readonly<Record<string, Action>> = {
  "go back to an earlier version for a while": fault(20, (scene, random) => {
    const exchange = () => {
      scene.world.exchangeProgram();
      if (random.chance(0.5)) scene.stopProcess(random.between(100, 20_000));
      else scene.killProcess();
    };
    exchange();
    if (random.chance(0.5)) scene.editAny(random);
    scene.endLater(random, exchange, LONGEST_FAULT_MS, 60_000);
  }),
};

/** Every action by name. */
export const ACTIONS: Readonly<Record<string, Action>> = {
  // In the evening only.
  "roll out": deed(0, (scene, random) => scene.rollOut(random)),
  "edit values": deed(0, (scene, random) => scene.editValues(random)),
  "add a pod": deed(6, (scene, random) => {
    if (scene.wanted.size < scene.maxPods) scene.addPod(random);
  }),
  "remove a pod": deed(4, (scene, random) => {
    const pod = scene.pickPod(random);
    if (!pod || scene.wanted.size < 2) return;
    scene.removePod(pod, random);
  }),
  "remove a pod while the kubelet is down": fault(2, (scene, random) => {
    scene.killProcess(random.between(10_000, 600_000));
    scene.world.time.after(5_000, () => scene.removeFile(random));
  }),
  "edit a container": deed(8, (scene, random) => {
    const pod = scene.pickPod(random);
    if (!pod) return;
    const edited = random.pick(pod.containers);
    const containers = pod.containers.map((it) => (it === edited ? changed(it) : it));
    scene.put({ ...pod, containers }, random);
  }),
  "edit twice": deed(3, (scene, random) => {
    const pod = scene.pickPod(random);
    if (!pod) return;
    const edit = () => {
      const now = scene.wanted.get(pod.app);
      if (now) scene.put({ ...now, containers: now.containers.map(changed) }, random);
    };
    edit();
    scene.world.time.after(random.between(1, 20_000), edit);
  }),
  "take an edit back": deed(4, (scene, random) => {
    const pods = [...scene.wanted.values()].filter((pod) => scene.before(pod) !== undefined);
    if (pods.length === 0) return;
    const pod = random.pick(pods);
    const newest = new Map(pod.containers.map(({ name, version, newest: last }) => [name, last ?? version]));
    const containers = (scene.before(pod) ?? []).map((one) => ({ ...one, newest: newest.get(one.name) }));
    scene.put({ ...pod, containers }, random);
  }),
  "edit an annotation": deed(4, (scene, random) => {
    const pod = scene.pickPod(random);
    if (!pod) return;
    // No container is named: none may be stopped for it.
    scene.put({ ...pod, note: pod.note + 1 }, random);
    const now = scene.wanted.get(pod.app);
    if (now) scene.wanted.set(pod.app, { ...now, changedMs: pod.changedMs });
  }),
  "edit a ConfigMap": deed(4, (scene, random) => {
    const pods = [...scene.wanted.values()].filter(({ config }) => config !== undefined);
    if (pods.length > 0) scene.editConfig(random.pick(pods), random);
  }),
  "scale a deployment": deed(4, (scene, random) => {
    const pod = scene.scalable.at(0);
    if (pod) scene.put(scene.scaled(pod, random), random);
  }),
  "scale by a client": deed(2, (scene, random) => {
    const pod = scene.pickSubmitted(random);
    if (!pod || pod.kind === "DaemonSet") return;
    const scaled = { ...scene.scaled(pod, random), changedMs: scene.world.time.nowMs };
    scene.wanted.set(pod.app, scaled);
    scene.changedMs = scene.world.time.nowMs;
    scene.rules.scaledMs.set(pod.app, scene.world.time.nowMs);
    scene.rules.api.scale(scaled);
  }),
  "delete without the pods and apply": deed(3, (scene, random) => {
    const pod = scene.pickSubmitted(random);
    if (pod && !pod.partition) scene.rules.orphan(pod, random.between(0, 600_000));
  }),
  "delete without the pods after a start": fault(2, (scene, random) => {
    const pod = scene.pickSubmitted(random);
    if (!pod) return;
    // The kubelet answers before the engine does.
    scene.restartEngine(random, 60_000);
    scene.killProcess(100);
    scene.world.time.after(random.between(1_000, 20_000), () => {
      const now = scene.wanted.get(pod.app);
      if (now && !now.partition) scene.rules.orphan(now, random.between(0, 600_000));
    });
  }),
  "write an old version": deed(2, (scene, random) => {
    const pod = scene.pickSubmitted(random);
    if (pod) void scene.rules.api.writeStale(pod);
  }),
  "write one object by several clients": deed(3, (scene, random) => {
    if (scene.world.hasApi) scene.rules.api.configure(random.hex(8));
  }),
  "restart a pod": deed(3, (scene, random) => {
    const container = scene.world.hasApi ? scene.pickContainer(random) : undefined;
    if (container) void scene.rules.restartPod(container.labels[LABEL.podName] ?? "");
  }),
  "delete a pod of a Deployment": deed(3, (scene, random) => {
    const pod = scene.pickSubmitted(random);
    if (pod) void scene.rules.deletePod(pod);
  }),
  "take the label of a pod away": deed(4, (scene, random) => {
    const { world, rules } = scene;
    const pods = scene.scalable.filter((pod) => pod.kind === undefined && pod.source !== "url");
    if (!world.hasApi || pods.length === 0) return;
    const pod = random.pick(pods);
    const end = random.pick(["delete", "give back"] as const);
    const afterMs = random.between(60_000, 2 * 86_400_000);
    const container = world.ownRunning().find(({ labels }) => labels[LABEL.podName]?.startsWith(`${pod.app}-`));
    if (container && rules.isAtRest(pod)) void rules.released.release(pod, container, end, afterMs);
  }),
  "change flags": fault(3, (scene, random) => {
    const flags = {
      clusterDns: random.pick([[], ["10.96.0.10"]]),
      cpuCfsQuota: random.chance(0.5),
      maxPods: random.pick([110, 200]),
      maximumDeadContainersPerContainer: random.pick([0, 1]),
      nodeLabels: random.pick([{}, { disk: "ssd" }]),
      serializeImagePulls: random.chance(0.5),
      syncFrequencyMs: random.pick([60_000, 300_000]),
    };
    scene.world.flags = { ...flags, maximumDeadContainers: flags.serializeImagePulls ? -1 : 3 };
    scene.world.note(`flags: ${JSON.stringify(scene.world.flags)}`);
    scene.stopProcess(random.between(100, 20_000));
  }),
  "make a slip": deed(5, (scene, random) => {
    const pod = scene.pickPod(random);
    if (pod?.source !== "file") return;
    const text = toManifest(pod);
    const slips = [
      text.slice(0, random.whole(1, text.length - 3)),
      text.replace('"containers"', '"contaniers"'),
      text.replace('"image"', '"imagee"'),
      "",
      "\u0000\u0001 not text",
      text.replace('"v1"', '"v2"'),
    ];
    scene.breakFile(pod, random.pick(slips), random);
  }),
  "make an edit that cannot start": deed(6, (scene, random) => {
    const pod = scene.inFiles().find((one) => isUp(scene.world, one));
    if (!pod) return;
    const text = toManifest(pod);
    const edits = [
      text.replace(/"image": "app\d:1"/, '"image": "missing:1"'),
      text.replace('"env": [', '"envFrom": [{"secretRef": {"name": "missing"}}], "env": ['),
      text.replace('"restartPolicy"', '"nodeSelector": {"disk": "missing"}, "restartPolicy"'),
    ];
    scene.breakFile(pod, random.pick(edits), random);
  }),
  "move the manifests away": fault(2, (scene, random) => {
    if (scene.canWrite) scene.takeAway();
    scene.endLater(random, () => scene.bringBackManifests(), 5 * 60_000);
  }),
  "rename the machine": fault(2, (scene, random) => {
    scene.world.hostName = `box${random.whole(1, 99)}`;
    scene.world.note(`the machine is called ${scene.world.hostName}`);
    scene.stopProcess(random.between(100, 20_000));
  }),
  "rename the node": fault(1, (scene, random) => {
    scene.world.nodeName = `node${random.whole(1, 99)}`;
    scene.world.note(`--hostname-override is ${scene.world.nodeName}`);
    scene.stopProcess(random.between(100, 20_000));
  }),
  "start a second kubelet": deed(2, ({ world, rules }) => world.startSecond(() => rules.noteSecondKubelet())),
  "kill the kubelet": fault(6, (scene) => scene.killProcess()),
  "kill the kubelet for long": fault(2, (scene, random) => scene.killProcess(random.between(60_000, LONGEST_FAULT_MS))),
  "restart the kubelet": fault(4, (scene, random) => scene.stopProcess(random.between(100, 20_000))),
  "crash at a step": fault(10, (scene, random) => scene.world.time.crashAfter(random.whole(1, 120))),
  "crash during an edit": fault(8, (scene, random) => {
    if (scene.editAny(random)) scene.world.time.crashAfter(random.whole(1, 60));
  }),
  "cut the power": fault(4, (scene, random) => {
    scene.cutPower(random);
  }),
  "cut the power after a removal": fault(3, (scene, random) => {
    scene.removeFile(random);
    // The disk has what people did for good, not what follows from it.
    scene.world.disk.sync();
    scene.world.time.after(random.between(20, 40_000), () => scene.cutPower(random));
  }),
  "cut the power after an index of a Job": fault(3, (scene, random) => {
    const { engine, time } = scene.world;
    if (scene.wanted.size >= scene.maxPods) return;
    const { app, containers } = scene.addJob(random);
    scene.world.disk.sync();
    const onEnd = ({ what, by, container: { labels } }: Transition) => {
      if (what !== "end" || by !== "itself" || !isOf(labels, app, containers[0]?.name ?? "")) return;
      engine.observers.delete(onEnd);
      time.after(random.between(20, 5_000), () => scene.cutPower(random));
    };
    engine.observers.add(onEnd);
  }),
  "cut the power after a client's write": fault(3, (scene, random) => {
    const pod = scene.pickSubmitted(random);
    if (!pod) return;
    if (random.chance(0.5)) scene.rules.api.configure(random.hex(8));
    else if (random.chance(0.8)) scene.put({ ...pod, containers: pod.containers.map(changed) }, random);
    else scene.removePod(pod, random);
    // A write that was answered is kept.
    scene.world.time.after(random.between(20, 3_000), () => scene.cutPower(random));
  }),
  "boot in 1970": fault(2, (scene, random) => {
    const { world, rules } = scene;
    const { time } = world;
    rules.excuseAll();
    world.cutPower();
    scene.repairFiles();
    // The clock has no battery: it begins in 1970, until the network tells the time.
    const aheadMs = time.wallMs;
    time.wallOffsetMs -= aheadMs;
    rules.jobs.noteClock(time.wallMs);
    time.after(20_000, () => scene.startProcess());
    scene.endLater(random, () => {
      time.wallOffsetMs += aheadMs;
      rules.jobs.noteClock(time.wallMs);
    });
  }),
  "boot without the manifests": fault(3, (scene, random) => scene.bootWithoutManifests(random)),
  "boot without the manifests after an edit": fault(3, (scene, random) => {
    const { world } = scene;
    const pod = scene.inFiles().find((one) => isUp(world, one));
    if (!pod || world.time.nowMs - scene.changedMs < 3_600_000) return;
    scene.put({ ...pod, containers: pod.containers.map(changed) }, random);
    const edited = scene.wanted.get(pod.app);
    const poll = (leftMs: number) => {
      if (!edited || leftMs <= 0 || scene.wanted.get(pod.app) !== edited) return;
      if (!scene.rules.isUpToDate(edited)) return void world.time.after(100, () => poll(leftMs - 100));
      // The checkpoint is written a moment after the edit.
      world.time.after(2_000, () => scene.bootWithoutManifests(random, true));
    };
    poll(120_000);
  }),
  "boot without the manifests, with a damaged checkpoint": fault(2, (scene, random) => {
    const { world, rules } = scene;
    const { disk, time } = world;
    if (!scene.canWrite) return;
    rules.excuseAll();
    world.cutPower();
    // An empty directory would be all that is known: then nothing is wanted.
    disk.rename(MANIFESTS, `${MANIFESTS}.away`);
    for (const path of disk.list(`${ROOT_DIR}/checkpoints`).keys()) {
      // Versions that no one wrote.
      disk.write(
        path,
        (disk.read(path) ?? "").replace(/("name":"VERSION","value":")\d/g, (_, before) => `${before}9`),
      );
    }
    time.after(random.between(20_000, 300_000), () => scene.startProcess());
    scene.endLater(random, () => scene.bringBackManifests(), LONGEST_FAULT_MS, 5 * 60_000);
  }),
  "restart the engine": fault(5, (scene, random) => scene.restartEngine(random, 120_000)),
  "restart the engine during an edit": fault(5, (scene, random) => {
    if (!scene.editAny(random)) return;
    scene.world.time.after(random.between(100, 8_000), () => scene.restartEngine(random, 60_000));
  }),
  "hang the engine": fault(6, (scene, random) => {
    const { wire, time } = scene.world;
    wire.disturb({ hangsUntilMs: time.nowMs + random.between(1_000, 300_000) });
    if (random.chance(0.5)) scene.editAny(random);
  }),
  "refuse connections": onWire(3, () => ({ isRefusing: true }), 10 * 60_000),
  "lose responses": onWire(6, (random) => ({ cutShare: random.between(0.02, 0.5) })),
  "answer with errors": onWire(5, (random) => ({ errorShare: random.between(0.02, 0.4) })),
  "be slow": lasting(3, ({ wire, engine }, random) => {
    // Below the time-out of a probe, or above it.
    wire.disturb({ latencyMs: random.chance(0.5) ? random.between(50, 1_000) : random.between(1_000, 8_000) });
    engine.removalMs = 10_000;
    return () => {
      wire.repair();
      engine.removalMs = 40;
    };
  }),
  "fail starts": lasting(4, ({ engine }, random) => {
    engine.failingStartShare = random.between(0.1, 0.9);
    return () => void Object.assign(engine, { failingStartShare: 0 });
  }),
  "fail pulls": lasting(2, ({ engine }) => {
    engine.failingPullShare = 0.8;
    return () => void Object.assign(engine, { failingPullShare: 0 });
  }),
  "move a tag": deed(3, ({ world }, random) => {
    const image = `app${random.whole(1, 4)}:1`;
    world.note(`someone pushes another ${image}`);
    world.engine.push(image);
  }),
  "lose events": lasting(4, ({ engine }, random) => {
    engine.lostEventShare = random.between(0.05, 1);
    engine.eventDelayMs = random.between(1, 5_000);
    return () => void Object.assign(engine, { lostEventShare: 0, eventDelayMs: 2 });
  }),
  "break event streams": fault(3, ({ world }) => world.engine.closeStreams()),
  "docker kill": toContainer(5, (engine, container, random) =>
    engine.endByForce(container, random.pick([137, 143, 0]), "stranger"),
  ),
  "docker kill whose event is lost": toContainer(3, (engine, container) =>
    engine.unseen(() => engine.endByForce(container, 137, "stranger")),
  ),
  "docker restart while dockerd restarts": fault(3, (scene, random) => {
    const container = scene.pickContainer(random);
    if (!container || !scene.world.engine.restartByForce(container)) return;
    scene.restartEngine(random, 20_000, true);
  }),
  "docker rm": toContainer(4, (engine, container) => engine.removeByForce(container)),
  "docker rm whose event is lost": toContainer(3, (engine, container) =>
    engine.unseen(() => engine.removeByForce(container)),
  ),
  "run out of memory": toContainer(3, (engine, container) => engine.endByForce(container, 137, "machine", true)),
  "crash in a loop": deed(3, (scene, random) => scene.crashInLoop(random)),
  "crash in a loop while the kubelet restarts": fault(3, (scene, random) => {
    scene.crashInLoop(random);
    for (const _ of [1, 2, 3]) scene.world.time.after(random.between(30_000, 900_000), () => scene.killProcess());
  }),
  "crash after a long run": fault(2, (scene, random) => {
    const { engine, time } = scene.world;
    const pod = scene.inFiles().find((one) => isUp(scene.world, one) && one.restartPolicy === "Always");
    const [first, ...others] = pod?.containers ?? [];
    if (!pod || !first) return;
    const program = ["exit", "7200", "1"];
    scene.put({ ...pod, containers: [{ ...changed(first), program, ...PLAIN }, ...others] }, random);
    // Others end it soon after each start, so that its back-off grows; then a clock that was ahead is set.
    for (const seconds of [120, 180, 240]) {
      time.after(seconds * 1000, () => {
        const found = scene.world.ownRunning().find(({ labels }) => isOf(labels, pod.app, first.name));
        if (found) engine.endByForce(found, 137, "stranger");
      });
    }
    time.after(300_000, () => {
      scene.setClock(-86_400_000);
      scene.killProcess();
    });
    time.after(2.5 * 3_600_000, () => {
      const now = scene.wanted.get(pod.app);
      const [at, ...rest] = now?.containers ?? [];
      if (now && at?.program === program)
        scene.put({ ...now, containers: [{ ...changed(at), program: first.program }, ...rest] }, random);
    });
  }),
  "become unready": fault(3, (scene, random) =>
    scene.sicken(random, 900_000, (container) => scene.rules.hasReadiness(container)),
  ),
  "become unhealthy": fault(4, (scene, random) => scene.sicken(random, 600_000)),
  "set the clock": fault(3, (scene, random) => {
    scene.setClock(random.pick([-1, 1]) * random.pick([1_500, 60_000, 3_600_000, 86_400_000, 400 * 86_400_000]));
  }),
  "fill the disk": lasting(4, (world, random) => {
    world.failDisk(random.pick(["ENOSPC", "EIO", "EROFS"] as const), ROOT_DIR);
    return () => world.failDisk();
  }),
  "remove a pod while the disk fails": fault(2, (scene, random) => {
    const { world } = scene;
    world.failDisk(random.pick(["EIO", "EROFS", "EBUSY"] as const), `${ROOT_DIR}/pods`);
    scene.removeFile(random);
    scene.endLater(random, () => world.failDisk(), LONGEST_FAULT_MS, 60_000);
  }),
  "reload the firewall": deed(3, ({ world, rules }) => {
    rules.services.expectBack();
    world.firewall.reload();
  }),
  "remove a rule of Services": deed(2, ({ world, rules }, random) => {
    rules.services.expectBack();
    world.firewall.removeJump((count) => random.whole(0, count - 1));
  }),
  "let another kubelet-ts have a port": deed(2, (scene, random) => {
    const ports = [...scene.wanted.values()].flatMap(({ nodePort }) => nodePort ?? []);
    if (ports.length === 0) return;
    const port = random.pick(ports);
    scene.world.note(`another kubelet-ts publishes port ${port}`);
    const end = scene.world.firewall.publishForOther(port);
    scene.world.time.after(random.between(10_000, 86_400_000), () => {
      end();
      scene.world.time.stir();
    });
  }),
  "break iptables": lasting(
    2,
    ({ firewall }) => {
      firewall.failure = "Another app is currently holding the xtables lock.";
      return () => void Object.assign(firewall, { failure: "" });
    },
    10 * 60_000,
  ),
  "start while iptables fails": fault(2, (scene, random) => {
    const { firewall } = scene.world;
    // A process that finds neither rules nor a kernel that takes some gives Services no addresses until it ends.
    if (firewall.ownDestinations().size === 0) return;
    firewall.failure = "Another app is currently holding the xtables lock.";
    scene.killProcess(random.between(100, 20_000));
    scene.endLater(random, () => void Object.assign(firewall, { failure: "" }), 10 * 60_000, 60_000);
  }),
  "lie at the URL": lasting(4, ({ wire }) => {
    wire.manifests.isLying = true;
    return () => void Object.assign(wire.manifests, { isLying: false });
  }),
  "boot while the URL lies": fault(2, (scene, random) => {
    const { manifests } = scene.world.wire;
    manifests.isLying = true;
    scene.cutPower(random);
    scene.expectCheckpoint();
    scene.endLater(random, () => void Object.assign(manifests, { isLying: false }), LONGEST_FAULT_MS, 25 * 60_000);
  }),
  "strangers come and go": deed(3, (scene, random) => {
    const { engine, time } = scene.world;
    const container = engine.addForeign(`theirs-${random.hex(6)}`);
    time.after(random.between(60_000, 3 * 86_400_000), () => engine.removeByForce(container));
  }),
};
