import { matchesSelector, type ObjectMeta } from "../base/api/meta.ts";
import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { Container, Pod, PodSpec, Volume } from "../base/api/pod.ts";
import { compareQuantities, parseQuantity, quantityToWhole, ZERO_QUANTITY } from "../base/api/quantity.ts";
import type { PersistentVolumeClaim } from "../base/api/workload.ts";
import { claimVolumeOf } from "../base/model/claim-volume.ts";
import type { DesiredObject, DesiredWorkload, WorkloadObject } from "../base/model/desired-state.ts";
import { mapContainers, podFullName } from "../base/model/pod.ts";
import { hex32 } from "../base/text/json.ts";
import type { PreparedState } from "./prepare-state.ts";
import type { Bindings, ClaimRecord, ClaimRecords, WorkloadRecord, WorkloadRecords } from "./workload-records.ts";

type Claim = Pick<PersistentVolumeClaim, "metadata" | "spec">;

const storageOf = (text: string | undefined) => (text && parseQuantity(text)) || ZERO_QUANTITY;

/**
 * Binds claims to PersistentVolumes, immediately and permanently; a claim without a fitting volume gets a Docker volume, one
 * that names a volume waits for it. Pure.
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
    const free = volumes.filter(({ metadata }) => !taken.has(metadata.name ?? ""));
    const volume = findVolume(claim, free);
    if (!volume && namesVolume(claim)) continue;
    bindings[name] = volume?.metadata.name ?? "";
    if (volume) taken.add(bindings[name]);
  }
  return bindings;
}

/** The API shows the Docker volume of a claim as its volume: a claim that was exported names that. */
const namesVolume = ({ metadata: { namespace = "default", name = "" }, spec: { volumeName = "" } }: Claim): boolean =>
  volumeName !== "" && volumeName !== claimVolumeOf(namespace, name);

function findVolume(claim: PersistentVolumeClaim, volumes: readonly PersistentVolume[]): PersistentVolume | undefined {
  const { volumeName, storageClassName = "", accessModes = [], selector, resources } = claim.spec;
  const request = storageOf(resources.requests?.storage);
  const size = ({ spec }: PersistentVolume) => storageOf(spec.capacity?.storage);
  const isMeant = ({ spec: { claimRef } }: PersistentVolume) =>
    claimRef !== undefined && podFullName(claimRef) === podFullName(claim.metadata);
  const isFree = (volume: PersistentVolume) => volume.spec.claimRef === undefined || isMeant(volume);
  if (volumeName) return volumes.find((volume) => volume.metadata.name === volumeName && isFree(volume));
  const fits = (volume: PersistentVolume) =>
    isFree(volume) &&
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
function retainBindings(
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
  return { ...mapContainers(spec, narrow), volumes: [...volumes] };
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

/** Records claims of StatefulSets and binds all claims. */
export class ClaimBinder {
  readonly #records: WorkloadRecords;
  /** Claims of the manifests. */
  #written: readonly PersistentVolumeClaim[] = [];
  /** PersistentVolumes by name: those of the manifests, and removed ones that a claim is bound to. */
  #volumes: ReadonlyMap<string, PersistentVolume> = new Map();
  /** Why claims are not bound, by `namespace/name`. */
  problems: ReadonlyMap<string, string> = new Map();

  constructor(records: WorkloadRecords) {
    this.#records = records;
  }

  /**
   * Takes over a state of the sources and the pods that workloads have now.
   * @param isComplete a claim that is not in it is deleted
   * @returns whether a claim was made, bound or is gone
   */
  update(prepared: PreparedState, isComplete: boolean, isNewState: boolean): boolean {
    const records = this.#records;
    this.#written = prepared.claims;
    const made = findNewClaims(records.claims, records.entries());
    if (!isNewState && made.length === 0) return false;
    const before = records.bindings;
    records.claims = { ...records.claims, ...Object.fromEntries(made) };
    const claims = [...this.#written, ...this.#made()];
    // A claim that is only unknown keeps its volume.
    const known = isComplete ? retainBindings(before, claims, this.#pods(prepared)) : before;
    const bindings = bindClaims(claims, [...prepared.volumes.values()], known);
    const unbound = claims.filter(({ metadata }) => bindings[podFullName(metadata)] === undefined);
    const describe = ({ metadata: { name }, spec: { volumeName } }: Claim) =>
      `claim "${name}": volume "${volumeName}" not found, or already bound to a different claim`;
    this.problems = new Map(unbound.map((claim) => [podFullName(claim.metadata), describe(claim)]));
    const bound = new Set(Object.values(bindings));
    const kept = Object.entries(records.volumes).filter(([name]) => bound.has(name));
    this.#volumes = new Map([...kept, ...prepared.volumes]);
    const volumes = Object.fromEntries([...this.#volumes].filter(([name]) => bound.has(name)));
    const isChanged =
      made.length > 0 ||
      JSON.stringify(bindings) !== JSON.stringify(before) ||
      JSON.stringify(volumes) !== JSON.stringify(records.volumes);
    records.bindings = bindings;
    records.volumes = volumes;
    return isChanged;
  }

  /** Claims of StatefulSets that no manifest describes. */
  derived(): WorkloadObject[] {
    return this.#made().map((claim) => ({ ...claim, status: this.#statusOfClaim(claim) ?? {} }));
  }

  /** The PersistentVolume that a claim is bound to. */
  volumeOf(fullName: string): PersistentVolume | undefined {
    return this.#volumes.get(this.#records.bindings[fullName] ?? "");
  }

  /** Whether this is the claim of a StatefulSet, and no pod uses it. */
  isFree(fullName: string): boolean {
    return this.#records.claims[fullName] !== undefined && this.userOf(fullName) === undefined;
  }

  /** Name of the pod of a StatefulSet that uses the claim it made, which therefore cannot be deleted. */
  userOf(fullName: string): string | undefined {
    if (!this.#records.claims[fullName]) return undefined;
    for (const { desired, record } of this.#records.entries()) {
      if (desired.kind !== "StatefulSet") continue;
      const { metadata, spec } = desired.object;
      for (const template of spec.volumeClaimTemplates ?? []) {
        const user = record.pods.find(
          ({ name }) => `${metadata.namespace ?? "default"}/${template.metadata.name}-${name}` === fullName,
        );
        if (user) return user.name;
      }
    }
    return undefined;
  }

  /** The status of a claim or a PersistentVolume; undefined while nothing is known of it. */
  statusOf(kind: "PersistentVolumeClaim" | "PersistentVolume", object: { metadata: ObjectMeta; spec?: unknown }) {
    return kind === "PersistentVolume"
      ? this.#statusOfVolume(object.metadata)
      : this.#statusOfClaim(object as PersistentVolumeClaim);
  }

  /** Source: core/v1 `PersistentVolumeClaimStatus`, with the volume, which the API shows as part of the spec. */
  #statusOfClaim({ metadata, spec }: Claim) {
    const { namespace = "default", name = "" } = metadata;
    const bound = this.#records.bindings[`${namespace}/${name}`];
    if (bound === undefined) return this.problems.has(`${namespace}/${name}`) ? { phase: "Pending" } : undefined;
    const volume = this.#volumes.get(bound);
    const accessModes = volume?.spec.accessModes ?? spec.accessModes;
    const storage = volume?.spec.capacity?.storage ?? spec.resources.requests?.storage;
    return {
      phase: "Bound",
      ...(accessModes && { accessModes: [...accessModes] }),
      ...(storage !== undefined && { capacity: { storage } }),
      volume: { name: bound || claimVolumeOf(namespace, name), isDockerVolume: bound === "" },
    };
  }

  /** Source: core/v1 `PersistentVolumeStatus`, with the claim, which the API shows as part of the spec. */
  #statusOfVolume({ name: volumeName }: ObjectMeta) {
    const { bindings } = this.#records;
    const key = Object.keys(bindings).find((claim) => bindings[claim] === volumeName);
    if (key === undefined) return { phase: "Available" };
    const [namespace = "", name = ""] = key.split("/");
    return { phase: "Bound", claim: { namespace, name } };
  }

  /** Claims of StatefulSets that no manifest describes. */
  #made(): (PersistentVolumeClaim & WorkloadObject)[] {
    const written = new Set(this.#written.map(({ metadata }) => podFullName(metadata)));
    return toClaims(this.#records.claims).filter(({ metadata }) => !written.has(podFullName(metadata)));
  }

  *#pods(prepared: PreparedState): Iterable<{ namespace: string | undefined; spec: Pick<PodSpec, "volumes"> }> {
    for (const { pod } of prepared.pods) yield { namespace: pod.metadata.namespace, spec: pod.spec };
    for (const { kind, object } of prepared.workloads) {
      const { template } = kind === "CronJob" ? object.spec.jobTemplate.spec : object.spec;
      yield { namespace: object.metadata.namespace, spec: template.spec };
    }
  }
}

/** Claims of the pods that StatefulSets have now and that are not known yet, by `namespace/name`. Pure. */
function findNewClaims(
  known: ClaimRecords,
  workloads: Iterable<{ desired: DesiredWorkload; record: WorkloadRecord }>,
): [key: string, claim: ClaimRecord][] {
  const found: [key: string, claim: ClaimRecord][] = [];
  for (const { desired, record } of workloads) {
    if (desired.kind !== "StatefulSet") continue;
    const { metadata, spec } = desired.object;
    const labels = spec.selector?.matchLabels;
    for (const template of spec.volumeClaimTemplates ?? []) {
      for (const pod of record.pods) {
        const name = `${template.metadata.name}-${pod.name}`;
        const key = `${metadata.namespace ?? "default"}/${name}`;
        if (pod.leaving || known[key]) continue;
        const uid = hex32(`${pod.uid}\n${name}`);
        found.push([key, { uid, createdAt: pod.createdAt, ...(labels && { labels }), spec: template.spec }]);
      }
    }
  }
  return found;
}

/** The claims of StatefulSets as objects. Pure. */
const toClaims = (records: ClaimRecords): (PersistentVolumeClaim & WorkloadObject)[] =>
  Object.entries(records).map(([key, { uid, createdAt, labels, spec }]) => {
    const [namespace, name] = key.split("/");
    const metadata = { name, namespace, uid, creationTimestamp: createdAt, ...(labels && { labels }) };
    return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec } as PersistentVolumeClaim &
      WorkloadObject;
  });
