import type { Clock } from "../../base/model/clock.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import { type ImageUpdateRecord, noteStarted } from "../../plan/image-updates.ts";
import { idOf, type Target } from "./image-update-targets.ts";

/** Workloads are without pods for a moment while they are replaced. */
const FORGET_AFTER_MS = 7 * 24 * 3_600_000;

/** The state of each image that is kept up to date, stored across restarts after each change. */
export class ImageUpdateRecords {
  readonly #file: Persisted<readonly ImageUpdateRecord[]>;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #byId = new Map<string, ImageUpdateRecord>();
  readonly #unseenSinceMs = new Map<string, number>();

  constructor(file: Persisted<readonly ImageUpdateRecord[]>, clock: Pick<Clock, "monotonicMs">) {
    this.#file = file;
    this.#clock = clock;
    for (const record of file.read() ?? []) this.#byId.set(idOf(record), noteStarted(record));
    if ([...this.#byId.values()].some(({ trial }) => trial)) this.#store();
  }

  get size(): number {
    return this.#byId.size;
  }

  values(): Iterable<ImageUpdateRecord> {
    return this.#byId.values();
  }

  get(id: string): ImageUpdateRecord | undefined {
    return this.#byId.get(id);
  }

  /** The record of an image, or an empty one. */
  of({ id, owner, image }: Target): ImageUpdateRecord {
    return this.#byId.get(id) ?? { owner, image, rejected: [] };
  }

  put(record: ImageUpdateRecord): void {
    this.#byId.set(idOf(record), record);
    this.#store();
  }

  /** Forgets images that no pod has any more. @param owners of all pods, those without updates included */
  prune(targets: ReadonlyMap<string, Target>, owners: ReadonlySet<string>): void {
    const nowMs = this.#clock.monotonicMs();
    let isChanged = false;
    for (const [id, { owner }] of this.#byId) {
      if (targets.has(id)) {
        this.#unseenSinceMs.delete(id);
        continue;
      }
      const isWorkload = owner.split("/").length > 2;
      const sinceMs = this.#unseenSinceMs.get(id) ?? nowMs;
      this.#unseenSinceMs.set(id, sinceMs);
      if (isWorkload && !owners.has(owner) && nowMs - sinceMs < FORGET_AFTER_MS) continue;
      this.#byId.delete(id);
      this.#unseenSinceMs.delete(id);
      isChanged = true;
    }
    if (isChanged) this.#store();
  }

  #store(): void {
    this.#file.write([...this.#byId.values()]);
  }
}
