import type { PodUID } from "../../base/model/identity.ts";
import type { ProbeKind, ProbeOutcome } from "../../base/model/prober.ts";
import type { ProbeAttempt } from "../../page/wire.ts";

const MAX_ATTEMPTS = 20;
/** Unit: UTF-16 code units. */
const MAX_OUTPUT = 200;
/** More pods than a node has. */
const MAX_PODS = 500;

/** The last attempts of each probe, for the page. Beyond 500 pods those that were probed least recently are dropped. */
export class ProbeLog {
  /** The pod that was probed last is the last. */
  readonly #attempts = new Map<PodUID, Map<string, ProbeAttempt[]>>();

  add(
    uid: PodUID,
    container: string,
    kind: ProbeKind,
    outcome: ProbeOutcome,
    durationMs: number,
    timeMs: number,
  ): void {
    const pod = this.#attempts.get(uid) ?? new Map<string, ProbeAttempt[]>();
    this.#attempts.delete(uid);
    this.#attempts.set(uid, pod);
    if (this.#attempts.size > MAX_PODS) this.#attempts.delete(this.#attempts.keys().next().value!);
    const key = `${container} ${kind}`;
    const attempts = pod.getOrInsert(key, []);
    attempts.push({ time: timeMs, result: outcome.result, output: outcome.output.slice(0, MAX_OUTPUT), durationMs });
    if (attempts.length > MAX_ATTEMPTS) attempts.shift();
  }

  attempts(uid: PodUID, container: string, kind: ProbeKind): readonly ProbeAttempt[] {
    return this.#attempts.get(uid)?.get(`${container} ${kind}`) ?? [];
  }
}
