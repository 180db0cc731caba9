import type { PodUID } from "../model/identity.ts";
import type { ProbeKind, ProbeOutcome } from "../model/prober.ts";
import type { ProbeAnswer } from "../page/wire.ts";

const MAX_ANSWERS = 20;
const MAX_OUTPUT = 200;

/** The last answers of each probe, for the page. */
export class ProbeLog {
  readonly #answers = new Map<PodUID, Map<string, ProbeAnswer[]>>();

  add(
    uid: PodUID,
    container: string,
    kind: ProbeKind,
    outcome: ProbeOutcome,
    durationMs: number,
    timeMs: number,
  ): void {
    const pod = this.#answers.get(uid) ?? new Map<string, ProbeAnswer[]>();
    this.#answers.set(uid, pod);
    const key = `${container} ${kind}`;
    const answers = pod.get(key) ?? [];
    pod.set(key, answers);
    answers.push({ time: timeMs, result: outcome.result, output: outcome.output.slice(0, MAX_OUTPUT), durationMs });
    if (answers.length > MAX_ANSWERS) answers.shift();
  }

  /** Oldest first. */
  answers(uid: PodUID, container: string, kind: ProbeKind): readonly ProbeAnswer[] {
    return this.#answers.get(uid)?.get(`${container} ${kind}`) ?? [];
  }

  retain(uids: ReadonlySet<PodUID>): void {
    for (const uid of this.#answers.keys()) if (!uids.has(uid)) this.#answers.delete(uid);
  }
}
