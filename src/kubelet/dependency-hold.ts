import type { Pod } from "../base/api/pod.ts";
import { dependencyTimeoutMs } from "../plan/pod-dependencies.ts";
import type { WaitingReason } from "../plan/pod-plan.ts";
import type { PodBackgroundWork } from "./pod-background-work.ts";

/** How long a pod has waited for the pods it depends on. Times are monotonic. */
export class DependencyHold {
  readonly #find: (pod: Pod, waitedMs: number) => WaitingReason | undefined;
  #sinceMs: number | undefined;
  #reported: string | undefined;

  constructor(find: (pod: Pod, waitedMs: number) => WaitingReason | undefined = () => undefined) {
    this.#find = find;
  }

  /** Why the pod may not start now. @param mayWait false for a pod that runs or has ended */
  check(pod: Pod, mayWait: boolean, nowMs: number): WaitingReason | undefined {
    const hold = mayWait ? this.#find(pod, nowMs - (this.#sinceMs ?? nowMs)) : undefined;
    this.#sinceMs = hold && (this.#sinceMs ?? nowMs);
    return hold;
  }

  /** When the reason of the hold changes because its time has elapsed; undefined: it does not. */
  timeoutAtMs(pod: Pod, nowMs: number): number | undefined {
    if (this.#sinceMs === undefined) return undefined;
    const atMs = this.#sinceMs + dependencyTimeoutMs(pod);
    return atMs > nowMs ? atMs : undefined;
  }

  /** Records an event for each dependency that is waited for, once, and one more when its time has elapsed. */
  report(hold: WaitingReason | undefined, work: Pick<PodBackgroundWork, "record">): void {
    const isNew = hold !== undefined && hold.message !== this.#reported;
    this.#reported = hold?.message;
    if (isNew) work.record(hold.reason === "WaitingForDependency" ? "Normal" : "Warning", hold.reason, hold.message);
  }
}
