import type { PodUID } from "../model/identity.ts";
import type { CompletionStore } from "./kubelet.ts";
import type { Completion } from "./pod-revision.ts";

/** Where the completions are kept between two runs. */
export interface CompletionFile {
  read(): Record<PodUID, Completion> | undefined;
  write(all: Record<PodUID, Completion>): void;
}

/** How pods ended, by uid; on disk after every change, for a finished pod must stay finished after a power cut [U15]. */
export class Completions implements CompletionStore {
  readonly #file: CompletionFile;
  readonly #byUid: Map<PodUID, Completion>;

  constructor(file: CompletionFile) {
    this.#file = file;
    this.#byUid = new Map(Object.entries(file.read() ?? {}));
  }

  get(uid: PodUID): Completion | undefined {
    return this.#byUid.get(uid);
  }

  set(uid: PodUID, completion: Completion | undefined): void {
    if (completion) this.#byUid.set(uid, completion);
    else if (!this.#byUid.delete(uid)) return;
    this.#file.write(Object.fromEntries(this.#byUid));
  }
}
