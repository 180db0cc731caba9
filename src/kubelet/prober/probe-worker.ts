import type { Probe } from "../../base/api/container.ts";
import type { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import type { LoopLagMonitor } from "../../base/concurrency/loop-lag-monitor.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { ProbeKind, ProbeOutcome, ProbeResult, Prober, ProbeTarget } from "../../base/model/prober.ts";
import {
  countAttempt,
  earlyAttemptsMs,
  firstRegularMs,
  initialDelayEndMs,
  initialProbeState,
  isProbeHeldBack,
  MAX_PROBE_TRIES,
  nextRegularMs,
  type ProbeRhythm,
  type ProbeState,
  probeRhythm,
} from "../../plan/probe-schedule.ts";

export interface ProbeWorkerDeps {
  clock: Clock;
  prober: Prober;
  /** In [0, 1). */
  random: () => number;
  execLimit: ConcurrencyLimit;
  networkLimit: ConcurrencyLimit;
  loopLag: LoopLagMonitor;
}

/**
 * Attempts begin on a grid of this width, so that those of many probes share a wake-up of the process, which costs as much
 * as forty timers.
 */
const TICK_MS = 200;
/**
 * Lag of our own event loop from which on an attempt that ran into its time limit does not count. The shortest timeout of
 * a probe is 1 s; less lag than this leaves the container most of it.
 */
const STALL_MS = 250;
/** Void attempts in a row: a machine that is overloaded for good must not keep a dead container. */
const MAX_VOID_ATTEMPTS = 3;
/** A void attempt is repeated after this time instead of after the period. */
const VOID_RETRY_MS = 1000;

export interface ProbeWorkerListener {
  /** The startup probe of the same container, which gates the others. */
  startup(): { exists: boolean; result: ProbeResult | undefined };
  /** After every attempt but the early ones that failed. */
  onAttempt(kind: ProbeKind, outcome: ProbeOutcome, durationMs: number): void;
  onResult(kind: ProbeKind, result: ProbeResult): void;
  /** An attempt that timed out does not count, because our own event loop was stalled for this long. */
  onVoid(kind: ProbeKind, lagMs: number): void;
}

interface ProbedInstance extends ProbeTarget {
  /** Changes with every new container and with every start of the same one. */
  key: string;
  ageMs: number;
}

/** One probe of one container name: makes attempts while an instance runs, pauses otherwise. */
export class ProbeWorker {
  readonly kind: ProbeKind;
  readonly probe: Probe;
  readonly #deps: ProbeWorkerDeps;
  readonly #listener: ProbeWorkerListener;
  readonly #rhythm: ProbeRhythm;
  readonly #execCommand: readonly string[] | undefined;
  #state: ProbeState;
  #instance: ProbedInstance | undefined;
  #isResting = true;
  /** No attempt before this. */
  #earliestMs = 0;
  #regularMs = 0;
  /** Times of the early attempts still to come. */
  #early: number[] = [];
  #cancelTimer: (() => void) | undefined;
  #attempt: AbortController | undefined;
  /** Attempts in a row that did not count. */
  #voidAttempts = 0;

  /** @param execCommand the command of an exec probe with its variables replaced. */
  constructor(
    kind: ProbeKind,
    probe: Probe,
    execCommand: readonly string[] | undefined,
    deps: ProbeWorkerDeps,
    listener: ProbeWorkerListener,
  ) {
    this.kind = kind;
    this.probe = probe;
    this.#execCommand = execCommand;
    this.#deps = deps;
    this.#listener = listener;
    this.#rhythm = probeRhythm(probe, deps.clock.monotonicMs(), deps.random());
    this.#state = initialProbeState(kind);
  }

  get result(): ProbeResult | undefined {
    return this.#state.result;
  }

  /**
   * Sets the running container. A new instance starts from scratch, a known one continues.
   * @param stored result of this probe before a restart of the kubelet
   */
  observe(instance: ProbedInstance, stored?: ProbeResult): void {
    const isSame = instance.key === this.#instance?.key;
    const wasResting = this.#isResting;
    this.#instance = instance;
    this.#isResting = false;
    if (isSame) {
      if (wasResting) this.#resume();
      return;
    }
    this.#attempt?.abort(new Error("another container took its place"));
    this.#attempt = undefined;
    this.#state = initialProbeState(this.kind, stored);
    const now = this.#deps.clock.monotonicMs();
    this.#earliestMs = initialDelayEndMs(this.probe, now, instance.ageMs);
    this.#regularMs = firstRegularMs(this.#rhythm, this.#earliestMs);
    const isFresh = instance.ageMs < (this.probe.initialDelaySeconds ?? 0) * 1000 + this.#rhythm.periodMs;
    this.#early = isFresh && stored === undefined ? this.#earlyFrom(this.#earliestMs) : [];
    this.reschedule();
  }

  /** The startup probe succeeded: what waited for it asks at once and then in its rhythm. */
  release(): void {
    if (this.#isResting) return;
    const from = Math.max(this.#earliestMs, this.#deps.clock.monotonicMs());
    this.#regularMs = firstRegularMs(this.#rhythm, from);
    if (this.kind === "readiness" && this.#state.result !== "success") this.#early = [from, ...this.#earlyFrom(from)];
    this.reschedule();
  }

  /** No container runs, or the probe was removed. The result is kept in case the same instance is seen again. */
  rest(): void {
    this.#attempt?.abort(new Error("the container is no longer probed"));
    this.#attempt = undefined;
    this.#isResting = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** Arms the timer of the next attempt, if there is to be one. */
  reschedule(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#isResting || this.#attempt || isProbeHeldBack(this.kind, this.#state, this.#listener.startup())) return;
    if (this.#state.result === "success") this.#early = [];
    const early = this.#early[0];
    const isEarly = early !== undefined && early < this.#regularMs;
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    const dueMs = Math.ceil(Math.max(nowMs, isEarly ? early : this.#regularMs) / TICK_MS) * TICK_MS;
    this.#cancelTimer = clock.schedule(dueMs - nowMs, () => {
      this.#cancelTimer = undefined;
      void this.#run(isEarly);
    });
  }

  #resume(): void {
    this.#regularMs = firstRegularMs(this.#rhythm, Math.max(this.#earliestMs, this.#deps.clock.monotonicMs()));
    this.reschedule();
  }

  async #run(isEarly: boolean): Promise<void> {
    const instance = this.#instance;
    if (!instance || this.#isResting) return;
    const attempt = new AbortController();
    this.#attempt = attempt;
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    const limit = this.probe.exec ? this.#deps.execLimit : this.#deps.networkLimit;
    let outcome: (ProbeOutcome & { lagMs: number }) | undefined;
    try {
      outcome = await limit.run(attempt.signal, () =>
        this.#ask(instance, isEarly ? 1 : MAX_PROBE_TRIES, attempt.signal),
      );
    } catch {
      // Aborted while it waited for the limit.
    }
    // The container is gone or was replaced: the outcome does not count.
    if (!outcome || this.#attempt !== attempt) return;
    this.#attempt = undefined;
    const now = clock.monotonicMs();
    if (isEarly) this.#early = this.#early.filter((dueMs) => dueMs > now);
    else this.#regularMs = nextRegularMs(this.#rhythm, this.#regularMs, now);
    // An exit code, a status and a refused connection count: the container has responded.
    if (outcome.isTimeout && outcome.lagMs >= STALL_MS && this.#voidAttempts < MAX_VOID_ATTEMPTS) {
      if (!isEarly) {
        this.#voidAttempts++;
        this.#regularMs = Math.min(this.#regularMs, now + VOID_RETRY_MS);
        this.#listener.onVoid(this.kind, outcome.lagMs);
      }
    } else {
      this.#voidAttempts = 0;
      this.#take(outcome, isEarly, now - startMs);
    }
    this.reschedule();
  }

  /** @returns the outcome of the last attempt, and the greatest lag of our event loop during it */
  async #ask(instance: ProbedInstance, tries: number, signal: AbortSignal): Promise<ProbeOutcome & { lagMs: number }> {
    const target = this.#execCommand ? { ...instance, execCommand: this.#execCommand } : instance;
    for (let tried = 1; ; tried++) {
      const closeWindow = this.#deps.loopLag.openWindow();
      const outcome = await this.#deps.prober.attempt(this.probe, target, signal);
      const lagMs = closeWindow();
      if (outcome.result !== "unknown" || tried >= tries || signal.aborted) return { ...outcome, lagMs };
    }
  }

  #take(
    { lagMs: _, isTimeout: _isTimeout, ...outcome }: ProbeOutcome & { lagMs: number },
    isEarly: boolean,
    durationMs: number,
  ): void {
    if (isEarly && !isSuccess(outcome)) return;
    this.#listener.onAttempt(this.kind, outcome, durationMs);
    if (outcome.result === "unknown") return;
    const before = this.#state.result;
    const result = isSuccess(outcome) ? "success" : "failure";
    this.#state = countAttempt(this.kind, this.probe, this.#state, result);
    if (this.#state.result !== undefined && this.#state.result !== before) {
      this.#listener.onResult(this.kind, this.#state.result);
    }
  }

  #earlyFrom(fromMs: number): number[] {
    return earlyAttemptsMs(this.kind, this.probe).map((delayMs) => fromMs + delayMs);
  }
}

const isSuccess = ({ result }: ProbeOutcome) => result === "success" || result === "warning";
