import type { Clock } from "../base/model/clock.ts";
import type { ApiObject } from "./api-object.ts";
import { BACKGROUND, type ObjectDeleter } from "./object-deleter.ts";
import { type ObjectStore, objectsOf, type StoredObject } from "./object-store.ts";
import { isKept, type ResourceDefinition, type ResourceRegistry } from "./resource-definition.ts";
import type { DiskCheck } from "./storage/manifest-directory.ts";

interface GarbageCollectorDeps {
  store: ObjectStore;
  registry: Pick<ResourceRegistry, "all" | "findKind">;
  deleter: Pick<ObjectDeleter, "delete">;
  disk: Pick<DiskCheck, "wait">;
  clock: Pick<Clock, "schedule">;
  /** Whether an object was submitted: those of files and controllers are not collected. */
  isOwn: (definition: ResourceDefinition, object: ApiObject) => boolean;
  /** Brings the objects of files and controllers up to date. @returns false while they are not all known */
  refresh: () => boolean;
}

const CHECK_MS = 5_000;

/**
 * Deletes submitted objects none of whose owners exists any more, or ever did. An owner is missing when its kind is
 * served here and two checks in a row found no object with its UID. Source: `pkg/controller/garbagecollector`.
 */
export class GarbageCollector {
  readonly #deps: GarbageCollectorDeps;
  /** UIDs of the objects that the last check found without an owner. */
  #found: ReadonlySet<string> = new Set();
  #cancel: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #isStopped = false;

  constructor(deps: GarbageCollectorDeps) {
    this.#deps = deps;
  }

  start(): void {
    // An object that is gone may have been the owner of any.
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
    if (!this.#cancel && !this.#isStopped && this.#owned().length > 0) {
      this.#cancel = this.#deps.clock.schedule(CHECK_MS, () => void this.#check());
    }
  }

  async #check(): Promise<void> {
    const { deleter, disk, refresh } = this.#deps;
    const orphans = refresh() ? this.#orphans() : undefined;
    const isKnown = ({ object }: StoredObject) => this.#found.has(object.metadata.uid ?? "");
    const doomed = orphans?.filter(isKnown) ?? [];
    this.#found = new Set(orphans?.map(({ object }) => object.metadata.uid ?? ""));
    try {
      if (doomed.length > 0) await disk.wait();
      for (const { definition, object } of this.#isStopped ? [] : doomed) {
        const { namespace, name, uid } = object.metadata;
        deleter.delete({ definition, namespace, name }, { ...BACKGROUND, preconditions: { uid } });
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

  #orphans(): StoredObject[] {
    const { store, registry } = this.#deps;
    const uids = new Set(objectsOf(store, registry.all()).map(({ object }) => object.metadata.uid));
    return this.#owned().filter(({ object }) =>
      object.metadata.ownerReferences?.every(({ apiVersion = "", kind = "", uid = "" }) => {
        const definition = registry.findKind(apiVersion, kind);
        return (
          definition !== undefined && definition.fate !== "node" && definition.fate !== "observed" && !uids.has(uid)
        );
      }),
    );
  }
}
