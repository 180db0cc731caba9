import { Listeners } from "../base/concurrency/listeners.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ObservedRuntime } from "../base/model/container-engine.ts";
import type { Logger } from "../base/model/logger.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import type { KubeletMetrics } from "../stats/metrics/kubelet-metrics.ts";
import type { PodCache } from "./pod-cache.ts";

interface RuntimeWatcherDeps {
  clock: Clock;
  logger: Logger;
  runtime: ObservedRuntime;
  cache: PodCache;
  metrics: KubeletMetrics;
  /** Longest time between two lists of all containers. Unit: milliseconds. */
  relistPeriodMs: number;
}

/** Pause after a list that failed. The event stream reconnects on its own; this is for an engine that responds badly. */
const RETRY_RELIST_MS = 5_000;

/** A list that takes longer is logged: the engine is slow in everything else too. */
const SLOW_RELIST_MS = 5_000;

/** Keeps the {@link PodCache} up to date: one event stream, a full list after each (re)connection, and a periodic list. */
export class RuntimeWatcher {
  /** The engine reports that this container, or sandbox, ran out of memory. */
  readonly ooms = new Listeners<ContainerId>();
  /** Every container was inspected, after the first connection and after each reconnection. */
  readonly resyncs = new Listeners();
  /** A periodic list succeeded; it finds changes whose event was missed. */
  readonly periodicLists = new Listeners();
  /** {@link runtimeError} changed. */
  readonly healthChanges = new Listeners();
  readonly #deps: RuntimeWatcherDeps;
  readonly #stop = new AbortController();
  /** All containers were inspected at least once. */
  isSynced = false;
  #isFollowing = false;
  #runtimeError: Error | undefined;
  #isSlow = false;
  #lastListAtMs: number;
  #cancelRelist: (() => void) | undefined;
  #relisting: Promise<void> | undefined;

  constructor(deps: RuntimeWatcherDeps) {
    this.#deps = deps;
    this.#lastListAtMs = deps.clock.monotonicMs();
  }

  start(): void {
    const { runtime, cache } = this.#deps;
    void runtime.watch({
      onOpen: () => {
        this.#isFollowing = true;
        this.#resync(true);
      },
      onEvent: (event) => {
        if (event.action === "oom") this.ooms.emit(event.id);
        // The next list goes on with what could not be inspected.
        cache.handleEvent(event).catch(() => {});
      },
      onLost: (error) => {
        this.#onRuntimeError(error, this.#isFollowing);
        this.#isFollowing = false;
      },
      signal: this.#stop.signal,
    });
  }

  stop(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelRelist?.();
  }

  /** Why the engine cannot be followed; undefined while it can. */
  get runtimeError(): string | undefined {
    if (this.#runtimeError) return this.#runtimeError.message;
    const silentMs = this.#deps.clock.monotonicMs() - this.#lastListAtMs;
    if (silentMs <= 3 * this.#deps.relistPeriodMs) return undefined;
    return `containers were last listed ${Math.round(silentMs / 1000)} s ago`;
  }

  /** After each (re)connection: inspect everything, then continue. @param full false: what is left of that */
  #resync(full: boolean): void {
    const attempt = async () => {
      await this.#relist(full);
      if (!this.isSynced) {
        this.isSynced = true;
        this.#deps.logger.debug("Inspected the containers of this node");
      }
      this.resyncs.emit();
    };
    attempt().catch((error: Error) => this.#onRuntimeError(error));
  }

  async #relist(full: boolean): Promise<void> {
    // One at a time. A full list is not skipped because a light one is under way.
    while (this.#relisting) await this.#relisting.catch(() => {});
    this.#cancelRelist?.();
    let nextInMs = RETRY_RELIST_MS;
    const { clock, cache, relistPeriodMs } = this.#deps;
    const startedAtMs = clock.monotonicMs();
    try {
      this.#relisting = cache.relist(full, this.#stop.signal);
      await this.#relisting;
      this.#noteListed(startedAtMs);
      nextInMs = relistPeriodMs;
      this.#noteRecovery();
    } finally {
      this.#relisting = undefined;
      if (!this.#stop.signal.aborted) this.#cancelRelist = clock.schedule(nextInMs, () => this.#periodicRelist());
    }
  }

  #periodicRelist(): void {
    if (!this.isSynced || this.#runtimeError) return this.#resync(false);
    this.#relist(false).then(
      () => this.periodicLists.emit(),
      (error: Error) => this.#onRuntimeError(error),
    );
  }

  /** @param isCut an open event stream ended: an engine that does not come back is an error of its own */
  #onRuntimeError(error: Error, isCut = false): void {
    if (this.#stop.signal.aborted) return;
    if (this.#runtimeError?.message !== error.message) {
      if (isCut) this.#deps.logger.warn(`${error.message}; the event stream is opened again`);
      else this.#deps.logger.error(error.message);
    }
    this.#runtimeError = error;
    this.healthChanges.emit();
  }

  #noteListed(startedAtMs: number): void {
    const { clock, logger, metrics } = this.#deps;
    const nowMs = clock.monotonicMs();
    const durationMs = nowMs - startedAtMs;
    metrics.plegRelistDuration.observe(durationMs / 1000);
    if (this.isSynced) metrics.plegRelistInterval.observe((nowMs - this.#lastListAtMs) / 1000);
    metrics.plegLastSeen.set(clock.now().getTime() / 1000);
    this.#lastListAtMs = nowMs;
    const isSlow = durationMs > SLOW_RELIST_MS;
    if (isSlow === this.#isSlow) return;
    this.#isSlow = isSlow;
    if (isSlow) {
      logger.warn(`The Docker engine is slow: listing all containers took ${Math.round(durationMs / 1000)} s`);
    } else logger.info("The Docker engine is no longer slow");
  }

  #noteRecovery(): void {
    if (!this.#runtimeError) return;
    this.#runtimeError = undefined;
    this.#deps.logger.info("The Docker engine answers again");
    this.healthChanges.emit();
  }
}
