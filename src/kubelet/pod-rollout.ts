import type { PodSnapshot } from "../model/pod-snapshot.ts";
import { isRevisionLive, type RolloutProgress } from "../plan/rollout.ts";
import type { PodRevision } from "./edit-rules.ts";

/** How far one pod has come with its newest revision. */
export class PodRollout {
  /** Revision of the last pass. */
  #planned: PodRevision | undefined;
  #reported: RolloutProgress = "pending";
  #reportedPins: PodRevision["imagePins"];

  /** A pass has planned this revision. */
  planned(revision: PodRevision): void {
    this.#planned = revision;
  }

  /** @param hasEnded the pod has ended for good */
  progressOf(revision: PodRevision | undefined, snapshot: PodSnapshot, hasEnded: boolean): RolloutProgress {
    if (!revision || this.#planned !== revision) return "pending";
    return hasEnded || isRevisionLive({ ...revision, snapshot }) ? "live" : "progressing";
  }

  /** @returns whether the progress, or the images that the planned revision pins, differ from the last call */
  noteChange(progress: RolloutProgress): boolean {
    // Images that are only pinned change no container, and so no progress.
    const pins = this.#planned?.imagePins;
    if (progress === this.#reported && pins === this.#reportedPins) return false;
    this.#reported = progress;
    this.#reportedPins = pins;
    return true;
  }
}
