import type { DesiredState } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { PodRef } from "../base/model/pod-ref.ts";

/** `DesiredPod.source` of pods of the local API server, which are known as soon as anything is. */
const API_SOURCE = "api";

export interface OrphanInput {
  /** Pods with containers or with something left to clean up; a pod may occur twice. */
  refs: Iterable<PodRef>;
  desired: DesiredState;
  /** Pods that are already taken care of. */
  hasWorker: (uid: PodUID) => boolean;
  isRejected: (uid: PodUID) => boolean;
  /** The source that described the pod when it was last desired; undefined: not known. */
  sourceOf: (uid: PodUID) => string | undefined;
}

interface Orphans {
  remove: { ref: PodRef; why: string }[];
  /** Their manifest and their source are not known: nothing shows that they were deleted. */
  unclaimed: PodRef[];
}

/** Sorts pods that belong to no desired pod: a pod is removed only when the source that described it was read. Pure. */
export function findOrphans({ refs, desired, hasWorker, isRejected, sourceOf }: OrphanInput): Orphans {
  const { completeSources, deletions } = desired;
  const isDeleted = (uid: PodUID) => {
    if (completeSources === undefined || deletions?.has(uid)) return true;
    const source = sourceOf(uid);
    return source === API_SOURCE || (source !== undefined && completeSources.has(source));
  };
  const desiredUids = new Set(desired.pods.map(({ pod }) => pod.metadata.uid));
  const orphans: Orphans = { remove: [], unclaimed: [] };
  const seen = new Set<PodUID>();
  for (const ref of refs) {
    const { uid } = ref;
    if (seen.has(uid) || hasWorker(uid)) continue;
    seen.add(uid);
    if (isRejected(uid)) orphans.remove.push({ ref, why: "the node refuses it" });
    else if (desiredUids.has(uid)) continue;
    else if (isDeleted(uid)) orphans.remove.push({ ref, why: "no manifest describes it" });
    else orphans.unclaimed.push(ref);
  }
  return orphans;
}
