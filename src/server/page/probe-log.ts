import type { PodUID } from "../../base/model/identity.ts";
import type { ProbeKind, ProbeOutcome } from "../../base/model/prober.ts";
import type { ProbeResponse } from "../../page/wire.ts";

const MAX_ANSWERS = 20;
/** Unit: UTF-16 code units. */
const MAX_OUTPUT = 200;
/** More pods than a node has. */
const MAX_PODS = 500;

/** The last answers of each probe, for the page. Beyond 500 pods those whose last answer is the oldest are dropped. */
export class ProbeLog {
  /** The pod with the newest answer is the last. */
  readonly #answers = new Map<PodUID, Map<string, ProbeResponse[]>>();

  add(
    uid: PodUID,
    container: string,
    kind: ProbeKind,
    outcome: ProbeOutcome,
    durationMs: number,
    timeMs: number,
  ): void {
    const pod = this.#answers.get(uid) ?? new Map<string, ProbeResponse[]>();
    this.#answers.delete(uid);
    this.#answers.set(uid, pod);
    if (this.#answers.size > MAX_PODS) this.#answers.delete(this.#answers.keys().next().value!);
    const key = `${container} ${kind}`;
    const answers = pod.get(key) ?? [];
    pod.set(key, answers);
    answers.push({ time: timeMs, result: outcome.result, output: outcome.output.slice(0, MAX_OUTPUT), durationMs });
    if (answers.length > MAX_ANSWERS) answers.shift();
  }

  answers(uid: PodUID, container: string, kind: ProbeKind): readonly ProbeResponse[] {
    return this.#answers.get(uid)?.get(`${container} ${kind}`) ?? [];
  }
}
