import type { ApiObject } from "../api-object.ts";
import { formatAccessModes } from "./cells.ts";
import { refuseFixedFields } from "./immutable-fields.ts";
import { type KindRow, specOf, statusOf, text } from "./kind-row.ts";
import { showClaimOfVolume, showVolumeOfClaim, warnOfKeptData } from "./shown-fields.ts";

/** Source: kubectl's printers. */
const phaseOf = (object: ApiObject, initial?: string) =>
  object.metadata.deletionTimestamp === undefined ? (statusOf(object).phase ?? initial) : "Terminating";
const storageOf = (capacity: unknown) => (capacity as { storage?: string } | undefined)?.storage;

function claimOf(object: ApiObject): string {
  const { namespace, name } = (specOf(object).claimRef ?? {}) as { namespace?: string; name?: string };
  return name === undefined ? "" : `${namespace ?? "default"}/${name}`;
}

/** Source: kubectl's printers. */
export const VOLUME_ROWS: readonly KindRow[] = [
  {
    group: "",
    kind: "PersistentVolumeClaim",
    validateUpdate: refuseFixedFields,
    plural: "persistentvolumeclaims",
    shortNames: ["pvc"],
    subresources: ["status"],
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
    description: "PersistentVolumeClaim is a user's request for and claim to a persistent volume.",
  },
  {
    group: "",
    kind: "PersistentVolume",
    validateUpdate: refuseFixedFields,
    plural: "persistentvolumes",
    shortNames: ["pv"],
    namespaced: false,
    subresources: ["status"],
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
    description: "PersistentVolume is a storage resource of the node.",
  },
];
