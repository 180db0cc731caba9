import type { PodCondition, PodStatus } from "../base/api/pod.ts";
import type { DesiredPod, DesiredState } from "../base/model/desired-state.ts";
import { type Persisted, StoredMap } from "../base/model/persisted.ts";
import type { PodRef, PodUID } from "../base/model/pod.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import type { Rejection } from "../plan/admission.ts";
import type { PodEnd } from "../plan/pod-plan.ts";

/** How a pod ended. */
export interface Completion {
  runRevision: string;
  end: PodEnd;
  status: PodStatus;
}

/** A pod with something to clean up. */
interface PodToCleanUp extends PodRef {
  /** `DesiredPod.sourceId`: the source whose sets show whether the pod is still described. Absent: not known. */
  sourceId?: string;
  /** It was removed completely; what a hanging engine makes of an earlier request is recognized by this entry. */
  isRemoved?: true;
}

interface Eviction extends Rejection {
  /** Revision of the manifest: an edited pod may run. */
  revision: string;
  /** Start of the pod; RFC 3339. */
  since: string;
}

export type StoredEvictions = readonly (readonly [PodUID, Eviction])[];

/** With the times of their transitions. */
type StoredConditions = readonly (readonly [PodUID, readonly PodCondition[]])[];

export type StoredManifests = readonly (readonly [PodUID, DesiredPod])[];

interface PodRecordFiles {
  conditions: Persisted<StoredConditions>;
  completions: Persisted<Record<PodUID, Completion>>;
  podCleanup: Persisted<readonly PodToCleanUp[]>;
  shutdownTerminated: Persisted<ContainerId[]>;
  evictions: Persisted<StoredEvictions>;
  earlierManifests: Persisted<StoredManifests>;
}

/** Records of pods that outlive a restart of the kubelet; the rest is read from their containers. */
export class PodRecords {
  readonly completions: StoredMap<PodUID, Completion, Record<PodUID, Completion>>;
  /**
   * Pods with something to clean up: directory, volumes, cgroup, log links. If the process ends after the last container
   * of a pod was removed, no container shows the rest to the next process; this does.
   */
  readonly cleanup: StoredMap<PodUID, PodToCleanUp, readonly PodToCleanUp[]>;
  /**
   * Containers that were running when their pod was halted. Their exit code says nothing about their work, so the next
   * start of the kubelet does not count it. Written before any of them can end.
   */
  readonly shutdownTerminated: StoredMap<ContainerId, true, ContainerId[]>;
  /**
   * Refused although admitted, in the order of their eviction: until an edit, or until they are readmitted. A restart of
   * the kubelet does not bring back the shortage that pods were evicted for.
   */
  readonly evictions: StoredMap<PodUID, Eviction, StoredEvictions>;

  /** The last conditions of each pod: one that is as before our restart keeps the time of its transition. */
  readonly conditions: StoredMap<PodUID, readonly PodCondition[], StoredConditions>;

  /** Manifests that pods run, while their edit waits or is refused. */
  readonly earlierManifests: StoredMap<PodUID, DesiredPod, StoredManifests>;

  constructor(files: PodRecordFiles) {
    this.completions = new StoredMap(files.completions, Object.entries, Object.fromEntries);
    this.cleanup = new StoredMap(
      files.podCleanup,
      (pods) => pods.map((pod) => [pod.uid, pod]),
      (pods) => [...pods.values()],
    );
    this.shutdownTerminated = new StoredMap(
      files.shutdownTerminated,
      (ids) => ids.map((id) => [id, true]),
      (ids) => [...ids.keys()],
    );
    this.evictions = new StoredMap(files.evictions);
    this.earlierManifests = new StoredMap(files.earlierManifests);
    this.conditions = new StoredMap(files.conditions, (stored) => stored.filter(([uid]) => this.cleanup.has(uid)));
  }
}

/** The pods this node should run and the objects they refer to. `Kubelet.setDesired` writes `state`; other subsystems read it. */
export class PodManager {
  state: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };

  get(uid: PodUID): DesiredPod | undefined {
    return this.state.pods.find(({ pod }) => pod.metadata.uid === uid);
  }
}
