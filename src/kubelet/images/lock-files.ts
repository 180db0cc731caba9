import type { Pod } from "../../api/pod.ts";
import type { Clock } from "../../model/clock.ts";

/** An answer counts for this time: a program makes its lock file long before the update that it holds off. */
const FRESH_MS = 1_000;
/** A file system that failed is asked again after this time. */
const FAILED_MS = 10_000;

/** Looks for a file in a volume of a pod. Rejects when that cannot be told. */
export type LookForLock = (pod: Pod, lock: string) => Promise<boolean>;

interface Look {
  isLocked: boolean;
  /** undefined: the look is under way. */
  untilMs: number | undefined;
}

/**
 * Files in volumes of pods that hold updates off. Volumes may lie on disks that do not answer, so nothing waits for the
 * look: until it has an answer, and when it fails, the file counts as there.
 */
export class LockFiles {
  readonly #look: LookForLock;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #onAnswer: () => void;
  readonly #looks = new Map<string, Look>();

  /** @param onAnswer an answer came: {@link isLocked} gives it for the next second */
  constructor(look: LookForLock, clock: Pick<Clock, "monotonicMs">, onAnswer: () => void) {
    this.#look = look;
    this.#clock = clock;
    this.#onAnswer = onAnswer;
  }

  isLocked(pod: Pod, lock: string): boolean {
    const key = `${pod.metadata.uid} ${lock}`;
    const known = this.#looks.get(key);
    const isOver = known?.untilMs !== undefined && this.#clock.monotonicMs() > known.untilMs;
    if (!known || isOver) void this.#start(key, pod, lock);
    return !known || isOver || known.isLocked;
  }

  /** Forgets all but these pods. */
  prune(uids: ReadonlySet<string>): void {
    for (const key of this.#looks.keys()) if (!uids.has(key.slice(0, key.indexOf(" ")))) this.#looks.delete(key);
  }

  async #start(key: string, pod: Pod, lock: string): Promise<void> {
    this.#looks.set(key, { isLocked: true, untilMs: undefined });
    const note = (isLocked: boolean, forMs: number) =>
      this.#looks.set(key, { isLocked, untilMs: this.#clock.monotonicMs() + forMs });
    try {
      note(await this.#look(pod, lock), FRESH_MS);
      this.#onAnswer();
    } catch {
      note(true, FAILED_MS);
    }
  }
}
