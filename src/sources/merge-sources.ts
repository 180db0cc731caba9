import type { ConfigMap } from "../base/api/config-map.ts";
import type { Secret } from "../base/api/secret.ts";
import { type DesiredObject, type ObjectKey, type ObjectKind, objectKey } from "../base/model/desired-object.ts";
import type { DesiredPod, DesiredState, PodNotice } from "../base/model/desired-pod.ts";
import type { Finding } from "../base/model/finding.ts";
import { compareFullNames, type PodFullName, type PodUID, podFullName } from "../base/model/identity.ts";
import { joinLocations, type SourceSet } from "./source-set.ts";

/** A text that is ignored, because an earlier one describes the same object. */
export interface Duplicate {
  kind: "Pod" | "ConfigMap" | "Secret" | ObjectKind;
  /** `namespace/name`. */
  name: string;
  /** One line: which text is ignored, which one counts. */
  message: string;
}

interface MergeResult {
  state: DesiredState;
  /** Findings of all sources, in their order. */
  findings: readonly Finding[];
  duplicates: readonly Duplicate[];
  /** Every source was read, and no text is unknown: pods that are in no set may be removed. */
  isComplete: boolean;
  /** Every source was read, or has a checkpoint. A text that was never right may still be unknown. */
  isRead: boolean;
}

/**
 * All sources together. Of two objects with the same namespace and name (or two pods with one UID) the first counts, by
 * order of the sources, then of the files, then of the documents; the other is reported, unless it is a kept one.
 * @param sets in the order of the sources; undefined: that source was not read yet
 */
export function mergeSources(sets: readonly (SourceSet | undefined)[]): MergeResult {
  const duplicates: Duplicate[] = [];
  const notices = new Map<PodUID, PodNotice[]>();
  const byName = new Map<string, DesiredPod>();
  const byUid = new Map<PodUID, DesiredPod>();
  const configMaps = new Map<string, ConfigMap>();
  const secrets = new Map<string, Secret>();
  const objects = new Map<ObjectKey, DesiredObject>();
  const note = (uid: PodUID, notice: PodNotice) => notices.set(uid, [...(notices.get(uid) ?? []), notice]);

  for (const set of sets) {
    for (const desired of set?.pods ?? []) {
      const name = podFullName(desired.pod.metadata);
      const uid = desired.pod.metadata.uid!;
      const winner = byName.get(name) ?? byUid.get(uid);
      if (winner) {
        if (set?.isKept) continue;
        const what = byName.has(name) ? `pod "${name}"` : `a pod with the uid ${uid}`;
        const message = `${desired.origin}: ignored, ${what} is described by ${winner.origin} already`;
        duplicates.push({ kind: "Pod", name, message });
        note(winner.pod.metadata.uid!, { reason: "DuplicateManifest", message });
        continue;
      }
      byName.set(name, desired);
      byUid.set(uid, desired);
      if (set?.unclaimedFrom !== undefined)
        note(uid, { reason: "Unclaimed", message: unclaimedMessage(name, set.unclaimedFrom) });
      const why = set?.stale.get(name);
      if (why !== undefined) {
        note(uid, { reason: "InvalidManifest", message: `runs by an older text: ${why}` });
      }
    }
    const reported = set?.isKept ? [] : duplicates;
    addObjects("ConfigMap", set?.configMaps ?? [], configMaps, reported);
    addObjects("Secret", set?.secrets ?? [], secrets, reported);
    for (const desired of set?.objects ?? []) {
      const key = objectKey(desired.kind, desired.object.metadata);
      const winner = objects.get(key);
      if (!winner) objects.set(key, desired);
      else {
        const name = podFullName(desired.object.metadata);
        const message = `${desired.origin}: ignored, ${desired.kind} "${name}" is described by ${winner.origin} already`;
        reported.push({ kind: desired.kind, name, message });
      }
    }
  }
  const deletions = sets.flatMap((set) => [...(set?.deletions ?? [])]);
  const pods = [...byName].sort(([a], [b]) => compareFullNames(a, b)).map(([, desired]) => desired);
  return {
    state: {
      pods,
      configMaps,
      secrets,
      ...(notices.size > 0 && { notices }),
      locations: joinLocations(sets.filter((set) => set !== undefined)),
      ...(deletions.length > 0 && { deletions: new Map(deletions) }),
      ...(objects.size > 0 && {
        objects: [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object),
      }),
    },
    findings: sets.flatMap((set) => set?.findings ?? []),
    duplicates,
    isComplete: sets.every((set) => set?.isComplete),
    isRead: sets.every((set) => set !== undefined),
  };
}

/** Says why an unclaimed pod runs, and both ways out. */
function unclaimedMessage(fullName: PodFullName, source: string): string {
  const [namespace, name] = fullName.split("/");
  return (
    `its source ${source} is not configured any more; the pod keeps running until a configured source describes it ` +
    `or it is removed: run "kubelet-ts delete pod ${name} --namespace=${namespace}"`
  );
}

function addObjects<T extends ConfigMap | Secret>(
  kind: Duplicate["kind"],
  objects: readonly T[],
  known: Map<string, T>,
  duplicates: Duplicate[],
): void {
  for (const object of objects) {
    const name = podFullName(object.metadata);
    if (!known.has(name)) known.set(name, object);
    else if (known.get(name) !== object) {
      duplicates.push({ kind, name, message: `${kind} "${name}" is described more than once; the first text counts` });
    }
  }
}
