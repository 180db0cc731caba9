import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";

/** That there is no lock counts for this time: a program makes its lock file long before the update that it blocks. */
const FRESH_MS = 1_000;
/** A file system that failed is accessed again after this time. */
const FAILED_MS = 10_000;

/** Whether a file in a volume of a pod exists. Rejects when that cannot be determined. */
export type FindLock = (pod: Pod, lock: string) => Promise<boolean>;

interface LockState {
  isLocked: boolean;
  /** A search is under way; `again`: the lock was asked for since it began. */
  isSearching: boolean;
  again: boolean;
  /** The state counts until then. */
  untilMs: number;
}

/**
 * Files in volumes of pods that block updates. Volumes may be on disks that do not answer, so nothing waits for the search:
 * until it has an answer, and when it fails, the file counts as present.
 */
export class LockFiles {
  readonly #find: FindLock;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #onUnlocked: () => void;
  readonly #locks = new Map<string, LockState>();

  /** @param onUnlocked a file does not exist: {@link isLocked} returns false for the next second */
  constructor(find: FindLock, clock: Pick<Clock, "monotonicMs">, onUnlocked: () => void) {
    this.#find = find;
    this.#clock = clock;
    this.#onUnlocked = onUnlocked;
  }

  /** Whether the file counts as present; starts a search when that is not known to be current. */
  isLocked(pod: Pod, lock: string): boolean {
    const key = `${pod.metadata.uid} ${lock}`;
    const state = this.#locks.get(key) ?? { isLocked: true, isSearching: false, again: false, untilMs: -1 };
    this.#locks.set(key, state);
    if (this.#clock.monotonicMs() <= state.untilMs) return state.isLocked;
    if (state.isSearching) state.again = true;
    else void this.#search(state, pod, lock);
    return true;
  }

  /** Forgets all but these pods. */
  prune(uids: ReadonlySet<string>): void {
    for (const key of this.#locks.keys()) if (!uids.has(key.slice(0, key.indexOf(" ")))) this.#locks.delete(key);
  }

  async #search(state: LockState, pod: Pod, lock: string): Promise<void> {
    state.isSearching = true;
    try {
      do {
        state.again = false;
        state.isLocked = await this.#find(pod, lock);
        // The file may have been removed since that search began.
      } while (state.isLocked && state.again);
      if (!state.isLocked) state.untilMs = this.#clock.monotonicMs() + FRESH_MS;
    } catch {
      state.isLocked = true;
      state.untilMs = this.#clock.monotonicMs() + FAILED_MS;
    } finally {
      state.isSearching = false;
    }
    if (!state.isLocked) this.#onUnlocked();
  }
}
