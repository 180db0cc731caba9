import type { Container, Pod, Probe } from "../../base/api/pod.ts";
import { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import { Listeners } from "../../base/concurrency/listeners.ts";
import { LoopLagMonitor } from "../../base/concurrency/loop-lag-monitor.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { NodeInfo } from "../../base/model/node.ts";
import { containerFieldPath, type PodRef, type PodUID } from "../../base/model/pod.ts";
import type { EventRecorder } from "../../base/model/pod-event.ts";
import type { ContainerId, ContainerSnapshot, PodSnapshot } from "../../base/model/pod-snapshot.ts";
import type {
  ProbeKind,
  ProbeOutcome,
  ProbeResult,
  Prober,
  ProbeTarget,
  StoredProbeResults,
} from "../../base/model/prober.ts";
import { expand } from "../../plan/environment.ts";
import type { ContainerProbeState } from "../../plan/pod-plan.ts";
import {
  countAttempt,
  earlyAttemptsMs,
  firstRegularMs,
  initialDelayEndMs,
  initialProbeState,
  isProbeHeldBack,
  MAX_PROBE_TRIES,
  nextRegularMs,
  type ProbeRhythm,
  type ProbeState,
  probeRhythm,
} from "../../plan/probe-schedule.ts";
import { PodStepError } from "../../plan/waiting-reasons.ts";

export interface ProbeAttemptRecord {
  pod: PodRef;
  containerName: string;
  kind: ProbeKind;
  outcome: ProbeOutcome;
  durationMs: number;
}

type StoredProbes = readonly (readonly [ContainerId, StoredProbeResults])[];

interface ProbeManagerDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  prober: Prober;
  /** In [0, 1). */
  random: () => number;
  /** Its address is where pods with host networking listen, "" while unknown. */
  node: Pick<NodeInfo, "ip">;
  /**
   * Keeps results across restarts of the kubelet; without it every pod is not ready until its probes have succeeded again.
   * `write` never rejects; its promise resolves when the results outlive a kill, or could not be written.
   */
  file?: { read(): StoredProbes | undefined; write(all: StoredProbes): Promise<unknown> };
  /** Absent: a monitor of its own. */
  loopLag?: LoopLagMonitor;
}

/** Each exec keeps a runc busy; more at a time only get in each other's way. */
const MAX_EXEC_ATTEMPTS = 32;
const MAX_NETWORK_ATTEMPTS = 128;
/** A stored container that was not seen for this long is gone. */
const FORGET_STORED_MS = 10 * 60_000;

const KINDS = ["startup", "liveness", "readiness"] as const;
const KIND_WORDS: Readonly<Record<ProbeKind, string>> = {
  startup: "Startup",
  liveness: "Liveness",
  readiness: "Readiness",
};

/** A disk that hangs does not keep results from being visible. */
const MAX_SAVE_WAIT_MS = 200;

/** Probes the running containers of all pods and keeps the results. */
export class ProbeManager {
  /** Plan the pod again. */
  readonly changes = new Listeners<{ uid: PodUID; containerName: string; kind: ProbeKind; result: ProbeResult }>();
  readonly attempts = new Listeners<ProbeAttemptRecord>();
  readonly #deps: ProbeManagerDeps;
  readonly #workerDeps: ProbeWorkerDeps;
  readonly #pods = new Map<PodUID, Map<string, ProbedContainer>>();
  /** Results from before our start of containers that were not seen yet. */
  readonly #stored: Map<ContainerId, StoredProbeResults>;
  readonly #forgetStoredAtMs: number;
  #isStopped = false;
  /** Changes of one turn of the event loop are one write. */
  #saving: Promise<unknown> | undefined;

  constructor(deps: ProbeManagerDeps) {
    this.#deps = deps;
    this.#workerDeps = {
      clock: deps.clock,
      prober: deps.prober,
      random: deps.random,
      execLimit: new ConcurrencyLimit(MAX_EXEC_ATTEMPTS),
      networkLimit: new ConcurrencyLimit(MAX_NETWORK_ATTEMPTS),
      loopLag: deps.loopLag ?? new LoopLagMonitor(deps.clock),
    };
    this.#stored = new Map(deps.file?.read());
    this.#forgetStoredAtMs = deps.clock.monotonicMs() + FORGET_STORED_MS;
  }

  /**
   * To be called with every snapshot of a pod: starts, updates and pauses probes as its containers come and go.
   * @param heldBack containers whose postStart hook is not over: they are not running yet for a probe, as upstream has it.
   */
  update(pod: Pod, snapshot: PodSnapshot, heldBack?: ReadonlySet<ContainerId>): void {
    if (this.#isStopped) return;
    const { name = snapshot.name, namespace = snapshot.namespace } = pod.metadata;
    const ref = { uid: snapshot.uid, name, namespace };
    const podIp = snapshot.sandboxes[0]?.ips[0] ?? (pod.spec.hostNetwork ? this.#deps.node.ip : "");
    const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
    for (const container of all) {
      const seen = snapshot.containers.find((one) => one.name === container.name);
      const isRunning = seen?.state === "running" && !heldBack?.has(seen.id);
      this.#updateContainer(ref, pod, container, isRunning ? seen : undefined, podIp);
    }
    this.#dropContainers(ref.uid, new Set(all.map((container) => container.name)));
  }

  /** The pod has ended or is gone: its probes stop, their results are dropped. */
  remove(uid: PodUID): void {
    this.#dropContainers(uid, new Set());
    this.#pods.delete(uid);
  }

  /** Results of the running containers, by name. */
  states(uid: PodUID): ReadonlyMap<string, ContainerProbeState> {
    const containers = [...(this.#pods.get(uid)?.values() ?? [])];
    return new Map(containers.flatMap((one) => (one.running ? [[one.name, one.state(one.running.id)] as const] : [])));
  }

  /** Ends all attempts and timers; what is known stays in the file. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const pod of this.#pods.values()) for (const container of pod.values()) container.rest();
    await this.#deps.file?.write(this.#results());
  }

  #results(): StoredProbes {
    const isForgotten = this.#deps.clock.monotonicMs() >= this.#forgetStoredAtMs;
    const known = [...this.#pods.values()].flatMap((pod) => [...pod.values()]);
    const probed = known.flatMap((one) =>
      one.running && one.workers.size > 0 ? [[one.running.id, one.results()] as const] : [],
    );
    return [...(isForgotten ? [] : this.#stored), ...probed];
  }

  /** Resolves when the results outlive a kill, so that nothing that was visible is lost, or a little later. */
  async #save(): Promise<void> {
    const { file, clock } = this.#deps;
    if (!file || this.#isStopped) return;
    this.#saving ??= Promise.resolve().then(() => {
      this.#saving = undefined;
      return file.write(this.#results());
    });
    await Promise.race([this.#saving, clock.sleep(MAX_SAVE_WAIT_MS)]);
  }

  #updateContainer(
    ref: PodRef,
    pod: Pod,
    container: Container,
    seen: ContainerSnapshot | undefined,
    podIp: string,
  ): void {
    const probed = this.#probed(ref, pod, container);
    if (!seen) {
      if (probed.running && probed.workers.size > 0) void this.#save();
      probed.running = undefined;
      probed.rest();
      return;
    }
    const startedAtMs = (seen.startedAt ?? seen.createdAt).getTime();
    probed.running = { id: seen.id, startedAtMs };
    if (probed.workers.size === 0) return;
    const instance = {
      key: `${seen.id} ${startedAtMs}`,
      ageMs: this.#deps.clock.now().getTime() - startedAtMs,
      containerId: seen.id,
      podIp,
      ports: container.ports ?? [],
    };
    // Results from before our restart, once.
    const stored = this.#stored.get(seen.id);
    this.#stored.delete(seen.id);
    // Startup first (KINDS): it decides whether the others are held back.
    for (const [kind, worker] of probed.workers) {
      worker.observe(instance, stored?.startedAtMs === startedAtMs ? stored[kind] : undefined);
    }
  }

  /** The workers of a container; an edit of a probe that left the container running gives it new ones. */
  #probed(ref: PodRef, pod: Pod, container: Container): ProbedContainer {
    const containers = this.#pods.getOrInsertComputed(ref.uid, () => new Map());
    const known = containers.get(container.name);
    const probes = probesOf(container);
    const definition = JSON.stringify([probes, probes.some(([, { exec }]) => exec) ? container.env : undefined]);
    if (known?.definition === definition) return known;
    known?.rest();
    const fieldPath = containerFieldPath(pod.spec, container.name);
    const probed = new ProbedContainer(ref, container.name, fieldPath, definition);
    for (const [kind, probe] of probes) {
      const command = expandCommand(probe, container);
      probed.workers.set(kind, new ProbeWorker(kind, probe, command, this.#workerDeps, this, probed));
    }
    if (known?.running) {
      // Results of the old probes remain until the new ones have results.
      this.#stored.set(known.running.id, known.results());
      void this.#save();
    }
    containers.set(container.name, probed);
    return probed;
  }

  #dropContainers(uid: PodUID, keep: ReadonlySet<string>): void {
    for (const [name, container] of this.#pods.get(uid) ?? []) {
      if (keep.has(name)) continue;
      container.rest();
      this.#pods.get(uid)?.delete(name);
      if (container.running && container.workers.size > 0) void this.#save();
    }
  }

  /** Called after every attempt but the early ones that failed. */
  noteAttempt({ pod, name, fieldPath }: ProbedContainer, kind: ProbeKind, outcome: ProbeOutcome, durationMs: number) {
    this.attempts.emit({ pod, containerName: name, kind, outcome, durationMs });
    if (outcome.result === "success") return;
    const isWarning = outcome.result === "warning";
    const verb = isWarning ? "warning" : outcome.result === "unknown" ? "errored" : "failed";
    this.#deps.recorder.record(pod, {
      type: "Warning",
      reason: isWarning ? "ProbeWarning" : "Unhealthy",
      message: `${KIND_WORDS[kind]} probe ${verb}: ${outcome.output}`,
      fieldPath,
    });
  }

  noteResult({ pod, name: containerName, workers }: ProbedContainer, kind: ProbeKind, result: ProbeResult): void {
    if (kind === "startup" && result === "success") {
      workers.get("startup")?.reschedule();
      workers.get("liveness")?.release();
      workers.get("readiness")?.release();
    }
    this.#deps.logger.debug(`${KIND_WORDS[kind]} probe of container "${containerName}": ${result}`, logged(pod));
    void this.#save().then(() => this.changes.emit({ uid: pod.uid, containerName, kind, result }));
  }

  /** An attempt that timed out does not count, because our own event loop was stalled for this long. */
  noteVoid({ pod, name }: ProbedContainer, kind: ProbeKind, lagMs: number): void {
    this.#deps.logger.warn(
      `${KIND_WORDS[kind]} probe of container "${name}" timed out, which does not count: the kubelet itself was stalled. Is the machine overloaded?`,
      { ...logged(pod), lagMs: Math.round(lagMs) },
    );
  }
}

const logged = ({ namespace, name }: PodRef) => ({ pod: `${namespace}/${name}` });

/** The probes of one container of a pod. */
class ProbedContainer {
  readonly workers = new Map<ProbeKind, ProbeWorker>();
  /** The instance that runs; undefined between two. */
  running: { id: ContainerId; startedAtMs: number } | undefined;

  constructor(
    readonly pod: PodRef,
    readonly name: string,
    /** `spec.containers{app}` */
    readonly fieldPath: string,
    /** The fields the workers are built from: a change means other workers. */
    readonly definition: string,
  ) {}

  rest(): void {
    for (const worker of this.workers.values()) worker.rest();
  }

  results(): StoredProbeResults {
    const results = [...this.workers].map(([kind, { result }]) => (result === undefined ? {} : { [kind]: result }));
    return Object.assign({ startedAtMs: this.running?.startedAtMs ?? 0 }, ...results);
  }

  state(containerId: ContainerId): ContainerProbeState {
    const { startup, liveness } = this.results();
    const isUnmet = (kind: ProbeKind) => this.workers.has(kind) && this.workers.get(kind)?.result !== "success";
    return {
      containerId,
      ...(liveness !== undefined && { liveness }),
      ...(startup !== undefined && { startup }),
      started: !isUnmet("startup"),
      ready: !isUnmet("readiness"),
    };
  }

  /** The startup probe, which gates the others. */
  startup(): { exists: boolean; result: ProbeResult | undefined } {
    return { exists: this.workers.has("startup"), result: this.workers.get("startup")?.result };
  }
}

interface ProbeWorkerDeps extends Pick<ProbeManagerDeps, "clock" | "prober" | "random"> {
  execLimit: ConcurrencyLimit;
  networkLimit: ConcurrencyLimit;
  loopLag: LoopLagMonitor;
}

/**
 * Attempts begin on a grid of this width, so that those of many probes share a wake-up of the process, which costs as much
 * as forty timers.
 */
const TICK_MS = 200;
/**
 * Lag of our own event loop from which on an attempt that ran into its time limit does not count. The shortest timeout of
 * a probe is 1 s; less lag than this leaves the container most of it.
 */
const STALL_MS = 250;
/** Void attempts in a row: a machine that is overloaded for good must not keep a dead container. */
const MAX_VOID_ATTEMPTS = 3;
/** A void attempt is repeated after this time instead of after the period. */
const VOID_RETRY_MS = 1000;

interface ProbedInstance extends ProbeTarget {
  /** Changes with every new container and with every start of the same one. */
  key: string;
  ageMs: number;
}

/** One probe of one container name: makes attempts while an instance runs, pauses otherwise. */
class ProbeWorker {
  readonly kind: ProbeKind;
  readonly probe: Probe;
  readonly #deps: ProbeWorkerDeps;
  readonly #manager: ProbeManager;
  readonly #container: ProbedContainer;
  readonly #rhythm: ProbeRhythm;
  readonly #execCommand: readonly string[] | undefined;
  #state: ProbeState;
  #instance: ProbedInstance | undefined;
  #isResting = true;
  /** No attempt before this. */
  #earliestMs = 0;
  #regularMs = 0;
  /** Times of the early attempts still to come. */
  #early: number[] = [];
  #cancelTimer: (() => void) | undefined;
  #attempt: AbortController | undefined;
  /** Attempts in a row that did not count. */
  #voidAttempts = 0;

  /** @param execCommand the command of an exec probe with its variables replaced. */
  constructor(
    kind: ProbeKind,
    probe: Probe,
    execCommand: readonly string[] | undefined,
    deps: ProbeWorkerDeps,
    manager: ProbeManager,
    container: ProbedContainer,
  ) {
    this.kind = kind;
    this.probe = probe;
    this.#execCommand = execCommand;
    this.#deps = deps;
    this.#manager = manager;
    this.#container = container;
    this.#rhythm = probeRhythm(probe, deps.clock.monotonicMs(), deps.random());
    this.#state = initialProbeState(kind);
  }

  get result(): ProbeResult | undefined {
    return this.#state.result;
  }

  /**
   * Sets the running container. A new instance starts from scratch, a known one continues.
   * @param stored result of this probe before a restart of the kubelet
   */
  observe(instance: ProbedInstance, stored?: ProbeResult): void {
    const isSame = instance.key === this.#instance?.key;
    const wasResting = this.#isResting;
    this.#instance = instance;
    this.#isResting = false;
    if (isSame) {
      if (wasResting) this.#resume();
      return;
    }
    this.#attempt?.abort(new Error("another container took its place"));
    this.#attempt = undefined;
    this.#state = initialProbeState(this.kind, stored);
    const now = this.#deps.clock.monotonicMs();
    this.#earliestMs = initialDelayEndMs(this.probe, now, instance.ageMs);
    this.#regularMs = firstRegularMs(this.#rhythm, this.#earliestMs);
    const isFresh = instance.ageMs < (this.probe.initialDelaySeconds ?? 0) * 1000 + this.#rhythm.periodMs;
    this.#early = isFresh && stored === undefined ? this.#earlyFrom(this.#earliestMs) : [];
    this.reschedule();
  }

  /** The startup probe succeeded: what waited for it asks at once and then in its rhythm. */
  release(): void {
    if (this.#isResting) return;
    const from = Math.max(this.#earliestMs, this.#deps.clock.monotonicMs());
    this.#regularMs = firstRegularMs(this.#rhythm, from);
    if (this.kind === "readiness" && this.#state.result !== "success") this.#early = [from, ...this.#earlyFrom(from)];
    this.reschedule();
  }

  /** No container runs, or the probe was removed. The result is kept in case the same instance is seen again. */
  rest(): void {
    this.#attempt?.abort(new Error("the container is no longer probed"));
    this.#attempt = undefined;
    this.#isResting = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** Arms the timer of the next attempt, if there is to be one. */
  reschedule(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#isResting || this.#attempt || isProbeHeldBack(this.kind, this.#state, this.#container.startup())) return;
    if (this.#state.result === "success") this.#early = [];
    const early = this.#early[0];
    const isEarly = early !== undefined && early < this.#regularMs;
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    const dueMs = Math.ceil(Math.max(nowMs, isEarly ? early : this.#regularMs) / TICK_MS) * TICK_MS;
    this.#cancelTimer = clock.schedule(dueMs - nowMs, () => {
      this.#cancelTimer = undefined;
      void this.#run(isEarly);
    });
  }

  #resume(): void {
    this.#regularMs = firstRegularMs(this.#rhythm, Math.max(this.#earliestMs, this.#deps.clock.monotonicMs()));
    this.reschedule();
  }

  async #run(isEarly: boolean): Promise<void> {
    const instance = this.#instance;
    if (!instance || this.#isResting) return;
    const attempt = new AbortController();
    this.#attempt = attempt;
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    const limit = this.probe.exec ? this.#deps.execLimit : this.#deps.networkLimit;
    let outcome: (ProbeOutcome & { lagMs: number }) | undefined;
    try {
      outcome = await limit.run(attempt.signal, () =>
        this.#ask(instance, isEarly ? 1 : MAX_PROBE_TRIES, attempt.signal),
      );
    } catch {
      // Aborted while it waited for the limit.
    }
    // The container is gone or was replaced: the outcome does not count.
    if (!outcome || this.#attempt !== attempt) return;
    this.#attempt = undefined;
    const now = clock.monotonicMs();
    if (isEarly) this.#early = this.#early.filter((dueMs) => dueMs > now);
    else this.#regularMs = nextRegularMs(this.#rhythm, this.#regularMs, now);
    // An exit code, a status and a refused connection count: the container has responded.
    if (outcome.isTimeout && outcome.lagMs >= STALL_MS && this.#voidAttempts < MAX_VOID_ATTEMPTS) {
      if (!isEarly) {
        this.#voidAttempts++;
        this.#regularMs = Math.min(this.#regularMs, now + VOID_RETRY_MS);
        this.#manager.noteVoid(this.#container, this.kind, outcome.lagMs);
      }
    } else {
      this.#voidAttempts = 0;
      this.#take(outcome, isEarly, now - startMs);
    }
    this.reschedule();
  }

  /** @returns the outcome of the last attempt, and the greatest lag of our event loop during it */
  async #ask(instance: ProbedInstance, tries: number, signal: AbortSignal): Promise<ProbeOutcome & { lagMs: number }> {
    const target = this.#execCommand ? { ...instance, execCommand: this.#execCommand } : instance;
    for (let tried = 1; ; tried++) {
      const closeWindow = this.#deps.loopLag.openWindow();
      const outcome = await this.#deps.prober.attempt(this.probe, target, signal);
      const lagMs = closeWindow();
      if (outcome.result !== "unknown" || tried >= tries || signal.aborted) return { ...outcome, lagMs };
    }
  }

  #take(
    { lagMs: _, isTimeout: _isTimeout, ...outcome }: ProbeOutcome & { lagMs: number },
    isEarly: boolean,
    durationMs: number,
  ): void {
    if (isEarly && !isSuccess(outcome)) return;
    this.#manager.noteAttempt(this.#container, this.kind, outcome, durationMs);
    if (outcome.result === "unknown") return;
    const before = this.#state.result;
    const result = isSuccess(outcome) ? "success" : "failure";
    this.#state = countAttempt(this.kind, this.probe, this.#state, result);
    if (this.#state.result !== undefined && this.#state.result !== before) {
      this.#manager.noteResult(this.#container, this.kind, this.#state.result);
    }
  }

  #earlyFrom(fromMs: number): number[] {
    return earlyAttemptsMs(this.kind, this.probe).map((delayMs) => fromMs + delayMs);
  }
}

const isSuccess = ({ result }: ProbeOutcome) => result === "success" || result === "warning";

function probesOf(container: Container): [ProbeKind, Probe][] {
  return KINDS.flatMap((kind): [ProbeKind, Probe][] => {
    const probe = container[`${kind}Probe`];
    return probe ? [[kind, probe]] : [];
  });
}

/**
 * Only variables with a value of their own are replaced, unexpanded. Source: `ExpandContainerCommandOnlyStatic`.
 * A command that becomes too long for a program stays as written.
 */
function expandCommand(probe: Probe, container: Container): string[] | undefined {
  const command = probe.exec?.command;
  if (!command?.some((word) => word.includes("$"))) return undefined;
  const values = new Map((container.env ?? []).map(({ name, value }) => [name, value ?? ""]));
  try {
    return command.map((word) => expand(word, (name) => values.get(name)));
  } catch (error) {
    if (error instanceof PodStepError) return undefined;
    throw error;
  }
}
