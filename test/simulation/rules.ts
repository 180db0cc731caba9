import { ApiClients } from "./api-clients.ts";
import { ClusterClients } from "./cluster-clients.ts";
import { DependencyRules } from "./dependency-rules.ts";
import { HOOKS, isLasting, PROBE_PERIOD_SECONDS, podsOf, type WantedContainer, type WantedPod } from "./desired.ts";
import { hasBadValue, type ModelContainer, type Transition } from "./engine-model.ts";
import { JobHistory, runOf } from "./job-rules.ts";
import { ReleasedPods } from "./released-pods.ts";
import { ServiceRules } from "./service-rules.ts";
import { VolumeRules } from "./volume-rules.ts";
import { Watchers } from "./watchers.ts";
import { DAY_MS, MANIFESTS, ROOT_DIR, type World } from "./world.ts";

export const LABEL = {
  node: "kubelet-ts.io/node",
  podName: "io.kubernetes.pod.name",
  podUid: "io.kubernetes.pod.uid",
  container: "io.kubernetes.container.name",
  sandbox: "io.kubernetes.sandbox.id",
  restarts: "annotation.io.kubernetes.container.restartCount",
} as const;

/** Something that must not happen, happened. */
export class Violation extends Error {
  override readonly name = "Violation";
  readonly rule: string;

  constructor(rule: string, message: string) {
    super(`${rule}: ${message}`);
    this.rule = rule;
  }
}

/** After an edit a process may still act on the text it read before. */
const EDIT_SETTLES_MS = 60 * 60_000;
/** The first restart comes at once, then 10 s after the end, then twice as long each time up to 5 min; afresh after a run of 10 min. */
const BACK_OFF = { firstMs: 10_000, longestMs: 300_000, resetMs: 600_000 };
/** A container that ended is started again this much after its back-off at the latest: its event tells, not the next list. */
const RESTART_NOTICE_MS = 10_000;
/** A pod that was restarted or deleted has stopped its containers by then: the longest grace period, and more. */
const RESTARTED_MS = 2 * 60_000;
/** Whatever is wrong, an app does not have more pods than this in ten minutes: a controller that undoes what it did has no end. */
const MOST_MADE = { count: 500, withinMs: 600_000 };
/** Edits and removals have taken effect by then. */
const PROMPT_MS = 3 * 60_000;
/** A container that does not end when it is asked to is killed this much after its grace period at the latest. */
const KILL_DELAY_MS = 5_000;
/** A liveness probe has failed twice by then, and its container was stopped. */
const UNHEALTHY_MS = 2 * PROBE_PERIOD_SECONDS * 1000 + 2 * 60_000;
/** A report that was lost has come by then. */
const REPORTED_MS = 60_000;
/** A pull is this old at most when a container is made from its image: others of the pod may have been pulled since. */
const PULL_AGE_MS = 10 * 60_000;
/** Rest of a grace period that the command before the stop has used up. */
const LEAST_GRACE_SECONDS = 2;
/** The command after the start of a container has run by then. */
const HOOK_MS = 60_000;
/** Nothing of a pod comes back after this time. */
const DAYS_WITHOUT_TRACE = 14;
const POD_LOGS = "/var/log/pods";
const CONTAINER_LOGS = "/var/log/containers";
/** `maxUnavailable` of a Deployment that sets none. */
const MAX_UNAVAILABLE = 0.25;
/** Lines of the log in the last two hours of a day, for a machine on which nothing happens, and for each container. */
const LOG_LINES_AT_REST = { machine: 20, container: 8 };

/** Requests to the engine and writes of files in two quiet hours, most of them those of probes, and for each container that starts. */
const REST = { requests: 60, writes: 20, perContainer: 40, perStart: 30 };

interface SandboxHistory {
  /** Containers that ended with 0, by name. */
  done: Set<string>;
  started: Set<string>;
}

/**
 * The rules that hold whatever happens, by a model of their own: docs/sources.md says when a pod ends, docs/reliability.md lists
 * the rules in a user's words.
 */
export class Rules {
  readonly #world: World;
  /** The last valid text of each file, by app; people change it with the files. */
  readonly wanted: Map<string, WantedPod>;
  /** Apps whose removed file was seen no longer than this ago. */
  readonly removedMs = new Map<string, number>();
  readonly #sandboxes = new Map<string, SandboxHistory>();
  /** Pods that had a container, with their apps, and on how many days nothing was left of them. */
  readonly #pods = new Map<string, { app: string; daysGone: number }>();
  /** When containers were removed, by id. */
  readonly #removedMs = new Map<string, number>();
  readonly #restarts = new Map<string, number>();
  /** Keyed by pod, container, version and sandbox. */
  readonly #backOff = new Map<string, { delayMs: number; startedMs: number; endedMs: number | undefined }>();
  /** Containers that are done for good: pod, container and version. */
  readonly #done = new Set<string>();
  /** Grace periods by app, also of those without a manifest. No edit changes them. */
  readonly #graceSeconds = new Map<string, number>();
  readonly jobs = new JobHistory();
  readonly services: ServiceRules;
  readonly api: ApiClients;
  readonly cluster: ClusterClients | undefined;
  readonly watchers: Watchers;
  readonly volumes: VolumeRules;
  readonly released: ReleasedPods;
  readonly #dependencies: DependencyRules;
  /** When people last changed the replicas of a Deployment, by app. */
  readonly scaledMs = new Map<string, number>();
  readonly #touchedMs = new Map<string, number>();
  /** When people edited the values of a workload at rest, by app. */
  readonly #valuesMs = new Map<string, number>();
  /** The first pod with values that are bad, by app. */
  readonly #badPods = new Map<string, string>();
  /** When pods were made lately, by app. */
  readonly #madeMs = new Map<string, number[]>();
  #logLinesBefore = 0;
  #before = { requests: 0, writes: 0, starts: 0 };
  #starts = 0;
  /** Reasons other than the manifest to stop what runs, per pod name: a dead sandbox, a probe. */
  readonly #excusedMs = new Map<string, number>();
  /** Since when the node is cordoned, where no pod was on its way. */
  #cordonedMs: number | undefined;
  violation: Violation | undefined;

  constructor(world: World, wanted: Map<string, WantedPod>) {
    this.#world = world;
    this.wanted = wanted;
    const fail = (rule: string, message: string) => this.#fail(new Violation(rule, message));
    this.api = new ApiClients(world, wanted, fail);
    const isDisturbed = () => this.#isDisturbed(EDIT_SETTLES_MS);
    this.cluster = world.cluster && new ClusterClients({ world, server: world.cluster, wanted, isDisturbed, fail });
    this.watchers = new Watchers(world, wanted, fail);
    this.volumes = new VolumeRules(world, fail);
    this.#dependencies = new DependencyRules(() => world.time.nowMs);
    world.onPowerCut = () => {
      this.volumes.notePowerCut();
      this.#dependencies.noteBoot();
    };
    this.services = new ServiceRules({
      world,
      wanted,
      isDisturbed,
      lastFaultMs: () => this.lastFaultMs,
      workingPods: (pod) => this.#workingPods(pod),
      fail,
    });
    this.released = new ReleasedPods({
      world,
      wanted,
      workingPods: (pod) => this.#workingPods(pod),
      noteTouch: (app) => this.noteTouch(app),
      isDisturbed,
      fail,
    });
    world.onSecret = (place) => fail("secret", `the value of a Secret is in ${place}`);
    world.wire.onRefusal = (text, message) => {
      const isChange = /^(POST|DELETE) .containers/.test(text);
      if (isChange && !this.#isDisturbed(EDIT_SETTLES_MS)) fail("refusal", `${text}: ${message}`);
    };
    world.engine.observers.add((transition) => {
      try {
        this.#check(transition);
      } catch (error) {
        if (!(error instanceof Violation)) throw error;
        this.#fail(error);
      }
    });
  }

  #fail(violation: Violation): void {
    if (this.violation) return;
    this.violation = violation;
    this.#world.note(`VIOLATION ${violation.message}`);
  }

  /** A kubelet was started on a root directory that another one uses. */
  noteSecondKubelet(): void {
    this.#fail(new Violation("one kubelet", "a second kubelet-ts was not refused the root directory"));
  }

  /** A pod has a reason to stop its containers. */
  excuse(podName: string): void {
    this.#excusedMs.set(podName, this.#world.time.nowMs);
  }

  /** Every pod has a reason: the machine or the engine was away. */
  excuseAll(): void {
    for (const { labels } of this.#world.engine.containers.values()) {
      const name = labels[LABEL.podName];
      if (name !== undefined) this.excuse(name);
    }
  }

  #isExcused(podName: string, withinMs: number): boolean {
    return this.#world.time.nowMs - (this.#excusedMs.get(podName) ?? Number.NEGATIVE_INFINITY) < withinMs;
  }

  #check({ what, container, by }: Transition): void {
    const isOurs = container.labels[LABEL.node] !== undefined;
    if (!isOurs) {
      if (by === "request") throw new Violation("foreign", `${what} of ${container.name}, which is not ours`);
      return;
    }
    const isSandbox = container.labels[LABEL.container] === "POD";
    const app = appOf(container);
    if (app !== undefined && !isSandbox)
      this.#dependencies.note(
        { what, container, by },
        container.labels[LABEL.container] ?? "",
        app,
        this.wanted.get(app),
      );
    if (what === "create") this.#checkCreate(container);
    if (what === "start") this.#checkStart(container, isSandbox);
    if (what === "term" && by === "request") {
      this.#checkStop(container, isSandbox);
      if (!isSandbox) this.#expectEnd(container);
    }
    if (what === "kill" && by === "request") this.#checkKill(container, isSandbox);
    if (what === "end") this.#noteEnd(container, isSandbox, by);
    if (what === "remove") this.#forget(container);
    if (what === "remove" && by === "request") this.#checkRemoval(container);
    // The count is on the container: who removes it removes the count, as with the kubelet. --maximum-dead-containers does with pods that are done.
    const isForgotten =
      Number(this.#world.flags.maximumDeadContainers ?? -1) >= 0 && this.#done.has(attemptKey(container));
    if (what === "remove" && (by === "stranger" || isForgotten)) this.#restarts.delete(countKey(container));
  }

  /** The last container of a pod goes with the pod. */
  #checkRemoval(container: ModelContainer): void {
    const uid = container.labels[LABEL.podUid] ?? "";
    if (!this.api.isLeftBehind(uid)) return;
    const isLast = ![...this.#world.engine.containers.values()].some(({ labels }) => labels[LABEL.podUid] === uid);
    if (isLast) throw new Violation("orphan", `${container.name} is removed with its Deployment`);
  }

  /** A person restarts a pod: each of its containers that run on is another one soon after. */
  async restartPod(podName: string): Promise<void> {
    const { time, engine } = this.#world;
    const isOf = ({ status, labels }: ModelContainer) =>
      status === "running" && labels[LABEL.podName] === podName && labels[LABEL.container] !== "POD";
    const before = [...engine.containers.values()].filter(isOf);
    const pod = before[0] && this.#podOf(before[0]);
    if (!pod || this.api.isOrphaned(pod)) return;
    this.excuse(podName);
    this.noteTouch(pod.app);
    if (!(await this.api.restartPod(podName))) return;
    this.excuse(podName);
    const { nowMs } = time;
    time.after(RESTARTED_MS, () => {
      const wanted = before[0] && this.#podOf(before[0]);
      if (this.#isDisturbed(EDIT_SETTLES_MS) || !wanted || nowMs - wanted.changedMs < EDIT_SETTLES_MS) return;
      const left = before.find((container) => container.status === "running" && engine.containers.has(container.id));
      if (left) this.#fail(new Violation("restart", `${left.name} runs on, although its pod was restarted`));
    });
  }

  /** The node takes no new pods of workloads until it is uncordoned. @param isCordoned false: a person uncordons it */
  cordon(isCordoned: boolean): void {
    const { nowMs } = this.#world.time;
    this.#cordonedMs = undefined;
    // Pods made before are assigned to the node, and may wait for another reason.
    const begin = () => {
      if (isCordoned && this.wasCalm && nowMs - this.#lastEditMs() > EDIT_SETTLES_MS)
        this.#cordonedMs = this.#world.time.nowMs;
    };
    this.api.cordon(isCordoned, begin);
  }

  #lastEditMs(): number {
    const edits = [...this.wanted.values()].flatMap(({ app, changedMs }) => [changedMs, this.scaledMs.get(app) ?? 0]);
    return Math.max(0, ...edits);
  }

  /** A person deletes or evicts a pod of a workload, which makes another one. */
  async deletePod(pod: WantedPod, isEvicted = false): Promise<void> {
    const { app } = pod;
    const { time } = this.#world;
    const container = this.#world.ownRunning().find((one) => appOf(one) === app && !this.released.has(one));
    if (!container || this.api.isOrphaned(pod)) return;
    this.noteTouch(app);
    const name = container.labels[LABEL.podName] ?? "";
    if (!(await (isEvicted ? this.api.evictPod(name) : this.api.deletePod(name)))) return;
    time.after(RESTARTED_MS, () => {
      if (this.#isDisturbed(EDIT_SETTLES_MS)) return;
      const uid = container.labels[LABEL.podUid];
      const left = this.#world.ownRunning().find(({ labels }) => labels[LABEL.podUid] === uid);
      if (left) this.#fail(new Violation("deletion", `${left.name} runs on, although its pod was deleted`));
    });
  }

  /** Deletes the Deployment of a pod but not its pods, and makes it again. Those of an older version may go meanwhile. */
  orphan(pod: WantedPod, afterMs: number): void {
    const isCurrent = (it: ModelContainer) =>
      pod.containers.some(({ name, version }) => name === it.labels[LABEL.container] && version === versionOf(it));
    const own = [...this.#world.engine.containers.values()].filter(
      (it) => appOf(it) === pod.app && isCurrent(it) && !this.released.has(it),
    );
    const uids = this.isSettled(pod) ? own.map(({ labels }) => labels[LABEL.podUid] ?? "") : [];
    this.api.orphan(pod, new Set(uids), afterMs);
  }

  /** The API server tells when such a pod ends, and no edit lets it run again. */
  isOfCluster(pod: WantedPod | undefined): boolean {
    return pod?.source === "cluster";
  }

  /** Nothing of a pod was changed for long. */
  isSettled({ app, changedMs }: WantedPod): boolean {
    const { nowMs } = this.#world.time;
    return [changedMs, this.scaledMs.get(app) ?? 0].every((ms) => nowMs - ms > EDIT_SETTLES_MS);
  }

  /** Nothing is wrong with a pod, and nothing was for long. */
  isAtRest(pod: WantedPod): boolean {
    const running = this.#world.ownRunning().filter((container) => appOf(container) === pod.app);
    const isWhole = (spec: WantedContainer) =>
      running.filter((one) => one.labels[LABEL.container] === spec.name && isRight(pod, spec, one)).length ===
      pod.replicas;
    return this.isSettled(pod) && !this.#isDisturbed(EDIT_SETTLES_MS) && pod.containers.every(isWhole);
  }

  #forget({ id }: ModelContainer): void {
    this.#sandboxes.delete(id);
    if (this.#world.collections) this.#removedMs.set(id, this.#world.time.nowMs);
    for (const key of this.#backOff.keys()) if (key.endsWith(id)) this.#backOff.delete(key);
  }

  /** restartCount of a container of a pod never falls. */
  #checkCreate(container: ModelContainer): void {
    const wanted = this.#podOf(container);
    if (wanted) this.#graceSeconds.set(wanted.app, wanted.graceSeconds);
    const wrong = this.#isDisturbed(EDIT_SETTLES_MS) ? undefined : this.#findEarlyPod(container, wanted);
    if (wrong !== undefined) throw new Violation("ordinal", wrong);
    const isNew = !this.#pods.has(container.labels[LABEL.podUid] ?? "");
    const isHeld = wanted?.replicas !== undefined && wanted.kind !== "DaemonSet" && this.#cordonedMs !== undefined;
    if (isNew && isHeld) throw new Violation("cordon", `${container.name} is made on a node that is cordoned`);
    if (wanted) this.#pods.set(container.labels[LABEL.podUid] ?? "", { app: wanted.app, daysGone: 0 });
    this.#checkImage(container);
    if (wanted && container.labels[LABEL.container] === "POD") this.#checkCount(wanted);
    if (wanted && !this.#isDisturbed(EDIT_SETTLES_MS)) this.volumes.noteCreate(container, wanted);
    const text = container.labels[LABEL.restarts];
    if (text === undefined || container.labels[LABEL.container] === "POD") return;
    const key = countKey(container);
    const before = this.#restarts.get(key) ?? 0;
    if (Number(text) < before) {
      throw new Violation("restart count", `${container.name} is made with ${text} after ${before}`);
    }
    this.#restarts.set(key, Number(text));
  }

  /** Controllers come to an end. */
  #checkCount({ app }: WantedPod): void {
    const { nowMs } = this.#world.time;
    const made = [...(this.#madeMs.get(app) ?? []).filter((ms) => nowMs - ms < MOST_MADE.withinMs), nowMs];
    this.#madeMs.set(app, made);
    if (made.length > MOST_MADE.count)
      throw new Violation("rollout", `${made.length} pods of ${app} were made in ten minutes`);
  }

  /** A pod of a StatefulSet is made while all before it work. @returns what is wrong */
  #findEarlyPod({ labels, name }: ModelContainer, wanted: WantedPod | undefined): string | undefined {
    const isNew = !this.#pods.has(labels[LABEL.podUid] ?? "") && !this.#isTouched(wanted?.app);
    if (wanted?.kind !== "StatefulSet" || !isNew) return undefined;
    const uids = [...this.#workingPods(wanted).keys()];
    const working = new Set(
      this.#world
        .ownRunning()
        .filter((one) => uids.includes(one.labels[LABEL.podUid] ?? ""))
        .map(ordinalOf),
    );
    const missing = Array.from({ length: ordinalOf({ labels }) }, (_, at) => at).find((at) => !working.has(at));
    return missing === undefined ? undefined : `${name} is made while ${wanted.app}-${missing} does not work`;
  }

  /** People change pods of an app by other ways than their template. */
  noteTouch(app: string): void {
    this.scaledMs.set(app, this.#world.time.nowMs);
    this.#touchedMs.set(app, this.#world.time.nowMs);
  }

  /** The values in the environment of a workload were edited. @param wasAtRest nothing else is a reason to stop its pods */
  noteValues(app: string, wasAtRest: boolean): void {
    const valuesMs = this.#valuesMs.get(app);
    const isNext = valuesMs !== undefined && valuesMs === this.scaledMs.get(app);
    this.noteTouch(app);
    if (wasAtRest || isNext) this.#valuesMs.set(app, this.#world.time.nowMs);
    this.#badPods.delete(app);
  }

  /** While a value is bad in the pod that has it first, the others keep the earlier one, also when they end by themselves. */
  #checkTurn(container: ModelContainer, wanted: WantedPod): void {
    if (!hasBadValue(container)) return;
    const uid = container.labels[LABEL.podUid] ?? "";
    const first = this.#badPods.getOrInsert(wanted.app, uid);
    if (first !== uid && this.#takesTurns(wanted) && !this.#isDisturbed(EDIT_SETTLES_MS))
      throw new Violation("turn", `${container.name} starts with a value with which another pod does not work`);
  }

  /** Nothing but an edit of its values is a reason to stop pods of a workload. */
  #takesTurns({ app, changedMs }: WantedPod): boolean {
    const scaledMs = this.scaledMs.get(app);
    return this.#valuesMs.get(app) === scaledMs && changedMs === scaledMs;
  }

  /** Whether they did so lately. */
  #isTouched(app: string | undefined): boolean {
    return this.#world.time.nowMs - (this.#touchedMs.get(app ?? "") ?? Number.NEGATIVE_INFINITY) < EDIT_SETTLES_MS;
  }

  /** The last pods of a StatefulSet go first, and are replaced first; those below its partition stay. @returns what is wrong with a stop */
  #findEarlyStop(container: ModelContainer, pod: WantedPod): string | undefined {
    const { app, replicas = 0, partition } = pod;
    const ordinal = ordinalOf(container);
    const spec = pod.containers.find(({ name }) => name === container.labels[LABEL.container]);
    const isKept = partition && spec && ordinal < partition.ordinal && isRight(pod, spec, container);
    if (isKept) return `${container.name} is stopped below partition ${partition.ordinal}`;
    const later = this.#world.ownRunning().filter((one) => appOf(one) === app && ordinalOf(one) > ordinal);
    if (ordinal >= replicas) return later[0] && `${container.name} is stopped before ${later[0].name}`;
    const templateOf = (one: ModelContainer) => Number(envOf(one, "TEMPLATE"));
    const old = later.find((one) => templateOf(one) <= templateOf(container));
    return old && `${container.name} is replaced before ${old.name}`;
  }

  /** With `Always` the registry was asked before, and what it has is what runs. */
  #checkImage(container: ModelContainer): void {
    const { engine, time } = this.#world;
    const reference = envOf(container, "PULL");
    if (reference === undefined || this.#isDisturbed(EDIT_SETTLES_MS)) return;
    const ageMs = time.nowMs - (engine.pulledMs.get(reference) ?? Number.NEGATIVE_INFINITY);
    if (ageMs > PULL_AGE_MS) throw new Violation("image", `${container.name} is made without a pull of ${reference}`);
    if (container.imageId !== engine.images.get(reference)?.id)
      throw new Violation("image", `${container.name} is made from another image than ${reference} was pulled as`);
  }

  /** Commands of a container run once after its start, and before it is asked to end. */
  #expectHooks(container: ModelContainer): void {
    const { starts } = container;
    this.#world.time.after(HOOK_MS, () => {
      if (container.status !== "running" || container.starts !== starts || this.#isDisturbed(EDIT_SETTLES_MS)) return;
      const count = container.hooks.filter((name) => name === HOOKS.postStart).length;
      if (count !== 1)
        this.#fail(new Violation("hook", `${container.name} ran ${HOOKS.postStart} ${count} times after its start`));
    });
  }

  #checkStart(container: ModelContainer, isSandbox: boolean): void {
    const { labels, name } = container;
    this.#starts++;
    for (const other of this.#world.engine.containers.values()) {
      if (other === container || other.status !== "running") continue;
      // Pods of files have the name of the node in theirs, which may change.
      const isTwin =
        other.labels[LABEL.container] === labels[LABEL.container] &&
        (other.labels[LABEL.podName] === labels[LABEL.podName] || this.#isOneApp(other, container));
      if (isTwin) throw new Violation("one of each", `${name} starts while ${other.name} runs`);
    }
    if (isSandbox) {
      this.#sandboxes.set(container.id, { done: new Set(), started: new Set() });
      return;
    }
    const wanted = this.#podOf(container);
    this.volumes.noteStart(container, wanted);
    if (hasHooks(container)) this.#expectHooks(container);
    if (wanted) checkVersion(container, wanted);
    if (wanted) this.#checkTurn(container, wanted);
    const history = this.#sandboxes.get(labels[LABEL.sandbox] ?? "");
    if (wanted && history) this.#checkOrder(container, wanted, history);
    if (wanted && history?.started.size === 0) this.#checkDependency(container, wanted);
    history?.started.add(labels[LABEL.container] ?? "");
    this.#checkBackOff(container);
    const run = this.#runOf(container);
    const wrong = run && this.jobs.noteStart(run, wanted?.job?.schedule);
    if (wrong !== undefined) throw new Violation("run once", wrong);
  }

  /** The first container of a pod starts after the pod that it depends on. */
  #checkDependency(container: ModelContainer, { dependsOn }: WantedPod): void {
    const dependency = dependsOn === undefined ? undefined : this.wanted.get(dependsOn);
    if (!dependency) return;
    const isNew = this.#world.time.nowMs - dependency.changedMs < EDIT_SETTLES_MS;
    const isCalm = !isNew && !this.#isDisturbed(EDIT_SETTLES_MS);
    const wrong = this.#dependencies.findEarlyStart(container, dependency, isCalm);
    if (wrong !== undefined) throw new Violation("dependency", wrong);
  }

  /** Both belong to the one pod of a file. */
  #isOneApp(a: ModelContainer, b: ModelContainer): boolean {
    const app = appOf(a);
    if (app === undefined || app !== appOf(b)) return false;
    const wanted = this.wanted.get(app);
    // Without a file, nothing tells one pod from several.
    const isOne = wanted?.replicas === undefined || wanted.kind === "DaemonSet";
    return wanted !== undefined && isOne && wanted.job === undefined;
  }

  /** Init containers one after the other, then the others in the order of the spec. */
  #checkOrder(container: ModelContainer, wanted: WantedPod, history: SandboxHistory): void {
    const name = container.labels[LABEL.container] ?? "";
    const { init, containers } = wanted;
    // An edit may have added containers meanwhile.
    if (this.#world.time.nowMs - wanted.changedMs < EDIT_SETTLES_MS) return;
    const initAt = init.findIndex((it) => it.name === name);
    const before = initAt >= 0 ? init.slice(0, initAt) : init;
    const unfinished = before.find((it) => !history.done.has(it.name));
    const isKnown = initAt >= 0 || containers.some((it) => it.name === name);
    if (unfinished && isKnown && !this.#isExcused(container.labels[LABEL.podName] ?? "", EDIT_SETTLES_MS)) {
      throw new Violation("order", `${container.name} starts before ${unfinished.name} is done`);
    }
    const at = containers.findIndex((it) => it.name === name);
    if (at < 0 || history.started.has(name)) return;
    const skipped = containers.slice(0, at).find((it) => !history.started.has(it.name));
    if (skipped && this.#world.engine.failingStartShare === 0 && !this.#isDisturbed(EDIT_SETTLES_MS)) {
      throw new Violation("order", `${container.name} starts before ${skipped.name}`);
    }
  }

  #checkBackOff(container: ModelContainer): void {
    const key = backOffKey(container);
    const wanted = this.#podOf(container);
    const changedMs = wanted?.changedMs ?? Number.POSITIVE_INFINITY;
    // An edit of a pod that has ended lets all of it run again.
    const isEdited = this.#world.time.nowMs - changedMs <= EDIT_SETTLES_MS && !this.isOfCluster(wanted);
    if (this.#done.has(attemptKey(container)) && !isEdited) {
      throw new Violation("run once", `${container.name} starts again, although it is done`);
    }
    const nowMs = this.#world.time.nowMs;
    const before = this.#backOff.get(key);
    if (before?.endedMs === undefined) {
      // A container that was ended by others has its own rules.
      this.#backOff.set(key, { delayMs: before?.delayMs ?? 0, startedMs: nowMs, endedMs: undefined });
      return;
    }
    const isFresh = before.endedMs - before.startedMs > BACK_OFF.resetMs;
    const dueMs = before.endedMs + (isFresh ? 0 : before.delayMs);
    if (nowMs < dueMs - 100) {
      throw new Violation("back-off", `${container.name} starts ${(dueMs - nowMs) / 1000} s too early`);
    }
    const delayMs =
      isFresh || before.delayMs === 0 ? BACK_OFF.firstMs : Math.min(2 * before.delayMs, BACK_OFF.longestMs);
    this.#backOff.set(key, { delayMs, startedMs: nowMs, endedMs: undefined });
  }

  /** A container that is what its manifest asks for, in a living sandbox, is not stopped. */
  #checkStop(container: ModelContainer, isSandbox: boolean): void {
    const podName = container.labels[LABEL.podName] ?? "";
    const wanted = this.#podOf(container);
    const isPrepared = !hasHooks(container) || container.hooks.includes(HOOKS.preStop);
    if (!isPrepared && container.status === "running" && !this.#isDisturbed(EDIT_SETTLES_MS))
      throw new Violation("hook", `${container.name} is asked to end before it ran ${HOOKS.preStop}`);
    if (!wanted) return;
    if (wanted.replicas !== undefined) return this.#checkAvailability(container, wanted, wanted.replicas);
    const isEdited = this.isOfCluster(wanted)
      ? !this.cluster?.isWanted(container.labels[LABEL.podUid] ?? "")
      : this.#world.time.nowMs - wanted.changedMs < EDIT_SETTLES_MS;
    if (isEdited || this.#isExcused(podName, EDIT_SETTLES_MS)) return;
    if (isSandbox) {
      const isOver = wanted.restartPolicy !== "Always";
      const lives = [...this.#world.engine.containers.values()].some(
        ({ status, labels }) => status === "running" && labels[LABEL.sandbox] === container.id,
      );
      if (isOver && !lives) return;
      throw new Violation("evidence", `the sandbox of ${podName} is stopped without a reason`);
    }
    const spec = [...wanted.init, ...wanted.containers].find(({ name }) => name === container.labels[LABEL.container]);
    if (!spec || versionOf(container) !== spec.version) return;
    if (spec.hasLiveness && container.unhealthyUntilMs > 0) return;
    // A command after the start that fails ends its container, also where the engine could not run it.
    const isYoung = this.#world.time.wallMs - container.startedMs < HOOK_MS;
    if (hasHooks(container) && isYoung && this.#isDisturbed(EDIT_SETTLES_MS)) return;
    throw new Violation("evidence", `${container.name} is stopped although its manifest asks for it`);
  }

  /** A rollout stops a pod that works only when enough others do. */
  #checkAvailability(container: ModelContainer, wanted: WantedPod, replicas: number): void {
    const scaledMs = this.scaledMs.get(wanted.app) ?? Number.NEGATIVE_INFINITY;
    if (this.#isDisturbed(EDIT_SETTLES_MS)) return;
    if (this.released.has(container)) return this.#checkReleased(container, wanted);
    if (this.api.isOrphaned(wanted)) throw new Violation("orphan", `${container.name} is stopped with its Deployment`);
    const isOrdered = wanted.kind === "StatefulSet" && !this.#isTouched(wanted.app);
    const early = isOrdered ? this.#findEarlyStop(container, wanted) : undefined;
    if (early !== undefined) throw new Violation("ordinal", early);
    const takesTurns = this.#takesTurns(wanted);
    if (!takesTurns && this.#world.time.nowMs - scaledMs < EDIT_SETTLES_MS) return;
    const stopped = container.labels[LABEL.podUid];
    const working = this.#workingPods(wanted);
    // Its other containers may have been asked to stop a moment before.
    const isLoss = container.status === "running" && container.labels[LABEL.container] !== "POD";
    const stopping = this.#world.ownRunning().filter(({ termMs }) => termMs !== undefined);
    const uids = [stopped, ...stopping.map(({ labels }) => labels[LABEL.podUid])];
    const others = [...working.keys()].filter((uid) => !uids.includes(uid)).length;
    const least = replicas - (wanted.kind || takesTurns ? 1 : Math.floor(replicas * MAX_UNAVAILABLE));
    if (isLoss && working.has(stopped ?? "") && others < least) {
      throw new Violation(
        "availability",
        `${container.name} is stopped while ${others} other pods work, of at least ${least}`,
      );
    }
  }

  /** A pod that was released from its Deployment goes when a client deletes it. */
  #checkReleased({ name, unhealthyUntilMs }: ModelContainer, { app }: WantedPod): void {
    if (this.#isTouched(app) || unhealthyUntilMs > 0) return;
    throw new Violation("release", `${name} is stopped, although its pod was released from ${app}`);
  }

  /** Addresses of the pods of an app whose containers all run, and do not fail their readiness probe, by uid. */
  #workingPods({ app, containers }: WantedPod): Map<string, string> {
    const running = this.#world.ownRunning();
    const counts = new Map<string, number>();
    for (const container of running) {
      const spec = containers.find(({ name }) => name === container.labels[LABEL.container]);
      const isMain =
        spec &&
        !this.released.has(container) &&
        !(spec.hasReadiness && container.unhealthyUntilMs > this.#world.time.nowMs);
      const uid = container.labels[LABEL.podUid] ?? "";
      if (isMain && appOf(container) === app) counts.set(uid, (counts.get(uid) ?? 0) + 1);
    }
    const sandboxes = running.filter(({ labels }) => labels[LABEL.container] === "POD");
    return new Map(
      sandboxes
        .map(({ labels, ip }): [string, string] => [labels[LABEL.podUid] ?? "", ip])
        .filter(([uid]) => counts.get(uid) === containers.length),
    );
  }

  #checkKill(container: ModelContainer, isSandbox: boolean): void {
    if (isSandbox) return;
    const { termMs, name } = container;
    const wanted = this.#podOf(container);
    if (termMs === undefined) {
      if (wanted) this.#checkStop(container, false);
      throw new Violation("grace", `${name} is killed without having been asked to end`);
    }
    const graceSeconds = this.#graceSeconds.get(appOf(container) ?? "") ?? 0;
    const waitedMs = this.#world.time.wallMs - termMs;
    // A command that hung before has spent its time. Source: the kubelet's `minimumGracePeriodInSeconds`.
    const isSpent = hasHooks(container) && this.#isDisturbed(EDIT_SETTLES_MS);
    if (waitedMs < (isSpent ? Math.min(graceSeconds, LEAST_GRACE_SECONDS) : graceSeconds) * 1000 - 1) {
      throw new Violation("grace", `${name} is killed after ${waitedMs} ms of its ${graceSeconds} s`);
    }
  }

  /** A container that was asked to end has ended when its grace period is over. */
  #expectEnd(container: ModelContainer): void {
    const { time } = this.#world;
    const { starts } = container;
    const graceMs = (this.#graceSeconds.get(appOf(container) ?? "") ?? 30) * 1000;
    time.after(graceMs + KILL_DELAY_MS, () => {
      const runsOn = container.status === "running" && container.starts === starts;
      if (runsOn && !this.#isDisturbed(EDIT_SETTLES_MS))
        this.#fail(new Violation("grace", `${container.name} runs on after its ${graceMs / 1000} s`));
    });
  }

  /** Where nothing is wrong, containers of an edited pod run soon. */
  expectEdit(pod: WantedPod): void {
    const { app, containers, replicas, dependsOn, job, partition } = pod;
    const isPlain = !job && !partition && replicas !== 0 && dependsOn === undefined && containers.every(isLasting);
    if (!isPlain || !this.#world.isRunning || this.#isDisturbed(EDIT_SETTLES_MS)) return;
    this.#world.time.after(PROMPT_MS, () => {
      const now = this.wanted.get(app);
      const isSame = now?.containers === containers && now.replicas === replicas && !now.partition;
      if (!isSame || this.isUpToDate(pod) || this.#isDisturbed(EDIT_SETTLES_MS)) return;
      this.#fail(new Violation("edit", `${app} is not as it was written ${PROMPT_MS / 1000} s ago`));
    });
  }

  /** Where nothing is wrong, containers of a removed pod end soon. */
  expectRemoval(app: string): void {
    if (!this.#world.isRunning || this.#isDisturbed(EDIT_SETTLES_MS)) return;
    this.#world.time.after(PROMPT_MS, () => {
      const left = this.#world.ownRunning().find((one) => appOf(one) === app && !this.released.has(one));
      if (left && !this.#isDisturbed(EDIT_SETTLES_MS))
        this.#fail(new Violation("removal", `${left.name} runs on, although it was removed ${PROMPT_MS / 1000} s ago`));
    });
  }

  #noteEnd(container: ModelContainer, isSandbox: boolean, by: Transition["by"]): void {
    const podName = container.labels[LABEL.podName] ?? "";
    if (isSandbox) {
      this.services.noteEnd(container.ip);
      return this.excuse(podName);
    }
    const history = this.#sandboxes.get(container.labels[LABEL.sandbox] ?? "");
    const wanted = this.#podOf(container);
    if (by === "itself") {
      const backOff = this.#backOff.get(backOffKey(container));
      if (backOff) backOff.endedMs = this.#world.time.nowMs;
      const policy = wanted?.replicas === undefined ? wanted?.restartPolicy : "Always";
      const isMain = wanted?.containers.some(({ name }) => name === container.labels[LABEL.container]);
      const isDone = policy === "Never" || (policy === "OnFailure" && container.exitCode === 0);
      if (isMain && isDone) this.#done.add(attemptKey(container));
      else if (isMain) this.#expectRestart(container);
    }
    // A program that others ask to end may end with success.
    if (container.exitCode !== 0) return;
    history?.done.add(container.labels[LABEL.container] ?? "");
    const run = this.#runOf(container);
    if (run) this.jobs.noteSuccess(run);
  }

  /** Where nothing is wrong but the container, it is seen to end, and starts again when its back-off is over. */
  #expectRestart(container: ModelContainer): void {
    const { time, engine } = this.#world;
    const wanted = this.#podOf(container);
    const backOff = this.#backOff.get(backOffKey(container));
    if (!wanted || !backOff || this.#isDisturbed(EDIT_SETTLES_MS)) return;
    const isFresh = time.nowMs - backOff.startedMs > BACK_OFF.resetMs;
    time.after((isFresh ? 0 : backOff.delayMs) + RESTART_NOTICE_MS, () => {
      if (this.#podOf(container) !== wanted || this.#isDisturbed(EDIT_SETTLES_MS)) return;
      // A pod of which nothing runs waits for the one it depends on.
      const dependency = this.wanted.get(wanted.dependsOn ?? "");
      if (dependency && !this.isUpToDate(dependency)) return;
      // Ids count up, whatever the clock does.
      const successor = [...engine.containers.values()].some(
        (other) => countKey(other) === countKey(container) && other.id > container.id,
      );
      if (!successor) this.#fail(new Violation("restart", `${container.name} ended and was not started again`));
    });
  }

  /** Faults reach further than one pod. */
  lastFaultMs = Number.NEGATIVE_INFINITY;
  /** Nothing was wrong for an hour before the last fault began. */
  wasCalm = true;

  noteFault(): void {
    this.wasCalm = !this.#isDisturbed(EDIT_SETTLES_MS);
    this.lastFaultMs = this.#world.time.nowMs;
  }

  /** Nothing was wrong but the way to the API server, which is mended: reports that were lost are repeated. */
  expectReports(): void {
    const { time } = this.#world;
    const { nowMs } = time;
    time.after(REPORTED_MS, () => {
      const lost = this.lastFaultMs === nowMs ? this.cluster?.findUnreported(REPORTED_MS) : undefined;
      if (lost !== undefined) this.#fail(new Violation("status", lost));
    });
  }

  /** Whether the pod of a container is Ready only while its probe succeeds. */
  hasReadiness(container: ModelContainer): boolean {
    const name = container.labels[LABEL.container];
    return this.#podOf(container)?.containers.some((spec) => spec.name === name && spec.hasReadiness) === true;
  }

  /** The probes of a container fail from now on. */
  noteUnhealthy(container: ModelContainer): void {
    const app = appOf(container);
    this.#world.note(`probes of ${container.name} fail`);
    if (!this.wasCalm || app === undefined) return;
    this.#expectUnhealthyEnd(container);
    if (this.hasReadiness(container)) this.services.noteUnready(container, app);
  }

  /** A container fails its liveness probe from now on, and nothing else is wrong: it is stopped. */
  #expectUnhealthyEnd(container: ModelContainer): void {
    const { time, processes } = this.#world;
    const { lastFaultMs } = this;
    const { starts } = container;
    const spec = this.#podOf(container)?.containers.find(({ name }) => name === container.labels[LABEL.container]);
    if (!spec?.hasLiveness || container.unhealthyUntilMs - time.nowMs < UNHEALTHY_MS) return;
    time.after(UNHEALTHY_MS, () => {
      const isAlone = this.lastFaultMs === lastFaultMs && this.#world.processes === processes;
      if (isAlone && container.status === "running" && container.starts === starts)
        this.#fail(new Violation("liveness", `${container.name} runs on, although its probe fails`));
    });
  }

  #isDisturbed(withinMs: number): boolean {
    return this.#world.time.nowMs - this.lastFaultMs < withinMs;
  }

  #podOf(container: ModelContainer): WantedPod | undefined {
    const app = appOf(container);
    return app === undefined ? undefined : this.wanted.get(app);
  }

  /** The run of a Job that a container belongs to. */
  #runOf(container: ModelContainer) {
    const wanted = this.#podOf(container);
    return wanted && runOf(container, container.labels[LABEL.podName] ?? "", wanted, versionOf(container));
  }

  // --- in the end ---

  /** Two hours before {@link checkAtRest}. */
  beginRest(): void {
    this.#logLinesBefore = this.#world.logLines;
    this.#before = { ...this.#world.effort, starts: this.#starts };
    this.cluster?.beginRest();
  }

  /** Long after the last fault: what runs is what the files ask for, and nothing is left. */
  checkAtRest(): void {
    const problem = this.#findProblem();
    if (problem !== undefined) this.#fail(new Violation("rest", problem));
  }

  /** A machine that boots without its manifests runs the pods it had. */
  checkWithoutManifests(): void {
    const wrong = this.#findWrongPod();
    if (wrong !== undefined) this.#fail(new Violation("checkpoint", wrong));
  }

  /** Whether all containers of a pod run as its manifest asks. */
  isUpToDate({ app, containers }: WantedPod): boolean {
    const running = this.#world.ownRunning().filter((container) => appOf(container) === app);
    return containers.every(({ name, version }) =>
      running.some((it) => it.labels[LABEL.container] === name && versionOf(it) === version),
    );
  }

  /** Difference between what runs and what the files ask for. */
  #findWrongPod(): string | undefined {
    const found = new Map<string, ModelContainer[]>();
    for (const container of this.#world.ownRunning()) {
      if (container.labels[LABEL.container] === "POD" || this.released.has(container)) continue;
      const key = `${appOf(container)} ${container.labels[LABEL.container]}`;
      found.set(key, [...(found.get(key) ?? []), container]);
    }
    for (const pod of this.wanted.values()) {
      const count = pod.replicas ?? 1;
      for (const spec of pod.containers) {
        const key = `${pod.app} ${spec.name}`;
        const those = found.get(key) ?? [];
        found.delete(key);
        if (!isLasting(spec)) continue;
        const right = those.filter((container) => isRight(pod, spec, container));
        if (right.length !== count || those.length !== count) {
          const what = those.map((container) => `${container.name} (version ${versionOf(container)})`).join(", ");
          return `${key} version ${spec.version} should run ${count} times; there is: ${what || "none"}`;
        }
      }
      for (const { name } of pod.init) found.delete(`${pod.app} ${name}`);
    }
    const [stray] = [...found.values()].flat();
    if (stray) return `${stray.name} runs, and no file asks for it`;
    return undefined;
  }

  /** Jobs are complete; CronJobs ran when they should since the last fault of the day. */
  #findWrongJob(): string | undefined {
    const { nowMs, wallOffsetMs } = this.#world.time;
    const sinceMs = Math.max(Math.floor(nowMs / DAY_MS) * DAY_MS, this.lastFaultMs + EDIT_SETTLES_MS);
    for (const pod of this.wanted.values()) {
      const { app, job } = pod;
      if (!job) continue;
      if (!job.schedule) {
        const index = this.jobs.findUnfinished(pod);
        if (index !== undefined) return `index ${index} of Job ${app} is not done`;
        continue;
      }
      const fromMs = Math.max(sinceMs, pod.changedMs + EDIT_SETTLES_MS) + wallOffsetMs;
      const wrong = this.jobs.findMissedRun(app, job.schedule, { fromMs, toMs: nowMs + wallOffsetMs });
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  #findProblem(): string | undefined {
    const { engine, disk, time, wire } = this.#world;
    if (!this.#world.isRunning) return "no kubelet runs";
    const wrong = this.#findWrongPod();
    if (wrong !== undefined) return wrong;
    const sandboxes = this.#world.ownRunning().filter(({ labels }) => labels[LABEL.container] === "POD").length;
    const running = this.#world.ownRunning().map((container) => [container, this.#podOf(container)] as const);
    const wrongPart =
      this.#findWrongJob() ??
      this.services.findWrong() ??
      this.api.findWrong() ??
      this.cluster?.findWrong() ??
      this.volumes.findWrong(running);
    if (wrongPart !== undefined) return wrongPart;
    const pods = [...this.wanted.values()].reduce((sum, pod) => sum + podsOf(pod), 0);
    const names = [...this.wanted.values()].reduce(
      (sum, pod) => sum + podsOf(pod) * (pod.containers.length + pod.init.length),
      0,
    );
    if (sandboxes > pods + this.released.count) return `${sandboxes} sandboxes run for ${pods} pods`;
    const ours = [...engine.containers.values()].filter(({ labels }) => labels[LABEL.node] !== undefined).length;
    // One dead container of each name and one dead sandbox of each pod are kept.
    if (ours > 2 * (pods + names) + 5) return `${ours} containers are left for ${pods} pods of ${names} containers`;
    const dead = this.#findSurplusDead();
    if (dead !== undefined) return dead;
    const left = [...engine.containers.values()].find(
      (container) =>
        container.labels[LABEL.node] !== undefined &&
        !this.released.has(container) &&
        isAppGone(container, this.wanted),
    );
    if (left) return `${left.name} is left of a pod that no file asks for`;
    const uids = new Set([...engine.containers.values()].map(({ labels }) => labels[LABEL.podUid]));
    const directories = new Set([...disk.list(`${ROOT_DIR}/pods`).keys()].map((path) => path.split("/")[5]));
    const ownerless = [...directories].find((uid) => !uids.has(uid));
    if (ownerless !== undefined) return `the directory of pod ${ownerless} is left`;
    const cgroup = this.#world.podCgroups.find((uid) => !uids.has(uid));
    if (cgroup !== undefined) return `the cgroup of pod ${cgroup} is left`;
    const trace = this.#findTrace(uids);
    if (trace !== undefined) return trace;
    const files = disk.list(ROOT_DIR).size;
    if (files > 60 + 12 * names) return `${files} files are below the root directory for ${names} containers`;
    const lines = this.#world.logLines - this.#logLinesBefore;
    const mostLines = LOG_LINES_AT_REST.machine + LOG_LINES_AT_REST.container * names;
    if (lines > mostLines) return `${lines} lines were logged in two quiet hours, at most ${mostLines} are promised`;
    const { requests, writes } = this.#world.effort;
    const starts = this.#starts - this.#before.starts;
    const spent = { requests: requests - this.#before.requests, writes: writes - this.#before.writes };
    const mostRequests = REST.requests + REST.perContainer * names + REST.perStart * starts;
    if (spent.requests > mostRequests)
      return `the engine had ${spent.requests} requests in two quiet hours, at most ${mostRequests} are promised`;
    const mostWrites = REST.writes + names + REST.perStart * starts;
    if (spent.writes > mostWrites)
      return `${spent.writes} files were written in two quiet hours, at most ${mostWrites} are promised`;
    if (disk.openFiles > 20) return `${disk.openFiles} files are open`;
    if (wire.openCalls > 10) return `${wire.openCalls} requests are open`;
    if (time.processTimers > 30 + 6 * names) return `${time.processTimers} timers for ${names} containers`;
    return undefined;
  }

  /** With --maximum-dead-containers, in addition to the last attempts of those that may start again. */
  #findSurplusDead(): string | undefined {
    const { flags, engine } = this.#world;
    const most = Number(flags.maximumDeadContainers ?? -1);
    if (most < 0) return undefined;
    const ours = [...engine.containers.values()].filter(
      ({ labels }) => labels[LABEL.node] !== undefined && labels[LABEL.container] !== "POD",
    );
    const running = new Set(ours.filter(({ status }) => status === "running").map(countKey));
    const dead = ours.filter(({ status }) => status === "exited");
    const needed = new Set(dead.map(countKey)).difference(running).size;
    // One may have ended just now.
    return dead.length > Math.max(most, needed) + 1
      ? `${dead.length} dead containers are kept, of at most ${most}, and ${needed} that may start again`
      : undefined;
  }

  /** Whether a key names one of these pods, or a container that was removed a day ago. */
  #isOfGone(key: string, uids: ReadonlySet<string>): boolean {
    const dayAgoMs = this.#world.time.nowMs - DAY_MS;
    return key.split(/[^0-9a-z-]/).some((part) => uids.has(part) || (this.#removedMs.get(part) ?? dayAgoMs) < dayAgoMs);
  }

  /** Something of a pod that has gone. @param present uids of pods that have containers */
  #findTrace(present: ReadonlySet<string | undefined>): string | undefined {
    const { disk, engine } = this.#world;
    const gone = [...this.#pods].filter(([uid, { app }]) => {
      if (this.released.has({ labels: { [LABEL.podUid]: uid } })) return false;
      const wanted = this.wanted.get(app);
      if (this.isOfCluster(wanted)) return !this.cluster?.isWanted(uid);
      // A pod of a Job that is over may have no containers.
      return !wanted || (wanted.replicas !== undefined && !present.has(uid));
    });
    // The file of events is written with the next event, and a damaged one is set aside for people.
    const paths = [...disk.list(`${ROOT_DIR}/state`).keys(), ...disk.list(`${ROOT_DIR}/checkpoints`).keys()];
    const texts = paths
      .filter((path) => !/\/events-|\.invalid$/.test(path))
      .map((path) => [path, disk.read(path) ?? ""]);
    texts.push([POD_LOGS, [...disk.list(POD_LOGS).keys()].join("\n")]);
    for (const [uid, { app }] of gone) {
      const place = texts.find(([, text]) => text?.includes(uid));
      if (place) return `${place[0]} has pod ${uid} of ${app}, which has gone`;
    }
    const names = new Set(gone.map(([uid]) => uid));
    const left = this.#world.collections?.findLeft((key) => names.has(key) || this.#isOfGone(key, names));
    if (left !== undefined) return `the program keeps something of a pod that has gone: ${left}`;
    for (const [uid, pod] of gone) if (++pod.daysGone >= DAYS_WITHOUT_TRACE) this.#pods.delete(uid);
    const link = [...disk.list(CONTAINER_LOGS).keys()].find(
      (path) => !engine.containers.has(/-([0-9a-f]{64})\.log$/.exec(path)?.[1] ?? ""),
    );
    return link && `${link} leads to the log of a container that has gone`;
  }
}

/** Edits count up. */
function checkVersion(container: ModelContainer, { init, containers }: WantedPod): void {
  const spec = [...init, ...containers].find(({ name }) => name === container.labels[LABEL.container]);
  if (!spec || versionOf(container) <= (spec.newest ?? spec.version)) return;
  throw new Violation("invented", `${container.name} starts in version ${versionOf(container)}, which no one wrote`);
}

/** Variables of containers, which no one changes. */
const variables = new WeakMap<ModelContainer, Map<string, string>>();

function envOf(container: ModelContainer, name: string): string | undefined {
  const known = variables.getOrInsertComputed(container, ({ body: { Env = [] } }) => {
    const pairs = Env.map((text): [string, string] => [
      text.slice(0, text.indexOf("=")),
      text.slice(text.indexOf("=") + 1),
    ]);
    return new Map(pairs);
  });
  return known.get(name);
}

/** A sandbox has no environment, but the name of its pod begins with that of the app. */
const appOf = (container: ModelContainer) =>
  container.labels[LABEL.container] === "POD"
    ? container.labels[LABEL.podName]?.split("-")[0]
    : envOf(container, "APP");

/** Number of a pod of a StatefulSet. */
const ordinalOf = ({ labels }: Pick<ModelContainer, "labels">) => Number(labels[LABEL.podName]?.split("-")[1]);

/** Whether a container is one that a pod has at rest. */
function isRight(pod: WantedPod, { name, version }: WantedContainer, container: ModelContainer): boolean {
  const { kind, replicas = 1, partition } = pod;
  if (kind !== "StatefulSet") return versionOf(container) === version;
  const ordinal = ordinalOf(container);
  const wanted = partition && ordinal < partition.ordinal ? partition.versions[name] : version;
  return ordinal < replicas && versionOf(container) === wanted;
}
const hasHooks = (container: ModelContainer) => envOf(container, "HOOKS") !== undefined;
const versionOf = (container: ModelContainer) => Number(envOf(container, "VERSION"));

const countKey = ({ labels }: ModelContainer) => `${labels[LABEL.podUid]} ${labels[LABEL.container]}`;

/** One version of a container of a pod. */
const attemptKey = (container: ModelContainer) => `${countKey(container)} ${versionOf(container)}`;

/** An edit of its version or its values starts a container again at once. */
const backOffKey = (container: ModelContainer) =>
  `${attemptKey(container)} ${envOf(container, "TOKEN")} ${envOf(container, "CONFIG")} ${container.labels[LABEL.sandbox]}`;

function isAppGone(container: ModelContainer, wanted: ReadonlyMap<string, WantedPod>): boolean {
  const app = appOf(container);
  return app !== undefined && !wanted.has(app);
}

/** Where the file of an app is. */
export const fileOf = (app: string) => `${MANIFESTS}/${app}.yaml`;

export const changed = <T extends WantedContainer>(container: T): T => ({
  ...container,
  version: (container.newest ?? container.version) + 1,
  newest: undefined,
});
