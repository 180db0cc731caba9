import { type Pod, PodSchema, type PodStatus } from "../../base/api/pod.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Outage } from "../../base/model/cluster-connection.ts";
import type { DesiredPod, PodDeletion } from "../../base/model/desired-state.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { PodUID } from "../../base/model/pod.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { type DecodeIssue, decodeObject, isTypeIssue } from "../../manifest/decode/decode.ts";
import { objectShapeOf } from "../../manifest/decode/shape.ts";
import { applyPodDefaults, CONFIG_SOURCE_ANNOTATION, computeRevision } from "../../manifest/defaults.ts";
import { FieldPath } from "../../manifest/field.ts";
import { parseJson } from "../../manifest/yaml/json-parser.ts";
import { type ObjectReference, podReferences } from "../../plan/object-references.ts";
import { type Checkpoint, type FeedSource, sourceId } from "../../sources/checkpoint-store.ts";
import type { SourceSet, SourceStatus } from "../../sources/source-set.ts";
import type { ObjectOfApi } from "../client/reflector.ts";
import type { ClaimResolver } from "../objects/claim-resolver.ts";
import type { ObjectCache } from "../objects/object-cache.ts";
import type { TokenManager } from "../objects/token-manager.ts";

/** `v1.Pod` as far as it is used before it is decoded. */
export interface ApiPod extends ObjectOfApi {
  spec: { nodeName?: string; restartPolicy?: string; readinessGates?: readonly { conditionType: string }[] };
  status?: PodStatus;
}

/**
 * `DesiredPod.sourceId` of pods of the API server. One cluster after the other is the same source: pods of the former go
 * when the latter has answered.
 */
const CLUSTER_SOURCE_ID = sourceId("kubernetes API");
/** Value: the hash of the static pod that the mirror pod shows. */
export const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

export const isMirrorPod = ({ metadata }: ApiPod): boolean => metadata.annotations?.[MIRROR_ANNOTATION] !== undefined;

export const isTerminating = ({ metadata }: ApiPod): boolean => metadata.deletionTimestamp !== undefined;

/** The pod has terminated, as far as the API server knows. */
const hasEnded = ({ status }: ApiPod): boolean => status?.phase === "Failed" || status?.phase === "Succeeded";

/** One that the node knows, or shows as a mirror pod, is kept before others; what does not fit ends soon, as the node refuses it. */
export function kindOfPod(pod: ApiPod, isKnown: boolean): "new" | "begun" | "ended" {
  if (hasEnded(pod)) return "ended";
  return isKnown || pod.status?.startTime !== undefined || isMirrorPod(pod) ? "begun" : "new";
}

/** Whether two versions of a pod mean the same to the node: only status and bookkeeping differ. */
function hasSameSpec(a: ApiPod, b: ApiPod): boolean {
  return (
    a.metadata.uid === b.metadata.uid &&
    Bun.deepEquals(a.metadata.labels, b.metadata.labels) &&
    Bun.deepEquals(a.metadata.annotations, b.metadata.annotations) &&
    Bun.deepEquals(a.spec, b.spec)
  );
}

/** @throws Error when a field has a value of a wrong type */
function toDesiredPod(object: ApiPod): DesiredPod {
  const { status: _status, ...pod } = readApiPod(object);
  const { metadata, spec } = pod;
  const { managedFields: _fields, resourceVersion: _version, ...lasting } = metadata;
  const annotations = Object.assign(Object.create(null), metadata.annotations, { [CONFIG_SOURCE_ANNOTATION]: "api" });
  const desired: Pod = {
    metadata: { ...lasting, annotations },
    spec,
    status: { phase: "Pending" },
  };
  return {
    pod: desired,
    source: "api",
    origin: "the API server",
    sourceId: CLUSTER_SOURCE_ID,
    revision: computeRevision({ labels: metadata.labels, annotations: metadata.annotations, spec }),
    isBound: true,
    resourceVersion: Number(metadata.resourceVersion) || 0,
  };
}

const podShape = objectShapeOf(PodSchema);

/**
 * A pod as an API server returns it: validated there, so that fields of newer versions are left out rather than refused.
 * @param object `v1.Pod`
 * @throws Error when a field has a value of a wrong type
 */
function readApiPod(object: object): Pod {
  const issues: DecodeIssue[] = [];
  const pod = decodeObject(parseJson(JSON.stringify(object)), podShape, FieldPath.root, issues) as Pod;
  const wrong = issues.find(isTypeIssue);
  if (wrong) throw new Error(`${wrong.path.toString()}: ${wrong.discreet}`);
  applyPodDefaults(pod);
  return pod;
}

interface ApiPodSourceDeps {
  /** URL of the API server. */
  server: string;
  clock: Clock;
  logger: Logger;
  objects: Pick<ObjectCache, "setReferences" | "isSettled" | "configMaps" | "secrets" | "restore">;
  claims: Pick<ClaimResolver, "setPods" | "isSettled" | "resolve">;
  tokens: Pick<TokenManager, "revisionOf" | "retain">;
  /** The set that an earlier process stored. */
  lastKnownGood: () => Checkpoint | undefined;
}

/** Pods of a checkpoint are used when the API server has not answered by then. */
const RESTORE_AFTER_MS = 5_000;
/** Changes within this time are one set. */
const GATHER_MS = 10;
/** A set is followed by the next one after this many times as long as it took: a thousand new pods are not a thousand sets. */
const GATHER_FACTOR = 3;
/** Name of the only text in the checkpoint. */
const TEXT = "api";

/**
 * The pods an API server assigned to this node, as a source. The set is complete after a list that succeeded; without
 * one, the pods of the checkpoint run. A new pod is held back until its ConfigMaps and Secrets were asked for.
 */
export class ApiPodSource implements FeedSource {
  readonly kind = "api";
  readonly name: string;
  readonly id = CLUSTER_SOURCE_ID;
  readonly #deps: ApiPodSourceDeps;
  readonly #facts: ChangeLogger;
  readonly #known = new Map<PodUID, { object: ApiPod; desired: DesiredPod | undefined }>();
  /** Pods of the last set, by UID. */
  readonly #emitted = new Map<PodUID, DesiredPod>();
  #pods: readonly ApiPod[] | undefined;
  #restored: readonly DesiredPod[] | undefined;
  #emit: ((set: SourceSet) => void) | undefined;
  #cancelGather: (() => void) | undefined;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #cancelRestore: (() => void) | undefined;
  /** Why and since when pods are not received; undefined while they are. */
  failure: Outage | undefined;
  #lastSuccess: Date | undefined;
  #failures = 0;
  #set: SourceSet | undefined;
  #isStopped = false;

  constructor(deps: ApiPodSourceDeps) {
    this.#deps = deps;
    this.name = deps.server;
    this.#facts = new ChangeLogger(deps.logger);
  }

  start(emit: (set: SourceSet) => void): void {
    this.#emit = emit;
    if (this.#pods) this.changed();
    else this.#cancelRestore = this.#deps.clock.schedule(RESTORE_AFTER_MS, () => this.#restore());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelGather?.();
    this.#cancelRestore?.();
  }

  /** The pods of this node, as the API server has them now, without those that have to wait. */
  setPods(pods: readonly ApiPod[], waiting = 0): void {
    const many = `API server ${this.name}: new pods of this node that wait until others have started or are refused`;
    if (waiting > 0) this.#facts.log("many", "warn", `${many}: ${waiting}`);
    else this.#facts.resolve("many", `${many}: none any more`);
    const before = this.#pods;
    this.#pods = pods;
    this.#lastSuccess = this.#deps.clock.now();
    // Most changes are the statuses that this node has reported.
    if (!before || !meanTheSame(before, pods)) this.changed();
  }

  /** The connection broke, or works again (undefined). */
  setHealth(error: Error | undefined): void {
    this.failure = error && { reason: error.message, since: this.failure?.since ?? this.#deps.clock.now() };
    if (!error) {
      this.#facts.resolve("server", `API server ${this.name}: answers again`);
      return;
    }
    this.#failures++;
    this.#facts.log(
      "server",
      "warn",
      `API server ${this.name}: ${error.message}; pods keep running as they were last received`,
    );
  }

  /** Objects that pods refer to have changed. Several changes of one moment make one set. */
  changed(): void {
    if (!this.#emit || this.#isStopped) return;
    const { clock } = this.#deps;
    const delayMs = Math.max(GATHER_MS, this.#notBeforeMs - clock.monotonicMs());
    this.#cancelGather ??= clock.schedule(delayMs, () => {
      this.#cancelGather = undefined;
      const startedAtMs = clock.monotonicMs();
      this.#publish();
      const endedAtMs = clock.monotonicMs();
      this.#notBeforeMs = endedAtMs + GATHER_FACTOR * (endedAtMs - startedAtMs);
    });
  }

  status(): SourceStatus {
    const state = this.#pods ? (this.failure ? "failing" : "ok") : this.#restored ? "restored" : "waiting";
    return {
      kind: "api",
      name: this.name,
      state,
      ...(this.failure && { message: this.failure.reason }),
      pods: this.#set?.pods.length ?? 0,
      ...(this.#lastSuccess && { lastSuccess: this.#lastSuccess }),
      reads: this.#pods ? 1 : 0,
      failures: this.#failures,
    };
  }

  checkpoint(): Checkpoint | undefined {
    if (!this.#set || !this.#pods) return undefined;
    const { configMaps, secrets } = this.#set;
    // Without the API server nothing else says that a pod has ended.
    const ended = new Set(this.#pods.filter(hasEnded).map(({ metadata }) => metadata.uid));
    const pods = this.#set.pods.filter(({ pod }) => !ended.has(pod.metadata.uid));
    return { texts: new Map([[TEXT, { pods, configMaps, secrets }]]) };
  }

  /** Runs what an earlier process knew; nothing else is removed by it. */
  #restore(): void {
    const kept = this.#deps.lastKnownGood()?.texts.get(TEXT);
    if (this.#pods || !kept || this.#isStopped) return;
    this.#restored = kept.pods;
    this.#deps.objects.restore(kept.configMaps, kept.secrets);
    const count = `${kept.pods.length} pod${kept.pods.length === 1 ? "" : "s"}`;
    this.#deps.logger.warn(`API server ${this.name} has not answered: ${count} of the checkpoint run until it does`);
    this.changed();
  }

  #publish(): void {
    if (this.#isStopped) return;
    const all = this.#pods ? this.#wanted(this.#pods) : (this.#restored ?? []);
    const references = new Map<PodUID, ObjectReference[]>(
      all.map(({ pod }) => [pod.metadata.uid ?? "", podReferences(pod)]),
    );
    const { objects, claims, tokens } = this.#deps;
    objects.setReferences([...references.values()].flat());
    claims.setPods(all);
    tokens.retain(new Set(references.keys()));
    const isReady = (desired: DesiredPod) => {
      const uid = desired.pod.metadata.uid ?? "";
      const isNew = this.#pods !== undefined && !this.#emitted.has(uid);
      if (!isNew) return true;
      return (references.get(uid) ?? []).every((one) => objects.isSettled(one)) && claims.isSettled(desired);
    };
    const pods = all
      .filter(isReady)
      .map((desired) => this.#withVolumes(desired))
      .map((desired) => {
        const filesRevision = tokens.revisionOf(desired.pod.metadata.uid ?? "");
        return filesRevision === undefined ? desired : { ...desired, filesRevision };
      });
    this.#emitted.clear();
    for (const desired of pods) this.#emitted.set(desired.pod.metadata.uid ?? "", desired);
    this.#set = {
      pods,
      configMaps: objects.configMaps(),
      secrets: objects.secrets(),
      deletions: this.#deletions(),
      findings: [],
      stale: new Map(),
      isComplete: this.#pods !== undefined && pods.length === all.length,
    };
    this.#emit?.(this.#set);
  }

  /** Claims become volumes; those the API server has not answered for yet are what they were, as in a checkpoint. */
  #withVolumes(desired: DesiredPod): DesiredPod {
    const { claims } = this.#deps;
    const known = this.#emitted.get(desired.pod.metadata.uid ?? "");
    if (claims.isSettled(desired) || !known) return claims.resolve(desired);
    return { ...desired, pod: { ...desired.pod, spec: { ...desired.pod.spec, volumes: known.pod.spec.volumes } } };
  }

  #wanted(pods: readonly ApiPod[]): DesiredPod[] {
    const uids = new Set(pods.map(({ metadata }) => metadata.uid ?? ""));
    for (const uid of this.#known.keys()) if (!uids.has(uid)) this.#known.delete(uid);
    return pods
      .filter((pod) => !isMirrorPod(pod) && !isTerminating(pod))
      .flatMap((object) => this.#toDesired(object) ?? []);
  }

  #deletions(): Map<PodUID, PodDeletion> {
    const terminating = (this.#pods ?? []).filter((pod) => isTerminating(pod) && !isMirrorPod(pod));
    return new Map(
      terminating.map((object) => {
        const graceSeconds = object.metadata.deletionGracePeriodSeconds ?? 0;
        const desired = this.#toDesired(object);
        return [object.metadata.uid ?? "", { graceSeconds, ...(desired && { desired }) }];
      }),
    );
  }

  /** @returns undefined for a pod that cannot be decoded */
  #toDesired(object: ApiPod): DesiredPod | undefined {
    const uid = object.metadata.uid ?? "";
    const known = this.#known.get(uid);
    if (known && hasSameSpec(known.object, object)) {
      // The next comparison is with an object that is still there.
      known.object = object;
      return known.desired;
    }
    let desired: DesiredPod | undefined;
    try {
      desired = toDesiredPod(object);
    } catch (error) {
      const { namespace, name } = object.metadata;
      this.#facts.log(`pod ${uid}`, "error", `Pod "${namespace}/${name}" cannot be read: ${messageOf(error)}`);
    }
    this.#known.set(uid, { object, desired });
    return desired;
  }
}

/** Whether two versions of the node's pods mean the same set: only statuses and bookkeeping differ. */
const meanTheSame = (before: readonly ApiPod[], after: readonly ApiPod[]): boolean =>
  before.length === after.length &&
  after.every((pod, index) => pod === before[index] || meansTheSame(before[index]!, pod));

const meansTheSame = (before: ApiPod, after: ApiPod): boolean =>
  hasSameSpec(before, after) &&
  before.metadata.deletionTimestamp === after.metadata.deletionTimestamp &&
  before.metadata.deletionGracePeriodSeconds === after.metadata.deletionGracePeriodSeconds &&
  hasEnded(before) === hasEnded(after);
