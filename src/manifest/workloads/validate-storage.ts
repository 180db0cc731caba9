import type { PersistentVolume } from "../../base/api/persistent-volume.ts";
import { CLUSTER_VOLUME_NAMES } from "../../base/api/volume.ts";
import type { PersistentVolumeClaim } from "../../base/api/workload.ts";
import type { Field, SupportNote } from "../field.ts";
import { checkDnsSubdomain, checkNoBacksteps, validateMetadata } from "../validate/names.ts";
import { validateLabelSelector, validateNodeSelector } from "../validate/scheduling.ts";

const VOLUME_MODES = ["Block", "Filesystem"];
const ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

function validateAccessModes(modes: Field<readonly string[] | undefined>): void {
  const { value = [] } = modes;
  if (value.length === 0) return modes.required("must hold at least one access mode");
  for (const mode of modes.items()) mode.as(modes.path).oneOf(ACCESS_MODES);
  const isOther = (mode: string) => mode !== "ReadWriteOncePod" && ACCESS_MODES.includes(mode);
  if (value.includes("ReadWriteOncePod") && value.some(isOther)) {
    modes.forbidden("ReadWriteOncePod excludes other modes");
  }
}

/** Source: core validation `ValidatePersistentVolumeClaim`. */
export function validateClaim(claim: Field<PersistentVolumeClaim>): void {
  validateMetadata(claim.field("metadata"));
  validateClaimSpec(claim.field("spec"));
}

/** Source: core validation `ValidatePersistentVolumeClaimSpec`. */
export function validateClaimSpec(spec: Field<PersistentVolumeClaim["spec"]>): void {
  validateAccessModes(spec.field("accessModes"));
  validateLabelSelector(spec.field("selector"));
  const { requests = {} } = spec.value.resources;
  const storage = spec.field("resources").field("requests").with(requests).entry("storage");
  const reported = storage.as(spec.field("resources").path.key("storage"));
  if (storage.value === undefined) reported.required("is required, e.g. requests: {storage: 1Gi}");
  else if (!isPositive(storage.value)) reported.invalid("must be greater than zero");
  spec.field("volumeMode").oneOf(VOLUME_MODES);
  validateClassName(spec.field("storageClassName"));
  for (const name of ["dataSource", "dataSourceRef"] as const) {
    const source = spec.field(name);
    if (!source.value) continue;
    if (source.value.name === "") source.field("name").required();
    if (source.value.kind === "") source.field("kind").required();
    if ((source.value.apiGroup ?? "") === "" && source.value.kind !== "PersistentVolumeClaim") {
      source.with(source.value.kind).invalid("must be a PersistentVolumeClaim, or have an apiGroup");
    }
  }
}

/** @param storage a canonical quantity */
const isPositive = (storage: string) => !storage.startsWith("-") && !/^0\D*$/.test(storage);

function validateClassName(name: Field<string | undefined>): void {
  if (name.value !== "") name.format(checkDnsSubdomain);
}

const SOURCES_HERE = ["hostPath", "local", "nfs"] as const;
/** Source: core validation `ValidatePersistentVolume`. */
export function validatePersistentVolume(volume: Field<PersistentVolume>): void {
  const { metadata } = volume.value;
  // Persistent volumes are in no namespace.
  validateMetadata(volume.field("metadata").with({ ...metadata, namespace: "default" }));
  const spec = volume.field("spec");
  const { hostPath, nfs, capacity, persistentVolumeReclaimPolicy: policy } = spec.value;
  validateAccessModes(spec.field("accessModes"));
  const storage = spec
    .field("capacity")
    .with(capacity ?? {})
    .entry("storage");
  if (storage.value === undefined) spec.field("capacity").required("is required, e.g. capacity: {storage: 1Gi}");
  else if (!isPositive(storage.value)) {
    storage.as(spec.field("capacity").path.child("storage")).invalid("must be greater than zero");
  }
  const sources = [...SOURCES_HERE, ...CLUSTER_VOLUME_NAMES].filter((name) => spec.value[name] !== undefined);
  if (sources.length === 0) spec.required("must have a volume type such as hostPath");
  for (const name of sources.slice(1)) {
    spec.field(name).forbidden(`a volume has one type, and this one is ${sources[0]} already`);
  }
  for (const name of ["hostPath", "local"] as const) {
    const path = spec.field(name).field("path");
    if (path.value === "") path.required();
    else path.format(checkNoBacksteps);
  }
  validateNodeAffinity(spec);
  if (nfs && (nfs.server === "" || !nfs.path.startsWith("/"))) {
    spec.field("nfs").field("path").invalid("needs a server and an absolute path");
  }
  const policyField = spec.field("persistentVolumeReclaimPolicy");
  policyField.oneOf(["Delete", "Recycle", "Retain"]);
  if (hostPath && /^\/+$/.test(hostPath.path) && policy === "Recycle") {
    policyField.forbidden("must not be Recycle for the hostPath /");
  }
  spec.field("volumeMode").oneOf(VOLUME_MODES);
  validateClassName(spec.field("storageClassName"));
}

function validateNodeAffinity(spec: Field<PersistentVolume["spec"]>): void {
  const affinity = spec.field("nodeAffinity");
  if (!affinity.value) {
    if (spec.value.local) affinity.required("is required with local: use hostPath, which needs none");
  } else if (!affinity.value.required) affinity.field("required").required();
  else validateNodeSelector(affinity.field("required"));
}

/** Findings for volumes that are not possible here. */
export function findVolumeNotes(volume: Field<PersistentVolume>): SupportNote[] {
  const spec = volume.field("spec");
  const found = CLUSTER_VOLUME_NAMES.find((name) => spec.value[name] !== undefined);
  if (found) {
    const message = "cannot be used here: needs a storage driver of a cluster; use hostPath, local or nfs";
    return [spec.field(found).note(message, "unsupported")];
  }
  if (spec.value.volumeMode !== "Block") return [];
  return [spec.field("volumeMode").note("cannot be used here: only Filesystem can", "unsupported")];
}

/** Findings for what a claim gets here: a PersistentVolume that fits, or a Docker volume. */
export function findClaimNotes(claim: Field<PersistentVolumeClaim>): SupportNote[] {
  const spec = claim.field("spec");
  const notes: SupportNote[] = (["dataSource", "dataSourceRef"] as const)
    .filter((name) => spec.value[name])
    .map((name) =>
      spec.field(name).note("has no effect here: the claim begins empty, copy the data with kubelet-ts cp"),
    );
  if (spec.value.volumeMode === "Block") {
    notes.push(
      spec.field("volumeMode").note("has no effect here: the claim is a directory, mount it with volumeMounts"),
    );
  }
  if (spec.value.storageClassName) {
    const note =
      "no class makes volumes here: the claim gets a PersistentVolume of that class, or else a Docker volume";
    notes.push(spec.field("storageClassName").note(note));
  }
  return notes;
}
