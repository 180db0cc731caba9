import * as v from "valibot";
import { ObjectMetaSchema } from "../../base/api/meta.ts";
import { flagPointer, raw, text as string, textList, textMap } from "../../base/api/scalar.ts";
import { memoized } from "../../base/model/memoized.ts";
import type { ApiObject } from "../object-store.ts";
import {
  apiKind,
  type Fields,
  fixed,
  forbidden,
  formatAccessModes,
  isOther,
  manifestKind,
  type RefuseChange,
  specOf,
  statusOf,
  text,
  without,
} from "./define-kind.ts";

/** Source: kubectl's printers. */
const phaseOf = (object: ApiObject, initial?: string) =>
  object.metadata.deletionTimestamp === undefined ? (statusOf(object).phase ?? initial) : "Terminating";
const storageOf = (capacity: unknown) => (capacity as { storage?: string } | undefined)?.storage;

function claimOf(object: ApiObject): string {
  const { namespace, name } = (specOf(object).claimRef ?? {}) as { namespace?: string; name?: string };
  return name === undefined ? "" : `${namespace ?? "default"}/${name}`;
}

/** A claim with the volume it is bound to, which its status carries and its text does not. */
const showVolumeOfClaim = memoized((claim: ApiObject) => {
  const { volume, ...status } = statusOf(claim) as Fields & { volume?: { name: string } };
  if (!volume) return claim;
  return { ...claim, spec: { ...specOf(claim), volumeName: volume.name }, status };
});

/** A PersistentVolume with the claim that is bound to it. */
const showClaimOfVolume = memoized((volume: ApiObject) => {
  const { claim, ...status } = statusOf(volume) as Fields & { claim?: { namespace: string; name: string } };
  if (!claim) return volume;
  const claimRef = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    ...claim,
    ...(specOf(volume).claimRef as object),
  };
  return { ...volume, spec: { ...specOf(volume), claimRef }, status };
});

/** Data is never removed with its claim. */
function warnOfKeptData(claim: ApiObject): string | undefined {
  const { volume } = statusOf(claim) as { volume?: { name: string; isDockerVolume: boolean } };
  if (!volume?.isDockerVolume) return undefined;
  return `the data of the claim stays in Docker volume "${volume.name}": docker volume rm ${volume.name} removes it`;
}

/** A volume may be named while there is none. */
const refuseClaim: RefuseChange = (next, previous) => {
  const isNamed = specOf(previous).volumeName !== undefined;
  const mutable = new Set(["resources", "volumeAttributesClassName", ...(isNamed ? [] : ["volumeName"])]);
  const [after, before] = [next, previous].map((object) => {
    const { requests: _requests, ...resources } = (specOf(object).resources ?? {}) as Fields;
    return { ...without(specOf(object), mutable), resources };
  });
  const message = "spec is immutable after creation except resources.requests for bound claims";
  return isOther(after, before) ? [forbidden("spec", message)] : [];
};

/** Fields of a PersistentVolume besides its source. */
const MUTABLE_OF_VOLUME: ReadonlySet<string> = new Set([
  "accessModes",
  "capacity",
  "claimRef",
  "mountOptions",
  "nodeAffinity",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "volumeAttributesClassName",
  "volumeMode",
]);

const refuseVolume: RefuseChange = (next, previous) => {
  const [after, before] = [specOf(next), specOf(previous)];
  const source = "spec.persistentvolumesource";
  const hasOther = (name: string) => before[name] !== undefined && isOther(after[name], before[name]);
  return [
    ...(isOther(without(after, MUTABLE_OF_VOLUME), without(before, MUTABLE_OF_VOLUME))
      ? [forbidden(source, `${source} is immutable after creation`)]
      : []),
    ...(after.volumeMode === before.volumeMode ? [] : [fixed("volumeMode")]),
    ...(hasOther("nodeAffinity") ? [fixed("nodeAffinity")] : []),
  ];
};

export const PERSISTENT_VOLUME_CLAIM = manifestKind({
  kind: "PersistentVolumeClaim",
  validateUpdate: refuseClaim,
  shortNames: ["pvc"],
  subresources: ["status"],
  firstStatus: () => ({ phase: "Pending" }),
  columns: [
    text("Status", (it) => phaseOf(it, "Bound")),
    text("Volume", (it) => specOf(it).volumeName),
    text("Capacity", (it) => storageOf(statusOf(it).capacity)),
    text("Access Modes", (it) => formatAccessModes(statusOf(it).accessModes ?? specOf(it).accessModes)),
    text("StorageClass", (it) => specOf(it).storageClassName),
    text("VolumeAttributesClass", (it) => specOf(it).volumeAttributesClassName ?? "<unset>"),
    text("VolumeMode", (it) => specOf(it).volumeMode ?? "<unset>", 1),
  ],
  complete: showVolumeOfClaim,
  deletionWarning: warnOfKeptData,
  protection: "kubernetes.io/pvc-protection",
});

export const PERSISTENT_VOLUME = manifestKind({
  kind: "PersistentVolume",
  validateUpdate: refuseVolume,
  shortNames: ["pv"],
  namespaced: false,
  subresources: ["status"],
  firstStatus: () => ({ phase: "Pending" }),
  columns: [
    text("Capacity", (it) => storageOf(specOf(it).capacity)),
    text("Access Modes", (it) => formatAccessModes(specOf(it).accessModes)),
    text("Reclaim Policy", (it) => specOf(it).persistentVolumeReclaimPolicy),
    text("Status", (it) => phaseOf(it)),
    text("Claim", claimOf),
    text("StorageClass", (it) => specOf(it).storageClassName),
    text("VolumeAttributesClass", (it) => specOf(it).volumeAttributesClassName ?? "<unset>"),
    text("Reason", (it) => statusOf(it).reason),
    text("VolumeMode", (it) => specOf(it).volumeMode ?? "<unset>", 1),
  ],
  complete: showClaimOfVolume,
  protection: "kubernetes.io/pv-protection",
});

export const IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class";
const FIXED_OF_CLASS = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] as const;

/** No class makes volumes here: clients and suites look whether there is a default one. */
export const STORAGE_CLASS = apiKind({
  group: "storage.k8s.io",
  kind: "StorageClass",
  plural: "storageclasses",
  shortNames: ["sc"],
  namespaced: false,
  schema: v.object({
    metadata: ObjectMetaSchema,
    provisioner: string,
    parameters: v.optional(textMap),
    reclaimPolicy: v.optional(string, "Delete"),
    mountOptions: v.optional(textList),
    allowVolumeExpansion: v.optional(flagPointer),
    volumeBindingMode: v.optional(string, "Immediate"),
    allowedTopologies: v.optional(v.array(raw)),
  }),
  validateUpdate: (next, previous) => FIXED_OF_CLASS.filter((it) => isOther(next[it], previous[it])).map(fixed),
  columns: [
    {
      ...text("Name", ({ metadata: { name, annotations } }) =>
        annotations?.[IS_DEFAULT_CLASS] === "true" ? `${name} (default)` : name,
      ),
      format: "name",
    },
    text("Provisioner", ({ provisioner }) => provisioner),
    text("ReclaimPolicy", ({ reclaimPolicy }) => reclaimPolicy),
    text("VolumeBindingMode", ({ volumeBindingMode }) => volumeBindingMode),
    text("AllowVolumeExpansion", ({ allowVolumeExpansion }) => allowVolumeExpansion ?? false),
  ],
});
