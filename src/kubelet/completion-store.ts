import type { PodStatus } from "../base/api/pod.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { PodEnd } from "../plan/pod-plan.ts";

/** How a pod ended. */
export interface Completion {
  runRevision: string;
  end: PodEnd;
  status: PodStatus;
}

/** How pods ended, by UID. Written after every change: a finished pod stays finished after a power cut. */
export class CompletionStore {
  readonly #file: Persisted<Record<PodUID, Completion>>;
  readonly #byUid: Map<PodUID, Completion>;

  constructor(file: Persisted<Record<PodUID, Completion>>) {
    this.#file = file;
    this.#byUid = new Map(Object.entries(file.read() ?? {}));
  }

  get(uid: PodUID): Completion | undefined {
    return this.#byUid.get(uid);
  }

  /** @param completion undefined forgets the pod */
  set(uid: PodUID, completion: Completion | undefined): void {
    if (completion) this.#byUid.set(uid, completion);
    else if (!this.#byUid.delete(uid)) return;
    this.#file.write(Object.fromEntries(this.#byUid));
  }
}
