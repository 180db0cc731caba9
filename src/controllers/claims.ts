import type { ObjectMeta } from "../base/api/meta.ts";
import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { Container, Pod, PodSpec, Volume } from "../base/api/pod.ts";
import { compareQuantities, parseQuantity, quantityToWhole, ZERO_QUANTITY } from "../base/api/quantity.ts";
import { matchesSelector } from "../base/api/selectors.ts";
import type { PersistentVolumeClaim } from "../base/api/workload.ts";
import type { DesiredObject } from "../base/model/desired-object.ts";
import { podFullName } from "../base/model/identity.ts";

/** Name of the PersistentVolume of each claim, by `namespace/name`; "" for a Docker volume. */
export type Bindings = Readonly<Record<string, string>>;

/** A claim that a StatefulSet made. */
export interface ClaimRecord {
  uid: string;
  /** RFC 3339, whole seconds. */
  createdAt: string;
  labels?: Record<string, string>;
  spec: PersistentVolumeClaim["spec"];
}

/** Claims of StatefulSets by `namespace/name`, also of those that are gone or have fewer pods now. */
export type ClaimRecords = Readonly<Record<string, ClaimRecord>>;

const storageOf = (text: string | undefined) => (text && parseQuantity(text)) || ZERO_QUANTITY;

/**
 * Binds claims to PersistentVolumes, immediately and permanently; a claim without a fitting volume gets a Docker volume. Pure.
 * Source: `pkg/controller/volume/persistentvolume` (findBestMatchForClaim): the smallest volume that fits.
 * @param known bindings that hold, also those of claims that are gone and that pods still use
 */
export function bindClaims(
  claims: readonly PersistentVolumeClaim[],
  volumes: readonly PersistentVolume[],
  known: Bindings,
): Bindings {
  const bindings: Record<string, string> = { ...known };
  const taken = new Set(Object.values(bindings));
  for (const claim of claims) {
    const name = podFullName(claim.metadata);
    if (bindings[name] !== undefined) continue;
    const volume = findVolume(
      claim,
      volumes.filter(({ metadata }) => !taken.has(metadata.name ?? "")),
    );
    bindings[name] = volume?.metadata.name ?? "";
    if (volume) taken.add(bindings[name]);
  }
  return bindings;
}

function findVolume(claim: PersistentVolumeClaim, volumes: readonly PersistentVolume[]): PersistentVolume | undefined {
  const { volumeName, storageClassName = "", accessModes = [], selector, resources } = claim.spec;
  if (volumeName !== undefined) return volumes.find(({ metadata }) => metadata.name === volumeName);
  const request = storageOf(resources.requests?.storage);
  const size = ({ spec }: PersistentVolume) => storageOf(spec.capacity?.storage);
  const isMeant = ({ spec: { claimRef } }: PersistentVolume) =>
    claimRef !== undefined && podFullName(claimRef) === podFullName(claim.metadata);
  const fits = (volume: PersistentVolume) =>
    (volume.spec.claimRef === undefined || isMeant(volume)) &&
    (volume.spec.storageClassName ?? "") === storageClassName &&
    accessModes.every((mode) => volume.spec.accessModes?.includes(mode)) &&
    compareQuantities(size(volume), request) >= 0 &&
    (!selector || matchesSelector(selector, volume.metadata.labels));
  const fitting = volumes.filter(fits).sort((a, b) => compareQuantities(size(a), size(b)));
  return fitting.find(isMeant) ?? fitting[0];
}

/**
 * The bindings of claims that exist or that pods use: a claim that is deleted while a pod mounts it stays bound, because
 * the pod would get another, empty volume. Pure. Source: `pkg/controller/volume/pvcprotection`.
 * @param pods with the namespace of their claims
 */
export function retainBindings(
  known: Bindings,
  claims: readonly PersistentVolumeClaim[],
  pods: Iterable<{ namespace: string | undefined; spec: Pick<PodSpec, "volumes"> }>,
): Bindings {
  const kept = new Set<string>(claims.map(({ metadata }) => podFullName(metadata)));
  for (const { namespace = "default", spec } of pods) {
    for (const { persistentVolumeClaim: claim } of spec.volumes ?? []) {
      if (claim) kept.add(`${namespace}/${claim.claimName}`);
    }
  }
  return Object.fromEntries(Object.entries(known).filter(([claim]) => kept.has(claim)));
}

/**
 * A pod with the volumes of its bound claims in place of the claims; the same pod when there are none.
 * @param volumeOf the volume of a claim, by `namespace/name`
 */
export function resolveClaims(pod: Pod, volumeOf: (claim: string) => PersistentVolume | undefined): Pod {
  const namespace = pod.metadata.namespace ?? "default";
  let hasChanged = false;
  const resolved = pod.spec.volumes?.map((volume): Volume => {
    const claim = volume.persistentVolumeClaim;
    const bound = claim && volumeOf(`${namespace}/${claim.claimName}`);
    const source = bound && toVolumeSource(bound, claim.readOnly ?? false);
    if (!source) return volume;
    hasChanged = true;
    return { name: volume.name, ...source };
  });
  return hasChanged && resolved ? { ...pod, spec: withClaimVolumes(pod.spec, resolved) } : pod;
}

/** Names of the claims that a resolved pod has volumes in place of, by the name of the volume. */
export function replacedClaims(original: Pod, resolved: Pod): Record<string, string> {
  const kept = new Set(resolved.spec.volumes?.filter((one) => one.persistentVolumeClaim).map(({ name }) => name));
  return Object.fromEntries(
    (original.spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim: claim }) =>
      claim && !kept.has(name) ? [[name, claim.claimName]] : [],
    ),
  );
}

/** Whether a pod has a volume of a claim of its namespace. @param replaced see {@link replacedClaims} */
export function usesClaim(
  { metadata, spec }: Pick<Pod, "metadata" | "spec">,
  replaced: Readonly<Record<string, string>> | undefined,
  { namespace = "default", name }: ObjectMeta,
): boolean {
  if ((metadata.namespace ?? "default") !== namespace) return false;
  const isMounted = spec.volumes?.some(({ persistentVolumeClaim: claim }) => claim?.claimName === name) === true;
  return isMounted || Object.values(replaced ?? {}).some((claim) => claim === name);
}

/** The spec with volumes in place of claims, read-only mounts for claims that are read-only. */
function withClaimVolumes(spec: PodSpec, volumes: readonly Volume[]): PodSpec {
  const readOnly = new Set(
    (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim: claim }) => (claim?.readOnly ? [name] : [])),
  );
  if (readOnly.size === 0) return { ...spec, volumes: [...volumes] };
  const narrow = <T extends Pick<Container, "volumeMounts">>(container: T): T =>
    container.volumeMounts?.some(({ name }) => readOnly.has(name))
      ? {
          ...container,
          volumeMounts: container.volumeMounts.map((one) =>
            readOnly.has(one.name) ? { ...one, readOnly: true } : one,
          ),
        }
      : container;
  const { initContainers, containers } = spec;
  return {
    ...spec,
    volumes: [...volumes],
    ...(initContainers && { initContainers: initContainers.map(narrow) }),
    containers: containers.map(narrow),
  };
}

/** The volume of a pod that mounts a PersistentVolume; undefined for kinds that kubelet-ts does not mount. */
export function toVolumeSource({ spec }: PersistentVolume, readOnly: boolean): Omit<Volume, "name"> | undefined {
  const options = spec.mountOptions?.length ? { mountOptions: spec.mountOptions } : {};
  if (spec.hostPath) return { hostPath: { ...spec.hostPath, type: spec.hostPath.type || "DirectoryOrCreate" } };
  if (spec.local) return { hostPath: { path: spec.local.path, type: "Directory", local: { readOnly, ...options } } };
  if (spec.nfs) return { nfs: { ...spec.nfs, ...(readOnly && { readOnly }), ...options } };
  return undefined;
}

/** Storage that a claim of a pod requests, by its document or the template of its StatefulSet. Unit: bytes. Pure. */
export function computeClaimBytes(
  objects: readonly DesiredObject[],
  { metadata }: Pod,
  claimName: string,
): number | undefined {
  const isHere = (object: { metadata: ObjectMeta }) =>
    (object.metadata.namespace ?? "default") === (metadata.namespace ?? "default");
  const owners = new Set(metadata.ownerReferences?.map(({ kind, name }) => `${kind} ${name}`));
  for (const { kind, object } of objects) {
    if (!isHere(object)) continue;
    if (kind === "PersistentVolumeClaim" && object.metadata.name === claimName) return bytesOf(object);
    if (kind !== "StatefulSet" || !owners.has(`StatefulSet ${object.metadata.name}`)) continue;
    const templates = object.spec.volumeClaimTemplates ?? [];
    const found = templates.find((template) => `${template.metadata.name}-${metadata.name}` === claimName);
    if (found) return bytesOf(found);
  }
  return undefined;
}

function bytesOf({ spec }: Pick<PersistentVolumeClaim, "spec">): number | undefined {
  const storage = spec.resources.requests?.storage;
  return storage === undefined ? undefined : quantityToWhole(storage);
}
