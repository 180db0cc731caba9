import type { Clock } from "../base/model/clock.ts";
import { toApiTime } from "../base/text/api-time.ts";
import { isRecord } from "../base/text/json.ts";
import { badRequest, conflict, forbidden, notFound, type Status } from "./api-error.ts";
import type { ApiObject, ObjectStore } from "./object-store.ts";
import {
  keep,
  type ObjectWriter,
  type ObjectWriterDeps,
  type PendingStores,
  type WriteRequest,
} from "./object-writer.ts";
import {
  isKept,
  objectsOf,
  type ResourceDefinition,
  type ResourceRegistry,
  resourceId,
  type StoredObject,
  type Target,
} from "./resource-definition.ts";
import type { DiskCheck } from "./storage/manifest-directory.ts";

type Propagation = "Orphan" | "Background" | "Foreground";

/** Source: meta/v1 `DeleteOptions`. */
interface DeleteOptions {
  /** undefined: the object's own. */
  gracePeriodSeconds: number | undefined;
  propagation: Propagation;
  /** The client did not choose the propagation. */
  isByDefault?: boolean;
  preconditions: { uid?: string | undefined; resourceVersion?: string | undefined };
  dryRun: boolean;
}

/** A deletion without options. */
export const BACKGROUND: DeleteOptions = {
  gracePeriodSeconds: undefined,
  propagation: "Background",
  preconditions: {},
  dryRun: false,
};

interface ObjectDeleterDeps extends Pick<ObjectWriterDeps, "store" | "storage" | "clock" | "rules"> {
  registry: ResourceRegistry;
  writer: ObjectWriter;
  storing: PendingStores;
}

const FOREGROUND = "foregroundDeletion";
const ORPHAN = "orphan";

/** Whether an object waits for the end of what it owns. */
export const isInForeground = ({ object: { metadata } }: StoredObject): boolean =>
  metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(FOREGROUND) === true;

const DEFAULT_GRACE_SECONDS = 30;

/** Deletes objects and what they own. */
export class ObjectDeleter {
  readonly #deps: ObjectDeleterDeps;
  /** Objects that are gone before what they owned, with their owners, of which one is in foreground deletion. By uid. */
  readonly #outlived = new Map<string, ReadonlySet<string>>();
  /** Uids of owners and namespaces whose deletion began here: all that they wait for is in the store. */
  readonly #begun = new Set<string>();
  #hasSettled = false;

  constructor(deps: ObjectDeleterDeps) {
    this.#deps = deps;
    // The last object of a namespace, or of an owner, may be one that its controller deletes, such as a ReplicaSet.
    deps.store.subscribe(({ type, object }) => {
      if (type !== "DELETED") return;
      this.#settleNamespace(object.metadata.namespace);
      const { uid, ownerReferences = [] } = object.metadata;
      if (uid !== undefined) this.#begun.delete(uid);
      const owners = new Set(ownerReferences.flatMap((owner) => [owner.uid, ...(this.#outlived.get(owner.uid) ?? [])]));
      if (owners.size === 0) return;
      if (uid !== undefined && this.#ending(owners).length > 0) this.#outlived.set(uid, owners);
      this.#settleOwners(owners);
    });
  }

  /**
   * @returns the object while it is still there (Terminating), else a Status
   * @throws ApiError 403, 404, 409, 507
   */
  delete({ definition, namespace, name }: Target, options: DeleteOptions): ApiObject | Status {
    const { store, rules } = this.#deps;
    const live = store.get(resourceId(definition), namespace, name);
    if (!live) throw notFound(definition, name);
    for (const [what, wanted, found] of [
      ["UID", options.preconditions.uid, live.metadata.uid],
      ["ResourceVersion", options.preconditions.resourceVersion, live.metadata.resourceVersion],
    ]) {
      if (wanted === undefined || wanted === found) continue;
      const why = `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${found}`;
      throw conflict(definition, name, why);
    }
    const remove = rules.removalOf(definition, live, options.propagation === "Orphan" && !options.isByDefault);
    if (remove) {
      if (options.dryRun) return live;
      // Pods that another owner keeps outlive the Job of a CronJob.
      if (definition.kind === "Job") this.#deleteDependents(live, "Background");
      this.#deps.storing.note(remove());
      return live;
    }
    const isMade = rules.isMadeByController(definition, live);
    // A pod whose manifest was removed terminates already.
    const isEnding = definition.gracefulDeletion === true && live.metadata.deletionTimestamp !== undefined;
    const refusal = isMade ? undefined : rules.refusalOf(definition, live);
    if (definition.plural === "namespaces" && name === "default") {
      throw forbidden(definition, name, "this namespace may not be deleted");
    }
    if (refusal !== undefined && !isEnding) throw forbidden(definition, name, refusal);
    if (refusal !== undefined) return live;
    if (options.dryRun) return definition.gracefulDeletion ? live : deleted(definition, live);
    if (isMade) return this.#deleteMade(live, options);
    if (definition.gracefulDeletion) return this.#terminate(definition, live, options);
    const finalizers = this.#finalizersOf(definition, live, options.propagation);
    if (finalizers.length === 0) {
      this.finish(definition, live);
      return deleted(definition, live);
    }
    const terminating =
      live.metadata.deletionTimestamp && String(finalizers.sort()) === String(live.metadata.finalizers?.toSorted())
        ? live
        : this.#mark(definition, live, { finalizers, deletionGracePeriodSeconds: 0 }, 0);
    if (finalizers.includes(FOREGROUND)) {
      this.#deleteDependents(terminating, "Foreground");
      this.#settleOwners(new Set([live.metadata.uid ?? ""]));
    }
    if (definition.plural === "namespaces") {
      for (const it of this.#contentsOf(name)) {
        // Pods of a workload go with it: deleted alone they would be replaced.
        if (rules.isMadeByController(it.definition, it.object)) continue;
        this.#deleteQuietly(it.definition, it.object, "Background");
      }
      this.#settleNamespace(name);
    }
    return store.get(resourceId(definition), namespace, name) ?? deleted(definition, live);
  }

  #deleteMade(live: ApiObject, options: DeleteOptions): ApiObject {
    const deletionGracePeriodSeconds = graceSecondsOf(live, options);
    this.#deps.storing.note(this.#deps.rules.deleteMade(live, deletionGracePeriodSeconds));
    const endsAtMs = this.#deps.clock.now().getTime() + deletionGracePeriodSeconds * 1000;
    const deletionTimestamp = toApiTime(new Date(endsAtMs));
    return { ...live, metadata: { ...live.metadata, deletionTimestamp, deletionGracePeriodSeconds } };
  }

  /** Removes an object, and in the background what only it owned. */
  finish(definition: ResourceDefinition, object: ApiObject): void {
    const { store, storage, registry } = this.#deps;
    if (isKept(definition)) keep(() => storage.remove(definition, object));
    const { namespace, name, uid, finalizers = [] } = object.metadata;
    if (!store.remove(resourceId(definition), namespace, name)) return;
    if (uid !== undefined) {
      if (finalizers.includes(ORPHAN)) this.#orphanDependents(uid);
      else this.#deleteDependents(object, "Background");
    }
    // As the endpoints controller, also those that a client wrote.
    const endpoints = definition.kind === "Service" && store.get("endpoints", namespace, name);
    if (endpoints) this.#deleteQuietly(registry.get("endpoints")!, endpoints, "Background");
    this.#settleNamespace(namespace);
  }

  #finalizersOf(definition: ResourceDefinition, object: ApiObject, propagation: Propagation): string[] {
    const { metadata } = object;
    const { protection } = definition;
    const own = (metadata.finalizers ?? []).filter((it) => it !== FOREGROUND && it !== ORPHAN && it !== protection);
    if (protection !== undefined && this.#deps.rules.isInUse(definition, object)) own.push(protection);
    if (definition.plural === "namespaces") {
      return this.#contentsOf(metadata.name).length > 0 ? [...own, "kubernetes"] : own;
    }
    const dependents = metadata.uid === undefined ? [] : this.#dependentsOf(metadata.uid);
    const isKnown = definition.fate !== "objects" || this.#deps.rules.isMadeKnown();
    if (propagation === "Foreground" && (dependents.length > 0 || !isKnown)) return [...own, FOREGROUND];
    if (propagation === "Orphan" && !isKnown) return [...own, ORPHAN];
    if (propagation === "Orphan" && metadata.uid !== undefined && dependents.length > 0) {
      // A process that ends before all of them are released goes on with it at its next start.
      this.#mark(definition, object, { finalizers: [...own, ORPHAN], deletionGracePeriodSeconds: 0 }, 0);
      this.#orphanDependents(metadata.uid);
    }
    return own;
  }

  #terminate(definition: ResourceDefinition, live: ApiObject, options: DeleteOptions): ApiObject {
    const grace = graceSecondsOf(live, options);
    const before = live.metadata.deletionGracePeriodSeconds;
    // A second delete may shorten the grace, never lengthen it.
    const isNews = live.metadata.deletionTimestamp === undefined || (before !== undefined && grace < before);
    if (!isNews) return live;
    const object = this.#mark(definition, live, { deletionGracePeriodSeconds: grace }, grace);
    if (options.propagation === "Orphan" && live.metadata.uid) this.#orphanDependents(live.metadata.uid);
    return object;
  }

  #mark(
    definition: ResourceDefinition,
    live: ApiObject,
    changes: Partial<ApiObject["metadata"]>,
    graceSeconds: number,
  ): ApiObject {
    const deletionTimestamp = toApiTime(new Date(this.#deps.clock.now().getTime() + graceSeconds * 1000));
    const object: ApiObject = { ...live, metadata: { ...live.metadata, deletionTimestamp, ...changes } };
    if (definition.plural === "namespaces") object.status = { ...(live.status as object), phase: "Terminating" };
    if (live.metadata.uid !== undefined && this.#deps.rules.isMadeKnown()) this.#begun.add(live.metadata.uid);
    return this.#deps.writer.put(definition, object);
  }

  #dependentsOf(uid: string): StoredObject[] {
    return this.#all().filter(({ object }) => object.metadata.ownerReferences?.some((owner) => owner.uid === uid));
  }

  #all(): StoredObject[] {
    return objectsOf(this.#deps.store, this.#deps.registry.all());
  }

  /**
   * Deletes what the object owns; what another owner keeps loses the reference. Pods of a workload go with it: its controller
   * stops them. Source: `attemptToDeleteItem`.
   */
  #deleteDependents({ metadata: { uid } }: ApiObject, propagation: Propagation): void {
    if (uid === undefined) return;
    const { rules } = this.#deps;
    for (const dependent of this.#dependentsOf(uid)) {
      const { definition, object } = dependent;
      const isMade = rules.isMadeByController(definition, object);
      const isRefused = rules.refusalOf(definition, object) !== undefined;
      const others = new Set(object.metadata.ownerReferences?.map((owner) => owner.uid).filter((it) => it !== uid));
      const isKept = this.#all().some((it) => others.has(it.object.metadata.uid ?? "") && !isInForeground(it));
      if (isKept && (isMade || !isRefused)) this.disown(dependent, uid);
      if (isKept || isMade) continue;
      // The ReplicaSets of a Deployment go with it.
      if (isRefused) this.#deleteDependents(object, propagation);
      this.#deleteQuietly(definition, object, propagation);
    }
  }

  #orphanDependents(uid: string): void {
    for (const dependent of this.#dependentsOf(uid)) this.disown(dependent, uid);
  }

  /** Removes the references of an object to some owners. */
  disown({ definition, object }: StoredObject, ...uids: readonly (string | undefined)[]): void {
    const ownerReferences = object.metadata.ownerReferences?.filter((owner) => !uids.includes(owner.uid));
    this.#deps.writer.put(definition, { ...object, metadata: { ...object.metadata, ownerReferences } });
  }

  /**
   * Ends deletions of an earlier process, or from before all that exists was known, that wait for nothing: what they waited for
   * may have gone while no process saw it, or leaves them behind. To be called when all is known. Further calls do nothing.
   * @param refresh puts all that exists into the store
   */
  settle(refresh: () => void): void {
    if (this.#hasSettled) return;
    const isOrphaning = ({ deletionTimestamp, finalizers }: ApiObject["metadata"]) =>
      deletionTimestamp !== undefined && finalizers?.includes(ORPHAN);
    const orphaning = this.#all().filter(({ object }) => isOrphaning(object.metadata));
    if (orphaning.length > 0 || this.#ending().length > 0 || this.#endingNamespaces().length > 0) refresh();
    this.#hasSettled = true;
    for (const { definition, object } of orphaning) {
      const { uid = "", finalizers = [] } = object.metadata;
      this.#orphanDependents(uid);
      const rest = finalizers.filter((it) => it !== ORPHAN);
      this.#deps.writer.put(definition, { ...object, metadata: { ...object.metadata, finalizers: rest } });
    }
    this.#settleOwners();
    for (const { metadata } of this.#endingNamespaces()) this.#settleNamespace(metadata.name);
  }

  /** Removes owners in foreground deletion whose last dependent is gone. @param uids absent: all */
  #settleOwners(uids?: ReadonlySet<string>): void {
    for (const { definition, object } of this.#ending(uids)) {
      if (!this.#isKnown(object)) continue;
      const { uid = "", finalizers = [] } = object.metadata;
      const gone = [...this.#outlived].flatMap(([it, owners]) => (owners.has(uid) ? [it] : []));
      if ([uid, ...gone].some((it) => this.#dependentsOf(it).length > 0)) continue;
      for (const it of gone) this.#outlived.delete(it);
      const rest = finalizers.filter((it) => it !== FOREGROUND);
      const next = { ...object, metadata: { ...object.metadata, finalizers: rest } };
      this.#deps.writer.put(definition, next);
    }
  }

  /** Objects in foreground deletion. @param uids absent: all */
  #ending(uids?: ReadonlySet<string>): StoredObject[] {
    return this.#all().filter((it) => isInForeground(it) && (uids?.has(it.object.metadata.uid ?? "") ?? true));
  }

  #endingNamespaces(): ApiObject[] {
    return this.#deps.store.list("namespaces").filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  }

  /** Whether all that the deletion of this object waits for is in the store. */
  #isKnown({ metadata: { uid = "" } }: ApiObject): boolean {
    return this.#hasSettled || this.#begun.has(uid);
  }

  #contentsOf(namespace: string): StoredObject[] {
    const { registry, store } = this.#deps;
    const kinds = registry.all().filter(({ namespaced, fate }) => namespaced && fate !== "observed");
    return objectsOf(store, kinds, namespace);
  }

  /** Removes a namespace that is being deleted once it is empty. */
  #settleNamespace(name: string | undefined): void {
    const { registry, store } = this.#deps;
    const definition = registry.get("namespaces");
    const found = name !== undefined && definition ? store.get("namespaces", undefined, name) : undefined;
    if (!found?.metadata.deletionTimestamp || !definition || !this.#isKnown(found)) return;
    if (this.#contentsOf(found.metadata.name).length > 0) return;
    const rest = (found.metadata.finalizers ?? []).filter((it) => it !== "kubernetes");
    if (rest.length === 0) this.finish(definition, found);
  }

  /** Deletes an object, ignoring one that may not be deleted or is already gone. */
  #deleteQuietly(definition: ResourceDefinition, { metadata }: ApiObject, propagation: Propagation): void {
    const options = { ...BACKGROUND, propagation, preconditions: { uid: metadata.uid } };
    try {
      this.delete({ definition, namespace: metadata.namespace, name: metadata.name }, options);
    } catch {
      // It comes from a manifest of its own, or went with another owner.
    }
  }
}

function graceSecondsOf({ spec }: ApiObject, { gracePeriodSeconds }: DeleteOptions): number {
  const own = (spec as { terminationGracePeriodSeconds?: number } | undefined)?.terminationGracePeriodSeconds;
  return Math.max(0, gracePeriodSeconds ?? own ?? DEFAULT_GRACE_SECONDS);
}

/** Kinds whose deletion answers with the object. Source: `ReturnDeletedObject` of the registry. */
const RETURNED = ["PersistentVolume", "PersistentVolumeClaim", "PodTemplate", "StorageClass"];

function deleted({ group, plural, kind }: ResourceDefinition, object: ApiObject): ApiObject | Status {
  if (RETURNED.includes(kind)) return object;
  const { metadata } = object;
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name: metadata.name, ...(group && { group }), kind: plural, ...(metadata.uid && { uid: metadata.uid }) },
  };
}

/**
 * Options of a deletion, from the body and the query.
 * @param kind in the version of the request
 * @throws ApiError 400
 */
export function parseDeleteOptions(
  body: unknown,
  query: URLSearchParams,
  request: Pick<WriteRequest, "dryRun">,
  kind: Pick<ResourceDefinition, "orphansByDefault">,
): DeleteOptions {
  const options = isRecord(body) ? body : {};
  const graceText = query.get("gracePeriodSeconds");
  const grace = (options.gracePeriodSeconds ?? (graceText ? Number(graceText) : undefined)) as number | undefined;
  if (grace !== undefined && !Number.isInteger(grace)) throw badRequest("gracePeriodSeconds must be a whole number");
  if (grace !== undefined && grace < 0)
    throw badRequest("gracePeriodSeconds: Invalid value: must be greater than or equal to 0");
  const orphan = options.orphanDependents ?? (query.get("orphanDependents") || undefined);
  const older = orphan === undefined ? "" : String(orphan) === "true" ? "Orphan" : "Background";
  const policy = options.propagationPolicy ?? query.get("propagationPolicy") ?? older;
  const propagation = policy === "" ? (kind.orphansByDefault ? "Orphan" : "Background") : policy;
  if (propagation !== "Orphan" && propagation !== "Background" && propagation !== "Foreground") {
    throw badRequest(
      `propagationPolicy: Unsupported value: ${JSON.stringify(policy)}: supported values: "Foreground", "Background", "Orphan"`,
    );
  }
  const { uid, resourceVersion } = isRecord(options.preconditions) ? options.preconditions : {};
  const toText = (value: unknown) => (typeof value === "string" ? value : undefined);
  return {
    gracePeriodSeconds: grace,
    propagation,
    isByDefault: policy === "",
    preconditions: { uid: toText(uid), resourceVersion: toText(resourceVersion) },
    dryRun: request.dryRun || (Array.isArray(options.dryRun) && options.dryRun.includes("All")),
  };
}

interface StorageProtectionDeps {
  store: Pick<ObjectStore, "list">;
  registry: Pick<ResourceRegistry, "all">;
  writer: Pick<ObjectWriter, "put">;
  disk: Pick<DiskCheck, "wait">;
  clock: Pick<Clock, "schedule">;
  isInUse: (definition: ResourceDefinition, object: ApiObject) => boolean;
}

const RETRY_MS = 10_000;

/**
 * Ends the deletion of claims and PersistentVolumes once nothing uses them: removes their protection, and with the last
 * finalizer the object goes. Source: `pkg/controller/volume/pvcprotection`, `pvprotection`.
 */
export class StorageProtection {
  readonly #deps: StorageProtectionDeps;
  #isReleasing = false;
  #isStopped = false;
  #cancelRetry: (() => void) | undefined;

  constructor(deps: StorageProtectionDeps) {
    this.#deps = deps;
  }

  /** Something that may have used a claim or a volume has changed. */
  check(): void {
    if (this.#isReleasing || this.#isStopped || this.#unused().length === 0) return;
    this.#isReleasing = true;
    void this.#release();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry?.();
  }

  async #release(): Promise<void> {
    const { writer, disk, clock } = this.#deps;
    try {
      await disk.wait();
      for (const { definition, object } of this.#isStopped ? [] : this.#unused()) {
        const finalizers = object.metadata.finalizers?.filter((it) => it !== definition.protection);
        writer.put(definition, { ...object, metadata: { ...object.metadata, finalizers } });
      }
    } catch {
      // The disk is full or does not answer.
      this.#cancelRetry?.();
      if (!this.#isStopped) this.#cancelRetry = clock.schedule(RETRY_MS, () => this.check());
    } finally {
      this.#isReleasing = false;
    }
  }

  #unused(): StoredObject[] {
    const { store, registry, isInUse } = this.#deps;
    const kinds = registry.all().filter(({ protection }) => protection !== undefined);
    return objectsOf(store, kinds).filter(
      ({ definition, object }) =>
        object.metadata.deletionTimestamp !== undefined &&
        object.metadata.finalizers?.includes(definition.protection ?? "") === true &&
        !isInUse(definition, object),
    );
  }
}

interface GarbageCollectorDeps {
  store: ObjectStore;
  registry: Pick<ResourceRegistry, "all" | "findKind">;
  deleter: Pick<ObjectDeleter, "delete" | "disown">;
  disk: Pick<DiskCheck, "wait">;
  clock: Pick<Clock, "schedule">;
  /** Whether an object was submitted: those of files and controllers are not collected. */
  isOwn: (definition: ResourceDefinition, object: ApiObject) => boolean;
  /** Brings the objects of files and controllers up to date. @returns false while they are not all known */
  refresh: () => boolean;
}

const CHECK_MS = 5_000;

/**
 * Deletes submitted objects none of whose owners exists any more, or ever did; if one does, the references to the others go.
 * An owner is missing when its kind is
 * served here and two checks in a row found no object with its UID. Source: `pkg/controller/garbagecollector`.
 */
export class GarbageCollector {
  readonly #deps: GarbageCollectorDeps;
  /** Findings of the last check: UIDs of objects, with those of the owners that they miss. */
  #found: ReadonlySet<string> = new Set();
  #cancel: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #isStopped = false;

  constructor(deps: GarbageCollectorDeps) {
    this.#deps = deps;
  }

  start(): void {
    // An object that is gone may have been the owner of any. Which one is found out once for many changes.
    this.#unsubscribe = this.#deps.store.subscribe(({ type, object }) => {
      if (type === "DELETED" || object.metadata.ownerReferences) this.#plan();
    });
    this.#plan();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
    this.#unsubscribe?.();
  }

  #plan(): void {
    if (this.#isStopped) return;
    this.#cancel ??= this.#deps.clock.schedule(CHECK_MS, () => void this.#check());
  }

  async #check(): Promise<void> {
    const { deleter, disk, refresh } = this.#deps;
    const orphans = this.#owned().length === 0 ? [] : refresh() ? this.#orphans() : undefined;
    const doomed = orphans?.filter(({ key }) => this.#found.has(key)) ?? [];
    this.#found = new Set(orphans?.map(({ key }) => key));
    try {
      if (doomed.length > 0) await disk.wait();
      for (const { orphan, gone, isKept } of this.#isStopped ? [] : doomed) {
        const { definition, object } = orphan;
        const { namespace, name, uid } = object.metadata;
        if (isKept) deleter.disown(orphan, ...gone);
        else deleter.delete({ definition, namespace, name }, { ...BACKGROUND, preconditions: { uid } });
      }
    } catch {
      // The disk does not answer, or the object is gone: the next check finds out.
    }
    this.#cancel = undefined;
    if (!orphans || orphans.length > 0) this.#plan();
  }

  /** Submitted objects that name owners. */
  #owned(): StoredObject[] {
    const { store, registry, isOwn } = this.#deps;
    return objectsOf(store, registry.all().filter(isKept)).filter(
      ({ definition, object }) =>
        (object.metadata.ownerReferences ?? []).length > 0 &&
        !object.metadata.deletionTimestamp &&
        isOwn(definition, object),
    );
  }

  #orphans() {
    const { store, registry } = this.#deps;
    const uids = new Set(objectsOf(store, registry.all()).map(({ object }) => object.metadata.uid));
    return this.#owned().flatMap((orphan) => {
      const { uid, ownerReferences: owners = [] } = orphan.object.metadata;
      const gone = owners.filter(({ apiVersion = "", kind = "", uid: owner = "" }) => {
        const fate = registry.findKind(apiVersion, kind)?.fate;
        return fate !== undefined && fate !== "node" && fate !== "observed" && !uids.has(owner);
      });
      const found = { orphan, gone: gone.map((owner) => owner.uid), isKept: gone.length < owners.length };
      return gone.length > 0 ? [{ ...found, key: `${uid} ${found.gone.join()}` }] : [];
    });
  }
}
