import type { CoreEvent } from "../../base/api/event.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import type { Pod } from "../../base/api/pod.ts";
import { objectKey } from "../../base/model/desired-object.ts";
import type { DesiredState } from "../../base/model/desired-pod.ts";
import type { WorkloadObject } from "../../base/model/workload-object.ts";
import { usesClaim } from "../../controllers/claims.ts";
import type { WorkloadManager } from "../../controllers/workload-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { NodeCordon } from "../../kubelet/node-cordon.ts";
import type { Servers } from "../../server/servers.ts";
import type { KubeletView } from "../../server/view.ts";
import type { DesiredStateFeed } from "../../sources/desired-state-feed.ts";
import type { RunnableKey } from "../../sources/kept-source.ts";
import type { ApiObject } from "../api-object.ts";

interface NodeViewParts {
  kubelet: Kubelet;
  workloads: WorkloadManager;
  feed: DesiredStateFeed;
  cordon: NodeCordon | undefined;
  view: KubeletView;
  servers: Servers;
}

/** The kubelet, its sources and its controllers as the API server sees them. */
export class NodeView {
  readonly #parts: NodeViewParts;
  #desired: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  #isRead = false;

  constructor(parts: NodeViewParts) {
    this.#parts = parts;
    parts.feed.onChange((state, { isRead }) => {
      this.#desired = state;
      this.#isRead = isRead;
    });
  }

  /** Every wanted or terminating pod with its status; an unchanged pod is the same object as before. */
  pods(): readonly Pod[] {
    return this.#parts.kubelet.pods();
  }

  /** Whether the kubelet still has work to do for a pod. */
  isThere(uid: string): boolean {
    return this.#parts.kubelet.worker(uid) !== undefined;
  }

  /** Where an object was found, for users: `file:line` where that is known. */
  originOf(kind: string, metadata: ObjectMeta): string | undefined {
    const { desiredPods } = this.#parts.kubelet;
    const pod = desiredPods.find((it) => kind === "Pod" && it.pod.metadata.uid === metadata.uid);
    const { file, line } = pod?.location ?? this.#desired.locations?.[objectKey(kind, metadata)] ?? {};
    return file !== undefined && line !== undefined ? `${file}:${line}` : pod?.origin;
  }

  desired(): DesiredState {
    return this.#desired;
  }

  /**
   * Removes a pod or workload whose source is not configured any more, or that `--runonce` started.
   * @param key `namespace/name` of a pod, `Kind namespace/name` of a workload
   * @returns false when there is none, or a configured source describes it
   */
  forget(key: string): boolean {
    return this.#parts.feed.forget(key as RunnableKey);
  }

  /** Deletes a claim that a StatefulSet made. @returns false for one that a pod uses, and for every other claim */
  deleteClaim(fullName: string): boolean {
    return this.#parts.workloads.deleteClaim(fullName);
  }

  /** The pod that uses a claim of a StatefulSet. */
  userOfClaim(fullName: string): string | undefined {
    return this.#parts.workloads.userOfClaim(fullName);
  }

  /** Whether a pod, wanted or terminating, uses a claim, or a claim is bound to a PersistentVolume. */
  isInUse(kind: string, metadata: ObjectMeta): boolean {
    const { kubelet, workloads } = this.#parts;
    if (kind === "PersistentVolume") {
      const status = workloads.reader.statusOf(kind, { metadata });
      return status !== undefined && "phase" in status && status.phase === "Bound";
    }
    return (
      kubelet.desiredPods.some(({ pod, claims }) => usesClaim(pod, claims, metadata)) ||
      [...kubelet.workers()].some(({ revision }) => revision && usesClaim(revision.pod, revision.claims, metadata))
    );
  }

  /** Whether all containers were inspected and every source was read: pods that use a claim are known. */
  arePodsKnown(): boolean {
    return this.#parts.kubelet.isSynced && this.#isRead;
  }

  /** Whether a workload made this pod. */
  isOfWorkload(uid: string): boolean {
    return this.#parts.workloads.hasPod(uid);
  }

  /** Deletes a pod of a workload. */
  deleteOfWorkload(uid: string, graceSeconds: number): void {
    this.#parts.workloads.deletePod(uid, { graceSeconds });
  }

  /** ReplicaSets, Jobs and claims that controllers made, with their statuses. */
  derivedObjects(): readonly WorkloadObject[] {
    return this.#parts.workloads.reader.derivedObjects();
  }

  /** Uid of an object of a manifest, and the time since which a workload is known. */
  identityOf(kind: string, metadata: ObjectMeta): { uid: string; creationTimestamp?: string } {
    return this.#parts.workloads.reader.identityOf(kind, metadata);
  }

  /** `status` of a workload; undefined where nothing is known of it. */
  workloadStatus(kind: string, object: ApiObject): object | undefined {
    return this.#parts.workloads.reader.statusOf(kind, object as { metadata: ObjectMeta });
  }

  /** Annotations that the controller of a workload writes on it. */
  workloadAnnotations(kind: string, object: ApiObject): Record<string, string> | undefined {
    return this.#parts.workloads.reader.annotationsOf(kind, object as { metadata: ObjectMeta });
  }

  events(): { revision: number; items: readonly CoreEvent[] } {
    return this.#parts.view.events();
  }

  /** The node as it is now. */
  node(): Promise<object> {
    return this.#parts.servers.node();
  }

  /** Whether further pods stay Pending; see `NodeCordon`. */
  setUnschedulable(isUnschedulable: boolean): void {
    const { kubelet, cordon } = this.#parts;
    const assigned = kubelet.pods().map(({ metadata }) => metadata.uid ?? "");
    if (cordon?.set(isUnschedulable, assigned)) kubelet.refresh();
  }
}
