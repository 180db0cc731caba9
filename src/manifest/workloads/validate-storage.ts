import type { PersistentVolume } from "../../base/api/persistent-volume.ts";
import { CLUSTER_VOLUME_NAMES } from "../../base/api/volume-drivers.ts";
import type { PersistentVolumeClaim } from "../../base/api/workload.ts";
import type { FieldPath } from "../field-path.ts";
import type { SupportNote } from "../support/find-unsupported.ts";
import { FieldErrors } from "../validate/field-errors.ts";
import { validateMetadata } from "../validate/metadata.ts";
import { checkDnsSubdomain } from "../validate/names.ts";
import { validateLabelSelector, validateNodeSelector } from "../validate/scheduling.ts";

const VOLUME_MODES = ["Block", "Filesystem"];
const ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

function validateAccessModes(modes: readonly string[] | undefined, path: FieldPath, errors: FieldErrors): void {
  if (!modes || modes.length === 0) return errors.required(path, "must hold at least one access mode");
  for (const [index, mode] of modes.entries()) {
    if (!ACCESS_MODES.includes(mode)) errors.notSupported(path, mode, ACCESS_MODES, { at: path.index(index) });
  }
  const isOther = (mode: string) => mode !== "ReadWriteOncePod" && ACCESS_MODES.includes(mode);
  if (modes.includes("ReadWriteOncePod") && modes.some(isOther)) {
    errors.forbidden(path, "ReadWriteOncePod excludes other modes");
  }
}

/** Source: core validation `ValidatePersistentVolumeClaim`. */
export function validateClaim({ metadata, spec }: PersistentVolumeClaim, path: FieldPath): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  validateClaimSpec(spec, path.child("spec"), errors);
  return errors;
}

/** Source: core validation `ValidatePersistentVolumeClaimSpec`. */
export function validateClaimSpec(spec: PersistentVolumeClaim["spec"], specPath: FieldPath, errors: FieldErrors): void {
  validateAccessModes(spec.accessModes, specPath.child("accessModes"), errors);
  if (spec.selector) validateLabelSelector(spec.selector, specPath.child("selector"), errors);
  const storage = spec.resources.requests?.storage;
  const storagePath = specPath.child("resources").key("storage");
  const at = { at: specPath.child("resources").child("requests").key("storage") };
  if (storage === undefined) errors.required(storagePath, "is required, e.g. requests: {storage: 1Gi}", at);
  else if (!isPositive(storage)) errors.invalid(storagePath, storage, "must be greater than zero", at);
  validateVolumeMode(spec.volumeMode, specPath, errors);
  validateClassName(spec.storageClassName, specPath, errors);
  for (const name of ["dataSource", "dataSourceRef"] as const) {
    const source = spec[name];
    if (!source) continue;
    const path = specPath.child(name);
    if (source.name === "") errors.required(path.child("name"));
    if (source.kind === "") errors.required(path.child("kind"));
    if ((source.apiGroup ?? "") === "" && source.kind !== "PersistentVolumeClaim") {
      errors.invalid(path, source.kind, "must be a PersistentVolumeClaim, or have an apiGroup");
    }
  }
}

/** @param storage a canonical quantity */
const isPositive = (storage: string) => !storage.startsWith("-") && !/^0\D*$/.test(storage);

function validateVolumeMode(mode: string, specPath: FieldPath, errors: FieldErrors): void {
  if (!VOLUME_MODES.includes(mode)) errors.notSupported(specPath.child("volumeMode"), mode, VOLUME_MODES);
}

function validateClassName(name: string | undefined, specPath: FieldPath, errors: FieldErrors): void {
  if (name) errors.invalidAll(specPath.child("storageClassName"), name, checkDnsSubdomain(name));
}

const SOURCES_HERE = ["hostPath", "local", "nfs"] as const;
/** Source: core validation `ValidatePersistentVolume`. */
export function validatePersistentVolume({ metadata, spec }: PersistentVolume, path: FieldPath): FieldErrors {
  const errors = new FieldErrors();
  // Persistent volumes are in no namespace.
  validateMetadata({ ...metadata, namespace: "default" }, path.child("metadata"), errors);
  const specPath = path.child("spec");
  validateAccessModes(spec.accessModes, specPath.child("accessModes"), errors);
  const storage = spec.capacity?.storage;
  const capacityPath = specPath.child("capacity");
  if (storage === undefined) errors.required(capacityPath, "is required, e.g. capacity: {storage: 1Gi}");
  else if (!isPositive(storage)) errors.invalid(capacityPath.child("storage"), storage, "must be greater than zero");
  const sources = [...SOURCES_HERE, ...CLUSTER_VOLUME_NAMES].filter((name) => spec[name] !== undefined);
  if (sources.length === 0) errors.required(specPath, "must have a volume type such as hostPath");
  for (const name of sources.slice(1)) {
    errors.forbidden(specPath.child(name), `a volume has one type, and this one is ${sources[0]} already`);
  }
  for (const name of ["hostPath", "local"] as const) {
    const source = spec[name];
    const at = specPath.child(name).child("path");
    if (source && source.path === "") errors.required(at);
    else if (source?.path.split("/").includes("..")) errors.invalid(at, source.path, "must not contain '..'");
  }
  validateNodeAffinity(spec, specPath, errors);
  if (spec.nfs && (spec.nfs.server === "" || !spec.nfs.path.startsWith("/"))) {
    errors.invalid(specPath.child("nfs").child("path"), spec.nfs.path, "needs a server and an absolute path");
  }
  const policies = ["Delete", "Recycle", "Retain"];
  if (!policies.includes(spec.persistentVolumeReclaimPolicy)) {
    const at = specPath.child("persistentVolumeReclaimPolicy");
    errors.notSupported(at, spec.persistentVolumeReclaimPolicy, policies);
  }
  const isRoot = spec.hostPath !== undefined && /^\/+$/.test(spec.hostPath.path);
  if (isRoot && spec.persistentVolumeReclaimPolicy === "Recycle") {
    errors.forbidden(specPath.child("persistentVolumeReclaimPolicy"), "must not be Recycle for the hostPath /");
  }
  validateVolumeMode(spec.volumeMode, specPath, errors);
  validateClassName(spec.storageClassName, specPath, errors);
  return errors;
}

function validateNodeAffinity(spec: PersistentVolume["spec"], specPath: FieldPath, errors: FieldErrors): void {
  const path = specPath.child("nodeAffinity");
  const { nodeAffinity, local } = spec;
  if (!nodeAffinity) {
    if (local) errors.required(path, "is required with local: use hostPath, which needs none");
    return;
  }
  if (!nodeAffinity.required) return errors.required(path.child("required"));
  validateNodeSelector(nodeAffinity.required, path.child("required"), errors);
}

/** Findings for such volumes. */
export function findVolumeNotes({ spec }: PersistentVolume, path: FieldPath): SupportNote[] {
  const found = CLUSTER_VOLUME_NAMES.find((name) => spec[name] !== undefined);
  const specPath = path.child("spec");
  if (found) {
    const message = "cannot be used here: needs a storage driver of a cluster; use hostPath, local or nfs";
    return [{ code: "unsupported", path: specPath.child(found), message }];
  }
  return spec.volumeMode === "Block"
    ? [{ code: "unsupported", path: specPath.child("volumeMode"), message: "cannot be used here: only Filesystem can" }]
    : [];
}
