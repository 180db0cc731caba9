import { join } from "node:path";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { canonicalJson } from "../../base/text/canonical-json.ts";
import type { FeedSource } from "../../sources/checkpoint-store.ts";
import { PathWatch } from "../../sources/path-watch.ts";
import type { SourceSet, SourceStatus } from "../../sources/source-set.ts";
import { type ApiObject, keyOf, toApiTime } from "../api-object.ts";
import type { ExplicitClusterDns } from "../kinds/cluster-dns.ts";
import type { ReadSubmitted } from "../kinds/decode-manifest.ts";
import type { ObjectStore } from "../object-store.ts";
import { type ResourceDefinition, type ResourceRegistry, resourceId } from "../resource-definition.ts";
import type { ManifestDirectory, StoredFile } from "./manifest-directory.ts";
import { isStatusOnly, SOURCE_ID, SubmittedSet } from "./submitted-set.ts";

interface SubmittedObjectsDeps {
  store: ObjectStore;
  registry: ResourceRegistry;
  directory: ManifestDirectory;
  clusterDns: ExplicitClusterDns;
  read: ReadSubmitted;
  clock: Clock;
  logger: Logger;
  /** An object whose file was removed by hand: deletes it as a client would. */
  onFileRemoved: (definition: ResourceDefinition, object: ApiObject) => void;
}

/** After an event the directory must not change for this time before it is read. */
const DEBOUNCE_MS = 20;

/** Work of a shorter duration is done at once. */
const QUICK_MS = 5;
const LONGEST_PAUSE_MS = 2_000;

/** Thousands of objects, written one after the other, take a tenth of the time. */
const pauseAfterMs = (durationMs: number): number => Math.max(DEBOUNCE_MS, Math.min(10 * durationMs, LONGEST_PAUSE_MS));

/**
 * The objects clients submitted, as a source of pods, ConfigMaps and Secrets. The store is authoritative; the directory is
 * read at the start, and again after another process has written to it.
 */
export class SubmittedObjects implements FeedSource {
  readonly kind = "file";
  readonly name: string;
  readonly id = SOURCE_ID;
  /** Must receive a new object before it is put into the store. */
  readonly clusterDns: ExplicitClusterDns;
  readonly #deps: SubmittedObjectsDeps;
  readonly #facts: ChangeLogger;
  readonly #watches = new Map<string, PathWatch>();
  readonly #own = new Set<string>();
  readonly #set: SubmittedSet;
  #emit: ((set: SourceSet) => void) | undefined;
  #unsubscribe: () => void = () => {};
  #cancelRead: (() => void) | undefined;
  #isEmitPlanned = false;
  /** Objects that are in the store as their files have them. */
  readonly #settled = new WeakSet<ApiObject>();
  /** Duration of the last read of the directory and of the last set. */
  #readMs = 0;
  #emitMs = 0;
  #isComplete = false;
  #reads = 0;
  #isStopped = false;

  constructor(deps: SubmittedObjectsDeps) {
    this.#deps = deps;
    this.name = deps.directory.path;
    this.clusterDns = deps.clusterDns;
    this.#facts = new ChangeLogger(deps.logger);
    this.#set = new SubmittedSet({
      ...deps,
      isOwn: (definition, object) => this.isOwn(definition, object),
      onRefused: (key) =>
        this.#facts.log(`refused ${key}`, "error", `Pod "${key}" of the local API cannot be used here`),
    });
  }

  /** Whether an object was submitted, rather than found in a manifest of another source. */
  isOwn(definition: ResourceDefinition, object: ApiObject): boolean {
    return this.#own.has(ownKey(definition, object));
  }

  /** Releases an object that a controller has adopted: it stays in the store, without a file. */
  release(definition: ResourceDefinition, object: ApiObject): void {
    this.#deps.directory.remove(definition, object);
    this.#own.delete(ownKey(definition, object));
    this.#planEmit();
  }

  start(emit: (set: SourceSet) => void): void {
    this.load();
    this.#emit = emit;
    emit(this.#set.assemble(this.#isComplete));
  }

  /** Reads the directory into the store, once; requests can be answered from then on. */
  load(): void {
    if (this.#reads > 0) return;
    this.#readDirectory();
    this.#deps.store.markStart();
    this.#unsubscribe = this.#deps.store.subscribe(({ resource, type, object, previous }) => {
      const definition = this.#deps.registry.get(resource);
      if (definition?.storage !== "file") return;
      const isOwn = this.isOwn(definition, object);
      if (type === "DELETED") {
        this.#own.delete(ownKey(definition, object));
        this.clusterDns.forget(object);
      }
      if (definition.plural !== "namespaces" && isOwn && (type === "DELETED" || !isStatusOnly(object, previous)))
        this.#planEmit();
    });
  }

  /** `--runonce` runs what it is given, not what was submitted. */
  async readOnce(): Promise<SourceSet> {
    return { pods: [], configMaps: [], secrets: [], findings: [], stale: new Map(), isComplete: true };
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#cancelRead?.();
    for (const watch of this.#watches.values()) watch.stop();
  }

  status(): SourceStatus {
    return {
      kind: "file",
      name: this.name,
      state: this.#reads === 0 ? "waiting" : "ok",
      pods: [...this.#own].filter((key) => key.startsWith("pods ")).length,
      reads: this.#reads,
      failures: 0,
    };
  }

  /** The files are their own checkpoint. */
  checkpoint(): undefined {
    return undefined;
  }

  /** Must be called before an object that a client submits is put into the store. */
  claim(definition: ResourceDefinition, object: ApiObject): void {
    this.#own.add(ownKey(definition, object));
    this.#settled.add(object);
    this.#arm();
  }

  #readDirectory(): void {
    if (this.#isStopped) return;
    const beganAtMs = this.#deps.clock.monotonicMs();
    this.#cancelRead = undefined;
    this.#reads++;
    this.#arm();
    const { directory, store, registry } = this.#deps;
    const { files, unreadable, namespaces } = directory.read();
    this.#isComplete = unreadable.length === 0;
    for (const { path, problem } of unreadable) {
      this.#facts.log(
        path,
        "error",
        `Manifest of the local API: ${path}: ${problem}; what it said before still counts`,
      );
    }
    for (const { path } of files) this.#facts.resolve(path, `Manifest of the local API: "${path}" can be used again`);
    const found = new Set(files.map(({ definition, object }) => ownKey(definition, object)));
    const uncertain = new Set(unreadable.map(({ path }) => path));
    const [ofNamespaces = [], others = []] = [true, false].map((is) =>
      files.filter(({ definition }) => (definition.plural === "namespaces") === is),
    );
    for (const file of ofNamespaces) this.#take(file);
    // A directory without a file of its namespace was made by hand.
    for (const name of ["default", ...namespaces]) this.#ensureNamespace(name);
    for (const file of others) this.#take(file);
    for (const key of [...this.#own]) {
      if (found.has(key)) continue;
      const definition = registry.get(key.slice(0, key.indexOf(" ")));
      const object = definition && store.list(resourceId(definition)).find((it) => ownKey(definition, it) === key);
      if (!definition || !object) this.#own.delete(key);
      else if (this.#isGone(definition, object, uncertain)) this.#deps.onFileRemoved(definition, object);
    }
    this.#readMs = this.#deps.clock.monotonicMs() - beganAtMs;
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
    this.#own.add(ownKey(definition, object));
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

  #ensureNamespace(name: string): void {
    const { store, clock, registry } = this.#deps;
    if (store.get("namespaces", undefined, name)) return;
    const definition = registry.get("namespaces");
    if (!definition) return;
    const metadata = { name, uid: `namespace-${name}`, creationTimestamp: toApiTime(clock.now()) };
    const object = { apiVersion: "v1", kind: "Namespace", metadata };
    store.put("namespaces", definition.decode?.(object).object ?? object);
  }

  /** Watches the directory and those of the namespaces. */
  #arm(): void {
    if (this.#isStopped) return;
    const { directory, store } = this.#deps;
    const paths = [
      directory.path,
      ...store.list("namespaces").map(({ metadata }) => join(directory.path, metadata.name)),
    ];
    for (const path of paths) {
      let watch = this.#watches.get(path);
      if (!watch) {
        watch = new PathWatch(path, () => this.#planRead());
        this.#watches.set(path, watch);
      }
      watch.arm();
    }
  }

  #planRead(): void {
    this.#cancelRead?.();
    this.#cancelRead = this.#deps.clock.schedule(pauseAfterMs(this.#readMs), () => this.#readDirectory());
  }

  /** Several changes of one moment are one set. */
  #planEmit(): void {
    if (this.#isEmitPlanned) return;
    this.#isEmitPlanned = true;
    const emit = () => {
      this.#isEmitPlanned = false;
      if (this.#isStopped) return;
      const beganAtMs = this.#deps.clock.monotonicMs();
      this.#emit?.(this.#set.assemble(this.#isComplete));
      this.#emitMs = this.#deps.clock.monotonicMs() - beganAtMs;
    };
    if (this.#emitMs < QUICK_MS) queueMicrotask(emit);
    else this.#deps.clock.schedule(pauseAfterMs(this.#emitMs), emit);
  }
}

const ownKey = (definition: ResourceDefinition, object: ApiObject) => `${resourceId(definition)} ${keyOf(object)}`;
