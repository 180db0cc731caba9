import type { PodUID } from "../../base/model/pod.ts";
import type { ProbeKind, ProbeOutcome } from "../../base/model/prober.ts";
import type { ProbeAttempt } from "../../page/wire.ts";

const MAX_ATTEMPTS = 20;
/** Unit: UTF-16 code units. */
const MAX_OUTPUT = 200;

/** The last attempts of each probe of the pods that are there, for the page. */
export class ProbeLog {
  readonly #attempts = new Map<PodUID, Map<string, ProbeAttempt[]>>();

  add(
    uid: PodUID,
    container: string,
    kind: ProbeKind,
    outcome: ProbeOutcome,
    durationMs: number,
    timeMs: number,
  ): void {
    const pod = this.#attempts.getOrInsertComputed(uid, () => new Map());
    const attempts = pod.getOrInsert(`${container} ${kind}`, []);
    attempts.push({ time: timeMs, result: outcome.result, output: outcome.output.slice(0, MAX_OUTPUT), durationMs });
    if (attempts.length > MAX_ATTEMPTS) attempts.shift();
  }

  /** The pod was removed. */
  forget(uid: PodUID): void {
    this.#attempts.delete(uid);
  }

  attempts(uid: PodUID, container: string, kind: ProbeKind): readonly ProbeAttempt[] {
    return this.#attempts.get(uid)?.get(`${container} ${kind}`) ?? [];
  }
}
