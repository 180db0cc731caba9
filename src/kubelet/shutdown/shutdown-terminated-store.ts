import type { Persisted } from "../../base/model/persisted.ts";
import type { ContainerId, ContainerSnapshot } from "../../base/model/pod-snapshot.ts";
import { isRunning } from "../../plan/container-history.ts";

/**
 * Containers that were running when a shutdown of the machine stopped them. Their exit code says nothing about their
 * work, so the next start of the kubelet does not count it.
 */
export class ShutdownTerminatedStore {
  readonly #file: Persisted<ContainerId[]>;
  readonly #ids: Set<ContainerId>;
  #isWriteScheduled = false;

  constructor(file: Persisted<ContainerId[]>) {
    this.#file = file;
    this.#ids = new Set(file.read());
  }

  get ids(): ReadonlySet<ContainerId> {
    return this.#ids;
  }

  /**
   * Adds those of these containers that run. Written before any of them can end; pods halted in one go make one write.
   * @param exists false drops an id of an earlier shutdown, so that the file does not grow
   */
  add(containers: readonly ContainerSnapshot[], exists: (id: ContainerId) => boolean): void {
    for (const container of containers) if (isRunning(container)) this.#ids.add(container.id);
    if (this.#isWriteScheduled) return;
    this.#isWriteScheduled = true;
    queueMicrotask(() => {
      this.#isWriteScheduled = false;
      for (const id of this.#ids) if (!exists(id)) this.#ids.delete(id);
      this.#file.write([...this.#ids]);
    });
  }
}
