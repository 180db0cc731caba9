import type { Clock } from "../base/model/clock.ts";
import { podFullName } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import { containerFieldPath } from "../base/model/pod-containers.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import type { PodRef } from "../base/model/pod-ref.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { PodRevision } from "./edit-rules.ts";

const WARN_DELAY_MS = 1_000;

interface PodBackgroundWorkDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
}

/** The worker, as its background work sees it. */
interface PodBackgroundWorkHost {
  /** The desired revision; it may have changed since an action began. */
  revision: () => PodRevision | undefined;
  /** A piece of work ended: plan again. */
  wake: () => void;
  /** Aborts when the worker is detached. */
  signal: AbortSignal;
}

/** Runs work of one pod in the background and reports it: its events, its log lines, and a pass at its end. */
export class PodBackgroundWork {
  readonly ref: PodRef;
  readonly #deps: PodBackgroundWorkDeps;
  readonly #host: PodBackgroundWorkHost;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(ref: PodRef, deps: PodBackgroundWorkDeps, host: PodBackgroundWorkHost) {
    this.ref = ref;
    this.#deps = deps;
    this.#host = host;
  }

  /** Starts work and returns at once; its end, successful or not, triggers the next pass. */
  start(
    work: (signal: AbortSignal) => Promise<unknown>,
    onError: (error: unknown) => unknown,
    onEnd: () => void,
  ): void {
    work(this.#host.signal)
      .catch((error) => (this.#host.signal.aborted ? undefined : onError(error)))
      .finally(() => {
        onEnd();
        this.#host.wake();
      });
  }

  /** Plans again before the work under way has ended. */
  wake(): void {
    this.#host.wake();
  }

  /** Runs this after everything that was given to it before. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  /** Waits, or returns early when the worker is detached. */
  async delay(ms: number): Promise<void> {
    await this.#deps.clock.sleep(ms, this.#host.signal).catch(() => {});
  }

  /** Logs a failure that the next pass retries, and delays that pass: the work counts as under way until then. */
  async warnAndDelay(attempt: string, error: unknown, delayMs = WARN_DELAY_MS): Promise<void> {
    this.#deps.logger.warn(`${attempt} of pod "${podFullName(this.ref)}": ${messageOf(error)}`);
    await this.delay(delayMs);
  }

  /** @param container absent: the event is about the whole pod */
  record(type: "Normal" | "Warning", reason: string, message: string, container?: string): void {
    const pod = this.#host.revision()?.pod;
    const fieldPath = container === undefined ? {} : { fieldPath: containerFieldPath(pod?.spec, container) };
    this.#deps.recorder.record(this.ref, { type, reason, message, ...fieldPath });
  }
}
