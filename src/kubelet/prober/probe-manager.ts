import type { Container, Pod, Probe } from "../../base/api/pod.ts";
import { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import { LoopLagMonitor } from "../../base/concurrency/loop-lag-monitor.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { PodUID } from "../../base/model/identity.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { EventRecorder } from "../../base/model/pod-event.ts";
import type { ContainerId, ContainerSnapshot, PodSnapshot } from "../../base/model/pod-snapshot.ts";
import type {
  ProbeKind,
  ProbeOutcome,
  ProbeResult,
  ProbeResultStore,
  Prober,
  StoredProbeResults,
  StoredProbeResultsById,
} from "../../base/model/prober.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { expand } from "../../plan/expansion.ts";
import type { ContainerProbeState } from "../../plan/pod-plan.ts";
import { ProbeWorker, type ProbeWorkerDeps } from "./probe-worker.ts";

/** An attempt that ended, for the metrics. */
export interface ProbeAttemptRecord {
  pod: { uid: PodUID; name: string; namespace: string };
  containerName: string;
  kind: ProbeKind;
  outcome: ProbeOutcome;
  durationMs: number;
}

interface ProbeManagerDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  prober: Prober;
  /** In [0, 1). */
  random: () => number;
  /** Address of the node, "" while unknown: where pods with host networking listen. */
  hostIp: () => string;
  /** A result changed (also from undecided): plan this pod again. */
  onChange: (uid: PodUID, containerName: string, kind: ProbeKind, result: ProbeResult) => void;
  /** Keeps results across restarts of the kubelet; without it every pod is not ready until its probes have succeeded again. */
  store?: ProbeResultStore;
  /** Contents of the store at the start. */
  stored?: StoredProbeResultsById;
  onAttempt?: (record: ProbeAttemptRecord) => void;
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

interface ProbedContainer {
  name: string;
  /** `spec.containers{app}` */
  fieldPath: string;
  workers: Map<ProbeKind, ProbeWorker>;
  /** The instance that runs; undefined between two. */
  running: { id: ContainerId; startedAtMs: number } | undefined;
  /** Only fields a worker is built from: a change means other workers. */
  definition: string;
}

interface ProbedPod {
  ref: { uid: PodUID; name: string; namespace: string };
  containers: Map<string, ProbedContainer>;
}

/** Probes the running containers of all pods and keeps the results. */
export class ProbeManager {
  readonly #deps: ProbeManagerDeps;
  readonly #workerDeps: ProbeWorkerDeps;
  readonly #pods = new Map<PodUID, ProbedPod>();
  readonly #stored: Map<ContainerId, StoredProbeResults>;
  readonly #forgetStoredAtMs: number;
  #isStopped = false;
  readonly #saver: ProbeResultSaver | undefined;

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
    this.#stored = new Map(deps.stored);
    if (deps.store) this.#saver = new ProbeResultSaver(deps.store, () => this.export(), deps);
    this.#forgetStoredAtMs = deps.clock.monotonicMs() + FORGET_STORED_MS;
  }

  /**
   * To be called with every snapshot of a pod: starts, updates and pauses probes as its containers come and go.
   * @param heldBack containers whose postStart hook is not over: they are not running yet for a probe, as upstream has it.
   */
  update(pod: Pod, snapshot: PodSnapshot, heldBack?: ReadonlySet<ContainerId>): void {
    if (this.#isStopped) return;
    const probed = this.#probedPod(pod, snapshot);
    const sandbox = snapshot.sandboxes[0];
    const podIp = sandbox?.ips[0] ?? (pod.spec.hostNetwork ? this.#deps.hostIp() : "");
    const named = new Map<string, ContainerSnapshot>();
    for (const container of snapshot.containers) {
      if (!named.has(container.name)) named.set(container.name, container);
    }
    for (const [container, isInit] of allContainers(pod)) {
      const seen = named.get(container.name);
      const isRunning = seen?.state === "running" && !heldBack?.has(seen.id);
      this.#updateContainer(probed, container, isInit, isRunning ? seen : undefined, podIp);
    }
    this.#dropContainers(probed, new Set(allContainers(pod).map(([{ name }]) => name)));
  }

  /** The pod has ended or is gone: its probes stop, their results are dropped. */
  remove(uid: PodUID): void {
    const pod = this.#pods.get(uid);
    if (!pod) return;
    this.#dropContainers(pod, new Set());
    this.#pods.delete(uid);
  }

  /** Results of the running containers, by name. */
  states(uid: PodUID): ReadonlyMap<string, ContainerProbeState> {
    const states = new Map<string, ContainerProbeState>();
    for (const container of this.#pods.get(uid)?.containers.values() ?? []) {
      if (container.running) states.set(container.name, toState(container, container.running.id));
    }
    return states;
  }

  /** All results by container, as the store keeps them. */
  export(): StoredProbeResultsById {
    const isForgotten = this.#deps.clock.monotonicMs() >= this.#forgetStoredAtMs;
    const results = new Map(isForgotten ? [] : this.#stored);
    for (const pod of this.#pods.values()) {
      for (const { running, workers } of pod.containers.values()) {
        if (!running || workers.size === 0) continue;
        const stored: StoredProbeResults = { startedAtMs: running.startedAtMs };
        for (const [kind, { result }] of workers) if (result !== undefined) stored[kind] = result;
        results.set(running.id, stored);
      }
    }
    return results;
  }

  /** Ends all attempts and timers; what is known stays in the store. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const pod of this.#pods.values()) {
      for (const container of pod.containers.values()) for (const worker of container.workers.values()) worker.rest();
    }
    await this.#saver?.stop();
  }

  #probedPod(pod: Pod, snapshot: PodSnapshot): ProbedPod {
    const known = this.#pods.get(snapshot.uid);
    if (known) return known;
    const { name = snapshot.name, namespace = snapshot.namespace } = pod.metadata;
    const probed: ProbedPod = { ref: { uid: snapshot.uid, name, namespace }, containers: new Map() };
    this.#pods.set(snapshot.uid, probed);
    return probed;
  }

  #updateContainer(
    pod: ProbedPod,
    container: Container,
    isInit: boolean,
    seen: ContainerSnapshot | undefined,
    podIp: string,
  ): void {
    const probed = this.#probedContainer(pod, container, isInit);
    if (!seen) {
      if (probed.running && probed.workers.size > 0) void this.#saver?.changed();
      probed.running = undefined;
      for (const worker of probed.workers.values()) worker.rest();
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
    const stored = this.#takeStored(seen.id, startedAtMs);
    // Startup first (KINDS): it decides whether the others are held back.
    for (const [kind, worker] of probed.workers) worker.observe(instance, stored?.[kind]);
  }

  /** Results from before our restart, once. */
  #takeStored(id: ContainerId, startedAtMs: number): StoredProbeResults | undefined {
    const stored = this.#stored.get(id);
    this.#stored.delete(id);
    return stored?.startedAtMs === startedAtMs ? stored : undefined;
  }

  /** The workers of a container; an edit of a probe that left the container running gives it new ones. */
  #probedContainer(pod: ProbedPod, container: Container, isInit: boolean): ProbedContainer {
    const known = pod.containers.get(container.name);
    const probes = probesOf(container);
    const definition = JSON.stringify([probes, probes.some(([, { exec }]) => exec) ? container.env : undefined]);
    if (known?.definition === definition) return known;
    if (known) for (const worker of known.workers.values()) worker.rest();
    const probed: ProbedContainer = {
      name: container.name,
      fieldPath: `spec.${isInit ? "initContainers" : "containers"}{${container.name}}`,
      workers: new Map(),
      running: undefined,
      definition,
    };
    const listener = {
      startup: () => {
        const worker = probed.workers.get("startup");
        return { exists: worker !== undefined, result: worker?.result };
      },
      onAttempt: (kind: ProbeKind, outcome: ProbeOutcome, durationMs: number) =>
        this.#onAttempt(pod, probed, kind, outcome, durationMs),
      onResult: (kind: ProbeKind, result: ProbeResult) => this.#onResult(pod, probed, kind, result),
      onVoid: (kind: ProbeKind, lagMs: number) =>
        this.#deps.logger.debug(
          `${KIND_WORDS[kind]} probe of container "${probed.name}" does not count: our event loop was stalled`,
          { pod: `${pod.ref.namespace}/${pod.ref.name}`, lagMs: Math.round(lagMs) },
        ),
    };
    for (const [kind, probe] of probes) {
      const command = expandCommand(probe, container);
      probed.workers.set(kind, new ProbeWorker(kind, probe, command, this.#workerDeps, listener));
    }
    if (known?.running) {
      // Results of the old probes remain until the new ones have results.
      const stored: StoredProbeResults = { startedAtMs: known.running.startedAtMs };
      for (const [kind, { result }] of known.workers) if (result !== undefined) stored[kind] = result;
      this.#stored.set(known.running.id, stored);
      void this.#saver?.changed();
    }
    pod.containers.set(container.name, probed);
    return probed;
  }

  #dropContainers(pod: ProbedPod, keep: ReadonlySet<string>): void {
    for (const [name, container] of pod.containers) {
      if (keep.has(name)) continue;
      for (const worker of container.workers.values()) worker.rest();
      pod.containers.delete(name);
      if (container.running && container.workers.size > 0) void this.#saver?.changed();
    }
  }

  #onAttempt(
    pod: ProbedPod,
    container: ProbedContainer,
    kind: ProbeKind,
    outcome: ProbeOutcome,
    durationMs: number,
  ): void {
    this.#deps.onAttempt?.({ pod: pod.ref, containerName: container.name, kind, outcome, durationMs });
    if (outcome.result === "success") return;
    const isWarning = outcome.result === "warning";
    const verb = isWarning ? "warning" : outcome.result === "unknown" ? "errored" : "failed";
    this.#deps.recorder.record(pod.ref, {
      type: "Warning",
      reason: isWarning ? "ProbeWarning" : "Unhealthy",
      message: `${KIND_WORDS[kind]} probe ${verb}: ${outcome.output}`,
      fieldPath: container.fieldPath,
    });
  }

  #onResult(pod: ProbedPod, container: ProbedContainer, kind: ProbeKind, result: ProbeResult): void {
    this.#deps.logger.debug(`${KIND_WORDS[kind]} probe of container "${container.name}": ${result}`, {
      pod: `${pod.ref.namespace}/${pod.ref.name}`,
    });
    if (kind === "startup" && result === "success") {
      container.workers.get("startup")!.reschedule();
      container.workers.get("liveness")?.release();
      container.workers.get("readiness")?.release();
    }
    const notify = () => this.#deps.onChange(pod.ref.uid, container.name, kind, result);
    if (this.#saver) void this.#saver.changed().then(notify);
    else notify();
  }
}

/** Regular and init containers; `true` for the latter (of which only sidecars have probes). */
function allContainers(pod: Pod): [Container, boolean][] {
  const init = (pod.spec.initContainers ?? []).map((container): [Container, boolean] => [container, true]);
  return [...init, ...pod.spec.containers.map((container): [Container, boolean] => [container, false])];
}

function probesOf(container: Container): [ProbeKind, Probe][] {
  return KINDS.flatMap((kind): [ProbeKind, Probe][] => {
    const probe = container[`${kind}Probe`];
    return probe ? [[kind, probe]] : [];
  });
}

/** Only variables with a value of their own are replaced, unexpanded. Source: `ExpandContainerCommandOnlyStatic`. */
function expandCommand(probe: Probe, container: Container): string[] | undefined {
  const command = probe.exec?.command;
  if (!command?.some((word) => word.includes("$"))) return undefined;
  const values = new Map((container.env ?? []).map(({ name, value }) => [name, value ?? ""]));
  return command.map((word) => expand(word, (name) => values.get(name)));
}

function toState({ workers }: ProbedContainer, containerId: ContainerId): ContainerProbeState {
  const startup = workers.get("startup");
  const liveness = workers.get("liveness")?.result;
  const readiness = workers.get("readiness");
  return {
    containerId,
    ...(liveness !== undefined && { liveness }),
    ...(startup?.result !== undefined && { startup: startup.result }),
    started: !startup || startup.result === "success",
    ready: !readiness || readiness.result === "success",
  };
}

/**
 * A change is saved at once, before it is visible, so that a kill at any instant loses nothing; in a burst the changes
 * that follow are saved together.
 */
const SAVE_PAUSE_MS = 20;

/** A disk that hangs does not keep results from being visible. */
const MAX_SAVE_WAIT_MS = 200;

/** Writes probe results to their store after each change, one write at a time. */
export class ProbeResultSaver {
  readonly #store: ProbeResultStore;
  readonly #read: () => StoredProbeResultsById;
  readonly #deps: { clock: Clock; logger: Logger };
  #isStopped = false;
  #isDirty = false;
  /** A save under way, followed by the pause. */
  #saving: Promise<void> | undefined;
  #cancelPause: (() => void) | undefined;

  /** @param read returns the results to store */
  constructor(store: ProbeResultStore, read: () => StoredProbeResultsById, deps: { clock: Clock; logger: Logger }) {
    this.#store = store;
    this.#read = read;
    this.#deps = deps;
  }

  /** Begins to save the results. @returns a promise that resolves when they are visible after a kill, or a little later */
  async changed(): Promise<void> {
    this.#begin();
    if (this.#saving) await Promise.race([this.#saving, this.#deps.clock.sleep(MAX_SAVE_WAIT_MS)]);
  }

  #begin(): void {
    this.#isDirty = true;
    if (this.#saving || this.#cancelPause || this.#isStopped) return;
    this.#saving = this.#save().then(() => {
      this.#saving = undefined;
      if (this.#isStopped) return;
      this.#cancelPause = this.#deps.clock.schedule(SAVE_PAUSE_MS, () => {
        this.#cancelPause = undefined;
        if (this.#isDirty) this.#begin();
      });
    });
  }

  /** Writes what is not stored yet, then nothing more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    await this.#saving;
    if (this.#isDirty) await this.#save();
  }

  async #save(): Promise<void> {
    // Changes of one turn are one save.
    await Promise.resolve();
    this.#isDirty = false;
    try {
      await this.#store.save(this.#read());
    } catch (error) {
      this.#deps.logger.warn(`Cannot save probe results: ${messageOf(error)}`);
    }
  }
}
