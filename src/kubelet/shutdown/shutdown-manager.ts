import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { ShutdownPeriod } from "../../base/model/option-values.ts";
import type { Rejection } from "../../plan/admission.ts";
import {
  computeShutdownGroups,
  ENDED_BY_SHUTDOWN,
  REFUSED_BY_SHUTDOWN,
  totalShutdownSeconds,
} from "../../plan/node-shutdown.ts";
import { isFinished } from "../../plan/service-endpoints.ts";
import type { Kubelet } from "../kubelet.ts";

/** The machine as far as its end is concerned. */
export interface ShutdownHost {
  /**
   * Delays every shutdown of the machine from now on, for this long at most; the end of our process releases it too.
   * @throws Error when the shutdown of the machine cannot be delayed
   */
  hold(maxSeconds: number, signal: AbortSignal): Promise<ShutdownHold>;
  /**
   * Reports when the machine is about to shut down (true), and when that was canceled (false).
   * @returns a promise that rejects when nothing more can be learnt, or when the signal aborts
   */
  watch(onChange: (isGoingDown: boolean) => void, signal: AbortSignal): Promise<never>;
  /** Whether all services are being stopped because the machine shuts down. */
  isStopping(): Promise<boolean>;
}

interface ShutdownHold {
  release(): void;
  /** Rejects when the hold was lost without {@link release}. */
  readonly lost: Promise<never>;
}

interface ShutdownDeps {
  clock: Clock;
  logger: Logger;
  kubelet: Pick<Kubelet, "pods" | "halt" | "resume">;
  host: ShutdownHost;
  /** Lowest priority first, not empty. */
  periods: readonly ShutdownPeriod[];
}

const RETRY_MS = 60_000;
const SETTLE_MS = 1_000;

/**
 * Gives pods time to end when the machine shuts down: delays the shutdown, stops the least important pods first, then
 * releases it. Nothing is removed: the next start of the machine runs the pods again.
 */
export class ShutdownManager {
  readonly #deps: ShutdownDeps;
  #ending: { over: AbortController; done: Promise<void> } | undefined;

  constructor(deps: ShutdownDeps) {
    this.#deps = deps;
  }

  /** Why the node rejects new pods now; undefined when it does not. */
  refusal(): Rejection | undefined {
    return this.#ending ? REFUSED_BY_SHUTDOWN : undefined;
  }

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#deps;
    for (let logged = ""; !signal.aborted; ) {
      const why = await this.#delayShutdowns(signal).catch((error: Error) => error.message);
      // A signal to the process group may have stopped the child process first.
      await clock.sleep(SETTLE_MS, signal).catch(() => {});
      // In a shutdown the bus is stopped too: nothing to report.
      if (signal.aborted || this.#ending) return;
      const message = `A shutdown of the machine does not wait for pods: ${why}`;
      if (message !== logged) logger.warn(message);
      logged = message;
      await clock.sleep(RETRY_MS, signal).catch(() => {});
    }
  }

  /**
   * The process is being stopped: if the machine shuts down and the shutdown could not be delayed, the pods end now,
   * while our service manager waits for us.
   */
  async beforeExit(): Promise<void> {
    if (this.#ending) return await this.#ending.done;
    if (await this.#deps.host.isStopping()) await this.endPods();
  }

  /** Resolves when the pods have ended, or their time has elapsed, or the shutdown was canceled. */
  endPods(): Promise<void> {
    if (!this.#ending) {
      const over = new AbortController();
      this.#ending = { over, done: Promise.resolve() };
      this.#ending.done = this.#endInOrder(over.signal);
    }
    return this.#ending.done;
  }

  /** Delays shutdowns of the machine until the connection to logind breaks. @throws Error with the reason */
  async #delayShutdowns(signal: AbortSignal): Promise<never> {
    const { host, periods, logger } = this.#deps;
    const maxSeconds = totalShutdownSeconds(periods);
    const broken = Promise.withResolvers<never>();
    let hold: ShutdownHold | undefined;
    const take = async () => {
      hold = await host.hold(maxSeconds, signal);
      hold.lost.catch(broken.reject);
    };
    const onChange = (isGoingDown: boolean) => {
      const step = isGoingDown ? this.endPods().then(() => hold?.release()) : this.#cancelShutdown().then(take);
      step.catch(broken.reject);
    };
    try {
      await take();
      logger.debug(`A shutdown of the machine waits up to ${maxSeconds} s for pods`);
      return await Promise.race([host.watch(onChange, signal), broken.promise]);
    } finally {
      hold?.release();
    }
  }

  async #endInOrder(over: AbortSignal): Promise<void> {
    const { clock, logger, kubelet, periods } = this.#deps;
    const active = kubelet.pods().filter((pod) => !isFinished(pod));
    const groups = computeShutdownGroups(periods, active);
    const count = groups.reduce((total, { pods }) => total + pods.length, 0);
    logger.info(`The machine is going down: ${count} ${count === 1 ? "pod is" : "pods are"} being stopped`);
    for (const { pods, waitSeconds } of groups) {
      const left = new Set(pods);
      const ends = pods.map(async (pod) => {
        await kubelet.halt(pod.uid, ENDED_BY_SHUTDOWN, pod.graceSeconds);
        left.delete(pod);
      });
      const enough = Promise.withResolvers<void>();
      const cancel = clock.schedule(waitSeconds * 1000, enough.resolve);
      over.addEventListener("abort", () => enough.resolve(), { once: true });
      await Promise.race([Promise.all(ends), enough.promise]);
      cancel();
      if (over.aborted) return;
      if (left.size > 0) logger.warn(`${left.size} of ${pods.length} pods did not stop within ${waitSeconds} s`);
    }
    logger.info("The machine may go down: pods were stopped");
  }

  async #cancelShutdown(): Promise<void> {
    const { logger, kubelet } = this.#deps;
    const ending = this.#ending;
    if (!ending) return;
    ending.over.abort();
    await ending.done;
    this.#ending = undefined;
    logger.info("The shutdown of the machine was cancelled: pods run again");
    kubelet.resume();
  }
}
