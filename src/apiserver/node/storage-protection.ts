import type { Clock } from "../../base/model/clock.ts";
import type { ApiObject } from "../api-object.ts";
import { type ObjectStore, objectsOf, type StoredObject } from "../object-store.ts";
import type { ObjectWriter } from "../object-writer.ts";
import type { ResourceDefinition, ResourceRegistry } from "../resource-definition.ts";
import type { DiskCheck } from "../storage/manifest-directory.ts";
import { internalWrite } from "../write-request.ts";

interface StorageProtectionDeps {
  store: Pick<ObjectStore, "get" | "list">;
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
        writer.put(
          definition,
          { ...object, metadata: { ...object.metadata, finalizers } },
          internalWrite("kubelet-ts"),
        );
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
