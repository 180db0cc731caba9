import { expect, test } from "bun:test";
import type { WorkloadKind } from "../../src/base/model/desired-state.ts";
import type { PodFacts } from "../../src/controllers/controller.ts";
import { computeWorkloadStatus } from "../../src/controllers/workload-reader.ts";
import { type PodRecord, type RevisionRecord, replicaSetAnnotations } from "../../src/controllers/workload-records.ts";
import { readScenarios, WorkloadWorld } from "./workload-world.ts";

type Json = Record<string, unknown>;

interface Step {
  /** `ready`, `wait`, `end`, `undo`, `delete` (of all pods), `delete pod`; anything else is an edit of the spec. */
  do: string;
  spec?: unknown;
}

interface State {
  did: string;
  /** ReplicaSets by image. */
  sets?: Json;
  names?: string[];
  /** Annotations of ReplicaSets by image. */
  annotations?: Json;
  pods: Json;
  status: Json;
  conditions: string[];
  events: string[];
}

interface Scenario {
  name: string;
  kind: WorkloadKind;
  spec: Json;
  steps: Step[];
  states: State[];
}

const scenarios = readScenarios<Scenario>("controller-steps.jsonl.gz");

const CHANGE_CAUSE = "kubernetes.io/change-cause";
const INTERMEDIATE = ["Scaled down replica set rs to 7"];

const isMap = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** RFC 7386. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isMap(patch) || !isMap(target)) return patch;
  const changes = Object.entries(patch).map(([key, value]) => [key, mergePatch(target[key], value)]);
  const merged = { ...target, ...Object.fromEntries(changes) };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
}

const imageOf = (revision: RevisionRecord) => revision.template.spec.containers[0]!.image!;

/** A workload whose pods are gone as soon as they are deleted. */
class Replay extends WorkloadWorld {
  readonly #kind: WorkloadKind;
  /** Time of the monotonic clock at which a pod became Ready, by uid. */
  readonly #ready = new Map<string, number>();
  readonly #minReadySeconds: number;
  readonly #isAnnotated: boolean;
  #manifest: Json;

  /** @param isAnnotated every edit gives its name as the change cause */
  constructor(kind: WorkloadKind, spec: Json, isAnnotated = false) {
    const metadata = { name: "web", ...(isAnnotated && { annotations: { [CHANGE_CAUSE]: "v1" } }) };
    const manifest = { apiVersion: kind === "Job" ? "batch/v1" : "apps/v1", kind, metadata, spec };
    super(manifest);
    this.#kind = kind;
    this.#manifest = manifest;
    this.#minReadySeconds = (spec.minReadySeconds as number | undefined) ?? 0;
    this.#isAnnotated = isAnnotated;
  }

  edit(patch: object, cause?: string): void {
    const metadata = this.#isAnnotated &&
      cause !== undefined && { metadata: { annotations: { [CHANGE_CAUSE]: cause } } };
    this.#manifest = mergePatch(this.#manifest, { ...patch, ...metadata }) as Json;
    this.apply(this.#manifest);
  }

  makeReady(image: string): void {
    const pod = this.live.find((it) => !this.#ready.has(it.uid) && this.imageOf(it) === image);
    if (!pod) throw new Error(`no pod of ${image} is left to become Ready`);
    this.#ready.set(pod.uid, this.clock.monotonicMs());
    this.setFacts(pod, { phase: "Running", isReady: true });
  }

  end(phase: PodFacts["phase"], count: number): void {
    const status = { phase, containerStatuses: [{ restartCount: 0 }] } as unknown as NonNullable<PodFacts["status"]>;
    for (const pod of this.live.filter(({ ended }) => !ended).slice(0, count)) this.setFacts(pod, { phase, status });
    this.reconcile();
  }

  removeDeleted(): void {
    for (;;) {
      const before = JSON.stringify(this.record!.pods);
      for (const pod of this.leaving) this.setFacts(pod, { isGone: true, isReady: false });
      this.reconcile();
      if (JSON.stringify(this.record!.pods) === before) return;
    }
  }

  async take(did: string, steps: Step[]): Promise<void> {
    if (did.startsWith("ready ")) {
      for (const image of did.split(" ").slice(1)) this.makeReady(image);
      return this.reconcile();
    }
    if (did === "create") return this.reconcile();
    const { do: what, spec } = steps.shift()!;
    if (what === "wait") {
      await this.clock.advance(spec as number);
      this.reconcile();
    } else if (what === "delete") {
      this.record = { ...this.record!, pods: this.record!.pods.map((pod) => ({ ...pod, leaving: true })) };
      this.reconcile();
    } else if (what === "delete pod") {
      const pods = this.record!.pods.map((pod) => (pod.name === spec ? { ...pod, leaving: true as const } : pod));
      this.record = { ...this.record!, pods };
      this.reconcile();
    } else if (what === "end") this.end(...(spec as [PodFacts["phase"], number]));
    else if (what === "undo") {
      const revision = Object.values(this.record!.revisions).find((it) => it.revision === spec)!;
      const template = { spec: { containers: [{ name: "app", image: imageOf(revision) }] } };
      this.edit({ spec: { template } }, revision.annotations?.[CHANGE_CAUSE]);
    } else this.edit({ spec }, what);
  }

  #show = (pod: PodRecord) => `${this.imageOf(pod)}${this.#ready.has(pod.uid) ? " ready" : ""}`;

  /** Names of ReplicaSets are hashes, which differ from upstream's. */
  withoutHashes(text: string): string {
    const sets = new Map(Object.values(this.record!.revisions).map((it) => [it.name, `rs:${imageOf(it)}`]));
    return text.replace(/web-[0-9a-z]+(?=[ "]|$)/g, (name) => sets.get(name) ?? name);
  }

  /** In the form of the recording. */
  state(like: State): Omit<State, "did" | "events"> {
    const status = computeWorkloadStatus({
      kind: this.#kind,
      record: this.record!,
      pod: (uid) => {
        const readyAtMs = this.#ready.get(uid);
        if (readyAtMs === undefined) return { isReady: false, readyForMs: 0 };
        return { isReady: true, readyForMs: this.clock.monotonicMs() - readyAtMs };
      },
      minReadySeconds: this.#minReadySeconds,
      generation: 1,
      jobOf: (name) => ({ apiVersion: "batch/v1", kind: "Job", namespace: "default", name, uid: name }),
    }) as Json & { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
    const counts = Object.entries(Object.groupBy(this.live.map(this.#show), (it) => it));
    const sets = Object.values(this.record!.revisions).map((it) => [
      imageOf(it),
      { replicas: it.replicas, revision: String(it.revision) },
    ]);
    return {
      ...(like.sets && { sets: Object.fromEntries(sets) as Json }),
      ...(like.annotations && {
        annotations: Object.fromEntries(
          Object.values(this.record!.revisions).map((it) => [imageOf(it), replicaSetAnnotations(it)]),
        ),
      }),
      ...(like.names && { names: this.live.map((pod) => `${pod.name} ${this.#show(pod)}`).sort() }),
      pods: Object.fromEntries(counts.map(([key, found]) => [key, found!.length])),
      status: Object.fromEntries(Object.keys(like.status).map((key) => [key, status[key] ?? 0])),
      conditions: (status.conditions ?? [])
        .map(
          ({ type, status: is, reason = "", message = "" }) =>
            `${type}=${is} ${reason}: ${this.withoutHashes(message)}`,
        )
        .sort(),
    };
  }
}

test.each(scenarios.map((scenario) => [`${scenario.kind} ${scenario.name}`, scenario] as const))(
  "a workload goes through the states recorded of a controller manager: %s",
  async (_, { name, kind, spec, steps, states }) => {
    const replay = new Replay(kind, spec, states[0]!.annotations !== undefined);
    const edits = steps.filter((step) => step.do !== "ready");
    for (const recorded of states) {
      await replay.take(recorded.did, edits);
      replay.removeDeleted();
      const { did, events: _events, ...theirs } = recorded;
      const { revision: _revision, ...wanted } = theirs as typeof theirs & { revision?: string };
      const found = replay.state(recorded);
      // The reason NewReplicaSetCreated lasts until the next reconciliation, which the recording did not wait for.
      // Upstream waits for the bad pod until it is deleted by hand; here the correction replaces it (docs/differences.md).
      if (name === "bad revision" && did.startsWith("image v")) continue;
      const isBetween = wanted.conditions.some((it) => it.includes("NewReplicaSetCreated"));
      expect({ did, ...found }).toEqual({ did, ...wanted, ...(isBetween && { conditions: found.conditions }) });
    }
    if (kind === "DaemonSet") {
      const events = replay.events.map((event) => `${event.reason}: ${event.message.replace(/web-\w+$/, "pod")}`);
      const recorded = states.flatMap(({ events }) => events);
      expect([...new Set(events)].sort()).toEqual([...new Set(recorded)].sort());
    }
    if (kind !== "Deployment") return;
    const events = replay.events.filter(({ reason }) => reason === "ScalingReplicaSet").map(({ message }) => message);
    const scaled = new Set(events.map((message) => message.replace(/web-[0-9a-z]+/, "rs")));
    const recorded = states.flatMap(({ events }) => events);
    // Pods became Ready one after the other, so that some scalings of the recording have one more step.
    const others = recorded
      .map((event) => event.replace(/^Deployment ScalingReplicaSet: (?:\(combined from similar events\): )?/, ""))
      .map((message) => message.replace(/rs:\S+/, "rs"))
      .filter((message) => !scaled.has(message));
    expect(others).toEqual(name === "proportional" ? INTERMEDIATE : []);
  },
);
