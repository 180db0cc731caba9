import { join } from "node:path";
import { REVISION_ANNOTATION } from "../../base/api/annotations.ts";
import type { ConfigMap, Secret } from "../../base/api/config-objects.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { FileSlot } from "../../base/concurrency/worker-pool.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { DesiredObject, DesiredPod } from "../../base/model/desired-state.ts";
import type { Logger } from "../../base/model/logger.ts";
import { MadeOfEach } from "../../base/model/memoized.ts";
import { canonicalJson } from "../../base/text/json.ts";
import { CONFIG_SOURCE_ANNOTATION, computeRevision } from "../../manifest/defaults.ts";
import type { FeedSource } from "../../sources/checkpoint-store.ts";
import { PathWatch } from "../../sources/path-watch.ts";
import type { SourceSet, SourceStatus } from "../../sources/source-set.ts";
import { ensureNamespace } from "../kinds/node-kinds.ts";
import { withoutEphemeralContainers } from "../kinds/pod-kind.ts";
import { isInForeground } from "../object-deleter.ts";
import { type ApiObject, keyOf, type ObjectStore, type ResourceId } from "../object-store.ts";
import type { ObjectStorage } from "../object-writer.ts";
import {
  type Fate,
  isKept,
  objectsOf,
  type ResourceDefinition,
  type ResourceRegistry,
  resourceId,
  type StoredObject,
} from "../resource-definition.ts";
import type { ManifestDirectory, StoredFile } from "./manifest-directory.ts";

interface SubmittedObjectsDeps {
  store: ObjectStore;
  registry: ResourceRegistry;
  directory: ManifestDirectory;
  slot: FileSlot;
  nodeName: string;
  clock: Clock;
  logger: Logger;
}

/** Source of submitted pods, in the labels of their containers. */
export const SOURCE_ID = "local-api";

/** An object in the form in which the kubelet got it. */
interface Fed {
  object: ApiObject;
  desired: DesiredPod | DesiredObject | ConfigMap | Secret;
}

/** After an event the directory must not change for this time before it is read. */
const DEBOUNCE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;

/**
 * The objects clients submitted, as a source of pods, ConfigMaps and Secrets. The store is authoritative; the directory is
 * read at the start, again after another process has written to it, and once a minute.
 */
export class SubmittedObjects implements FeedSource, ObjectStorage {
  readonly kind = "file";
  readonly name: string;
  readonly id = SOURCE_ID;
  /** Gets an object whose file was removed by hand: deletes it as a client would. */
  onFileRemoved: (definition: ResourceDefinition, object: ApiObject) => void = () => {};
  readonly #deps: SubmittedObjectsDeps;
  readonly #facts: ChangeLogger;
  readonly #watch: PathWatch;
  /** Keys of the objects that were submitted, rather than found in a manifest of another source. */
  readonly #own = new Map<ResourceId, Set<string>>();
  readonly #parts = new Map<ResourceId, MadeOfEach<ApiObject, Fed | undefined>>();
  /** Objects as the kubelet has them, by kind and key. */
  readonly #fed = new Map<string, Fed>();
  #emit: ((set: SourceSet) => void) | undefined;
  #unsubscribe: () => void = () => {};
  #cancelRead: (() => void) | undefined;
  #isEmitPlanned = false;
  /** Monotonic: while thousands of objects are written, sets of them take a tenth of the time. */
  #nextEmitAtMs = Number.NEGATIVE_INFINITY;
  /** Objects that are in the store as their files have them. */
  readonly #settled = new WeakSet<ApiObject>();
  #isComplete = false;
  #reads = 0;
  #isStopped = false;

  constructor(deps: SubmittedObjectsDeps) {
    this.#deps = deps;
    this.name = deps.directory.path;
    this.#facts = new ChangeLogger(deps.logger);
    this.#watch = new PathWatch((changed) => {
      if (changed === undefined || !deps.directory.isKnown(changed)) this.#planRead();
    }, deps);
  }

  /** Whether an object was submitted, rather than found in a manifest of another source. */
  isOwn(definition: ResourceDefinition, object: ApiObject): boolean {
    return this.#ownOf(definition).has(keyOf(object));
  }

  #ownOf(definition: ResourceDefinition): Set<string> {
    return this.#own.getOrInsertComputed(resourceId(definition), () => new Set());
  }

  /** Whether the object was handed on as it is now, so that what a controller knows of it is not older. */
  isHandedOn(definition: ResourceDefinition, object: ApiObject): boolean {
    return isStatusOnly(object, this.#fed.get(keyIn(definition, object))?.object);
  }

  /** Removes the file of an object that a controller has adopted; the object stays in the store. */
  release(definition: ResourceDefinition, object: ApiObject): void {
    this.#deps.directory.remove(definition, object);
    this.#ownOf(definition).delete(keyOf(object));
    this.#parts.delete(resourceId(definition));
    this.#planEmit();
  }

  start(emit: (set: SourceSet) => void): void {
    this.load();
    this.#emit = emit;
    emit(this.#assemble());
  }

  /** Reads the directory into the store, once; requests can be answered from then on. */
  load(): void {
    if (this.#reads > 0) return;
    this.#readDirectory();
    this.#deps.store.markStart();
    this.#unsubscribe = this.#deps.store.subscribe(({ resource, type, object, previous }) => {
      const definition = this.#deps.registry.get(resource);
      if (!definition || !isKept(definition)) return;
      const isOwn = this.isOwn(definition, object);
      if (type === "DELETED") {
        this.#ownOf(definition).delete(keyOf(object));
        this.#fed.delete(keyIn(definition, object));
      }
      if (definition.fate !== "kept" && isOwn && (type === "DELETED" || !isStatusOnly(object, previous)))
        this.#planEmit();
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#cancelRead?.();
    this.#watch.stop();
  }

  status(): SourceStatus {
    return {
      kind: "file",
      name: this.name,
      state: this.#reads === 0 ? "waiting" : "ok",
      pods: this.#allOwn().filter(({ definition }) => definition.fate === "pods").length,
      reads: this.#reads,
      failures: 0,
    };
  }

  save(definition: ResourceDefinition, object: ApiObject): void {
    this.#deps.directory.save(definition, object);
    this.#ownOf(definition).add(keyOf(object));
    this.#settled.add(object);
    this.#arm();
  }

  /** Hands on at once what was saved. */
  flush(): void {
    this.#emit?.(this.#assemble());
  }

  remove(definition: ResourceDefinition, object: ApiObject): void {
    this.#deps.directory.remove(definition, object);
  }

  #assemble(): SourceSet {
    const isEnding = ({ object }: StoredObject) => object.metadata.deletionTimestamp !== undefined;
    return {
      pods: this.#feed("pods", (one) => this.#toDesiredPod(one), isEnding),
      deletions: new Map(
        this.#allOwn("pods")
          .filter(isEnding)
          .map(({ object: { metadata } }) => [
            metadata.uid ?? "",
            { graceSeconds: metadata.deletionGracePeriodSeconds ?? 0 },
          ]),
      ),
      // Objects that wait for a finalizer run on until they are gone.
      objects: this.#feed("objects", (one) => this.#toDesiredObject(one), isInForeground),
      configMaps: this.#feed("configMaps", ({ object }) => object as unknown as ConfigMap),
      secrets: this.#feed("secrets", ({ object }) => object as unknown as Secret),
      findings: [],
      stale: new Map(),
      isComplete: this.#isComplete,
    };
  }

  /** Our objects of some kinds as the kubelet gets them. @param isLeft those that it does not get any more */
  #feed<T extends Fed["desired"]>(
    fate: Fate,
    toDesired: (one: StoredObject) => T,
    isLeft: (one: StoredObject) => boolean = () => false,
  ): T[] {
    return this.#kinds(fate).flatMap((definition) => {
      const resource = resourceId(definition);
      const make = (object: ApiObject): Fed | undefined => {
        const one = { definition, object };
        const key = keyIn(definition, object);
        const known = this.#fed.get(key);
        this.#fed.delete(key);
        if (!this.isOwn(definition, object) || isLeft(one)) return undefined;
        const fed = known && isStatusOnly(object, known.object) ? known : { object, desired: toDesired(one) };
        this.#fed.set(key, fed);
        return fed;
      };
      const parts = this.#parts.getOrInsertComputed(resource, () => new MadeOfEach(keyOf));
      const all = parts.update(this.#deps.store.list(resource), [], (object) => [object], make);
      return all.flatMap((fed) => (fed ? (fed.desired as T) : []));
    });
  }

  /** Kinds of which objects were submitted. */
  #kinds(fate?: Fate): ResourceDefinition[] {
    const all = this.#deps.registry.all();
    return all.filter((it) => isKept(it) && (fate ?? it.fate) === it.fate && this.#ownOf(it).size > 0);
  }

  #allOwn(fate?: Fate): StoredObject[] {
    return objectsOf(this.#deps.store, this.#kinds(fate)).filter((it) => this.isOwn(it.definition, it.object));
  }

  #toDesiredPod({ definition, object }: StoredObject): DesiredPod {
    const { directory, nodeName } = this.#deps;
    const written = withoutServerFields(object) as unknown as Pod;
    // The store shows a pod that a cordon holds without its node.
    const pod: Pod = { ...written, spec: { ...written.spec, nodeName } };
    const path = directory.pathOf(definition, object.metadata);
    const annotations = { ...pod.metadata.annotations, [CONFIG_SOURCE_ANNOTATION]: "api" };
    return {
      pod: {
        ...pod,
        metadata: { ...pod.metadata, annotations: Object.assign(Object.create(null), annotations) },
        status: { phase: "Pending" },
      },
      source: "api",
      sourceId: SOURCE_ID,
      origin: path,
      location: { file: path },
      revision: computeRevision(pod),
      resourceVersion: Number(object.metadata.resourceVersion) || 0,
    };
  }

  #toDesiredObject({ object }: StoredObject): DesiredObject {
    const written = withoutServerFields(object);
    return {
      kind: object.kind,
      object: written,
      source: "api",
      sourceId: SOURCE_ID,
      origin: this.#deps.directory.path,
      revision: computeRevision(written),
    } as unknown as DesiredObject;
  }

  #readDirectory(): void {
    if (this.#isStopped) return;
    this.#cancelRead = undefined;
    this.#reads++;
    this.#arm();
    const { directory, store, clock } = this.#deps;
    const { files, unreadable, namespaces } = directory.read();
    this.#isComplete = unreadable.length === 0;
    for (const { path, problem } of unreadable) {
      this.#facts.log(path, "error", `Manifest of the local API: ${path}: ${problem}; the objects it held before stay`);
    }
    for (const { path } of files) this.#facts.resolve(path, `Manifest of the local API: "${path}" can be used again`);
    const found = new Set(files.map(({ definition, object }) => keyIn(definition, object)));
    const uncertain = new Set(unreadable.map(({ path }) => path));
    const isNamespace = ({ definition }: StoredFile) => definition.plural === "namespaces";
    for (const file of files.filter(isNamespace)) this.#take(file);
    // A directory without a file of its namespace was made by hand.
    for (const name of ["default", ...namespaces]) ensureNamespace(store, name, clock.now());
    for (const file of files.filter((it) => !isNamespace(it))) this.#take(file);
    for (const { definition, object } of this.#allOwn()) {
      const isFound = found.has(keyIn(definition, object));
      if (!isFound && this.#isGone(definition, object, uncertain)) this.onFileRemoved(definition, object);
    }
  }

  /** A file that cannot be read is not a removed file, nor is any while a directory cannot be listed. */
  #isGone(definition: ResourceDefinition, object: ApiObject, uncertain: ReadonlySet<string>): boolean {
    if (object.metadata.deletionTimestamp) return false;
    const { directory } = this.#deps;
    const isDirectory = [...uncertain].some((path) => path === directory.path || !/\.(ya?ml|json)$/.test(path));
    // Its name is no longer known once it could not be read: any bad file of the namespace may be it.
    const isUncertain = [...uncertain].some((path) =>
      path.startsWith(join(directory.path, object.metadata.namespace ?? "")),
    );
    return !isDirectory && !isUncertain && definition.plural !== "namespaces";
  }

  #take({ definition, object: found }: StoredFile): void {
    const { store } = this.#deps;
    const { namespace, name } = found.metadata;
    const live = store.get(resourceId(definition), namespace, name);
    if (live && this.#settled.has(found) && this.isOwn(definition, live)) return;
    this.#settled.add(found);
    const object = live ? (definition.carryOver?.(found, live) ?? found) : found;
    if (live && !this.isOwn(definition, live)) return;
    this.#ownOf(definition).add(keyOf(object));
    if (!live) return void store.put(resourceId(definition), object);
    if (live.metadata.deletionTimestamp && definition.gracefulDeletion) return;
    const next: ApiObject = {
      ...object,
      metadata: {
        ...object.metadata,
        uid: live.metadata.uid,
        generation: Bun.deepEquals(live.spec, object.spec)
          ? live.metadata.generation
          : (live.metadata.generation ?? 0) + 1,
        managedFields: live.metadata.managedFields,
        resourceVersion: live.metadata.resourceVersion,
      },
      ...("status" in live && { status: live.status }),
    };
    if (canonicalJson(next) !== canonicalJson(live)) store.put(resourceId(definition), next);
  }

  /** Watches the directory and those of the namespaces. */
  #arm(): void {
    const { directory, store } = this.#deps;
    const namespaces = store.list("namespaces").map(({ metadata }) => join(directory.path, metadata.name));
    this.#watch.arm([directory.path, ...namespaces]);
  }

  #planRead(): void {
    this.#cancelRead?.();
    this.#cancelRead = this.#deps.clock.schedule(DEBOUNCE_MS, () => this.#readDirectory());
  }

  /** Several changes of one moment are one set. One that comes alone is handed on at once. */
  #planEmit(): void {
    if (this.#isEmitPlanned) return;
    this.#isEmitPlanned = true;
    const { clock } = this.#deps;
    const beginsAtMs = clock.monotonicMs();
    const emit = () => {
      this.#isEmitPlanned = false;
      if (this.#isStopped) return;
      const beganAtMs = clock.monotonicMs();
      this.flush();
      const nowMs = clock.monotonicMs();
      this.#nextEmitAtMs = nowMs + Math.min(10 * (nowMs - beganAtMs), LONGEST_PAUSE_MS);
    };
    if (beginsAtMs < this.#nextEmitAtMs) clock.schedule(this.#nextEmitAtMs - beginsAtMs, emit);
    else queueMicrotask(emit);
  }
}

const keyIn = (definition: ResourceDefinition, object: ApiObject) => `${resourceId(definition)} ${keyOf(object)}`;

/** An object as a user would write it. Its parts are those of the store, which are never changed in place. */
function withoutServerFields(object: ApiObject): object {
  const {
    apiVersion: _apiVersion,
    kind: _kind,
    status: _status,
    metadata: { managedFields: _fields, resourceVersion: _version, generation: _generation, ...metadata },
    ...rest
  } = withoutEphemeralContainers(object);
  const { [REVISION_ANNOTATION]: revision, ...annotations } = metadata.annotations ?? {};
  // The server numbers a Deployment; a Deployment that adopts a ReplicaSet goes on from its number.
  if (revision !== undefined && object.kind !== "Deployment") annotations[REVISION_ANNOTATION] = revision;
  const { labels } = metadata;
  return {
    ...rest,
    metadata: {
      ...metadata,
      // Maps with keys of users have no prototype, so that a key such as `constructor` finds nothing.
      labels: labels && Object.assign(Object.create(null), labels),
      annotations: Object.keys(annotations).length > 0 ? Object.assign(Object.create(null), annotations) : undefined,
    },
  };
}

/** Whether two versions of an object differ in fields without effect on the kubelet only. */
function isStatusOnly(object: ApiObject, previous: ApiObject | undefined): boolean {
  if (!previous || object === previous) return previous !== undefined;
  const a = object.metadata;
  const b = previous.metadata;
  return (
    object.spec !== undefined &&
    object.spec === previous.spec &&
    a.uid === b.uid &&
    a.labels === b.labels &&
    a.annotations === b.annotations &&
    Bun.deepEquals(a.ownerReferences, b.ownerReferences) &&
    a.deletionTimestamp === b.deletionTimestamp
  );
}
