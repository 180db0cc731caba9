import { createHash } from "node:crypto";
import { ChangeLogger } from "../base/logging/change-logger.ts";
import { backOffMs } from "../base/model/back-off.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { maskUrl } from "../base/text/url.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { ManifestResult } from "../manifest/object-reading.ts";
import { type Checkpoint, type FeedSource, sourceId } from "./checkpoint-store.ts";
import {
  describeFinding,
  EMPTY_OBJECTS,
  EMPTY_SET,
  isEmptyObjects,
  keepLastGood,
  logFindings,
  type Objects,
  objectsOf,
  type ReadText,
  SourceReads,
  type SourceSet,
  type SourceStatus,
  staleNames,
} from "./source-set.ts";
import { fetchManifest, type UrlFetchDeps, type UrlOptions, type Validators } from "./url-fetch.ts";

/** First pause while there was no response yet, for a network that comes up late. Doubles up to the usual period. */
const FIRST_RETRY_MS = 1_000;
/** How long the first response may take until the checkpoint is used. */
const RESTORE_AFTER_MS = 3_000;

/** Failure of a URL whose text was read and is refused; the findings say why. */
export const BAD_TEXT = "responded with a text that has errors";

export interface UrlSourceDeps extends UrlFetchDeps {
  url: string;
  options: UrlOptions & Pick<KubeletOptions, "httpCheckFrequencyMs">;
  read: ReadText;
  clock: Clock;
  logger: Logger;
  /** The objects of the URL's last response, also to an earlier process. */
  lastKnownGood: () => Checkpoint | undefined;
}

/** Manifests from a URL, polled. While it does not respond, or responds with a bad text, the last set stays. */
export class UrlSource implements FeedSource {
  readonly kind = "http";
  /** Masked. */
  readonly name: string;
  readonly id: string;
  readonly #deps: UrlSourceDeps;
  readonly #facts: ChangeLogger;
  readonly #stop = new AbortController();
  #emit: ((set: SourceSet) => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #cancelRestore: (() => void) | undefined;
  #validators: Validators = {};
  /** Hash of the text last read; the next field is what was wrong with it. */
  #hash = "";
  #textFailure: string | undefined;
  /** undefined before the first good response. */
  #set: SourceSet | undefined;
  #isRestored = false;
  readonly #reads = new SourceReads();
  #emittedFailure: string | undefined;
  #failuresInARow = 0;

  constructor(deps: UrlSourceDeps) {
    this.#deps = deps;
    this.name = maskUrl(deps.url);
    this.id = sourceId(deps.url);
    this.#facts = new ChangeLogger(deps.logger);
  }

  start(emit: (set: SourceSet) => void): void {
    this.#emit = emit;
    this.#cancelRestore = this.#deps.clock.schedule(RESTORE_AFTER_MS, () => this.#restore("has not responded yet"));
    void this.#poll();
  }

  async readOnce(signal: AbortSignal): Promise<SourceSet> {
    const failure = await this.#fetch(AbortSignal.any([signal, this.#stop.signal]));
    if (failure !== undefined) throw new Error(`Manifests: ${this.name} ${failure}`);
    return this.#set ?? EMPTY_SET;
  }

  async stop(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelRestore?.();
    this.#stop.abort(new Error("kubelet-ts is stopping"));
  }

  status(): SourceStatus {
    const isFailing = this.#reads.failure !== undefined;
    const state = this.#isRestored ? "restored" : isFailing ? "failing" : this.#set ? "ok" : "waiting";
    return this.#reads.status(this, state, this.#set?.pods.length ?? 0);
  }

  /** undefined before the first good response. */
  checkpoint(): Checkpoint | undefined {
    if (!this.#set || this.#isRestored) return undefined;
    return { texts: new Map([[this.name, objectsOf(this.#set)]]) };
  }

  async #poll(): Promise<void> {
    const before = this.#set;
    const failure = await this.#fetch(this.#stop.signal).catch((error: Error) => error.message);
    if (this.#stop.signal.aborted) return;
    this.#failuresInARow = failure === undefined ? 0 : this.#failuresInARow + 1;
    this.#cancelTimer = this.#deps.clock.schedule(this.#delayMs(), () => void this.#poll());
    if (failure !== undefined && this.#set === undefined) this.#restore(failure);
    if (this.#set && (this.#set !== before || this.#reads.failure !== this.#emittedFailure)) this.#publish(this.#set);
  }

  #publish(set: SourceSet): void {
    this.#cancelRestore?.();
    this.#emittedFailure = this.#reads.failure;
    this.#emit?.(set);
  }

  #delayMs(): number {
    const checkFrequencyMs = this.#deps.options.httpCheckFrequencyMs;
    if (this.#failuresInARow === 0) return checkFrequencyMs;
    const isFirst = this.#reads.lastSuccess === undefined;
    const policy = { first: isFirst ? FIRST_RETRY_MS : checkFrequencyMs, longest: checkFrequencyMs };
    // Jitter: many machines that lost one server at the same time.
    return backOffMs(this.#failuresInARow - 1, policy) * (0.75 + 0.5 * Math.random());
  }

  async #fetch(signal: AbortSignal): Promise<string | undefined> {
    const { clock, read, url } = this.#deps;
    this.#reads.begin(clock.now());
    let failure: string | undefined;
    try {
      const response = await fetchManifest(url, this.#deps, this.#validators, signal);
      if (response.kind === "bytes") {
        const hash = createHash("sha256").update(response.bytes).digest("hex");
        if (hash !== this.#hash) this.#textFailure = this.#take(await read(response.bytes, this.name));
        this.#hash = hash;
        // Not before the text was read: with these validators the server leaves out a text that has not changed.
        this.#validators = response.validators;
        failure = this.#textFailure;
      } else {
        failure =
          this.#hash === "" ? "responded with 304 (not modified) to a request without a condition" : this.#textFailure;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      failure = (error as Error).message;
    }
    this.#reads.end(failure);
    if (failure === undefined) {
      this.#facts.resolve("url", `Manifests: ${this.name} responds again`);
    } else if (failure === BAD_TEXT) {
      this.#facts.note("url", failure);
    } else {
      this.#facts.log("url", "warn", `Manifests: ${this.name} ${failure}; its pods stay as they are`);
    }
    return failure;
  }

  /** Takes a new text. @returns what is wrong with it, if anything */
  #take(result: ManifestResult): string | undefined {
    const { findings } = result;
    const error = findings.find(({ severity }) => severity === "error");
    const before = this.#set ?? (error && this.#lastKnownGood());
    const live = keepLastGood(before ?? EMPTY_OBJECTS, result);
    const stale = new Map(error && staleNames(live, result).map((name) => [name, describeFinding(error)]));
    this.#facts.prune("findings", logFindings(this.#facts, "finding:", findings, [...stale.keys()]));
    if (error && isEmptyObjects(result) && !before) return BAD_TEXT;
    this.#set = { ...live, findings, stale, isComplete: !error || before !== undefined };
    this.#isRestored = false;
    return error && BAD_TEXT;
  }

  #lastKnownGood(): Objects | undefined {
    return this.#deps.lastKnownGood()?.texts.get(this.name);
  }

  #restore(why: string): void {
    if (this.#set || this.#stop.signal.aborted) return;
    const restored = this.#lastKnownGood();
    if (!restored) return;
    this.#set = { ...EMPTY_SET, ...restored };
    this.#isRestored = true;
    this.#reads.failure ??= why;
    this.#deps.logger.warn(`Manifests: ${this.name} ${why}: its last good response, from before this start, is used`);
    this.#publish(this.#set);
  }
}
