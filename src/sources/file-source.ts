import { ChangeLogger } from "../logging/change-logger.ts";
import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import { FileRecords } from "./file-records.ts";
import { listManifests } from "./manifest-files.ts";
import { PathWatch } from "./path-watch.ts";
import type { Objects, ReadText, Source, SourceSet, SourceStatus } from "./source-set.ts";

/** After an event the directory must be quiet for so long: a copy of 500 files is one look. */
const DEBOUNCE_MS = 10;
/** A directory that is never quiet is looked at all the same. */
const LONGEST_UNQUIET_MS = 500;

export interface FileSourceDeps {
  /** Absolute path of a directory or of one file. */
  path: string;
  read: ReadText;
  clock: Clock;
  logger: Logger;
  checkFrequencyMs: number;
  /** The checkpoint: what each file wanted when this source was last read, also by an earlier process. */
  lastKnownGood?: () => ReadonlyMap<string, Objects> | undefined;
}

/** Manifests in a directory (not below it), or one manifest file [S100]. A path that is missing is an empty set. */
export class FileSource implements Source {
  readonly kind = "file";
  readonly name: string;
  readonly key: string;
  readonly #deps: FileSourceDeps;
  readonly #facts: ChangeLogger;
  readonly #watch: PathWatch;
  readonly #records: FileRecords;
  #emit: ((set: SourceSet) => void) | undefined;
  #emitted: string | undefined;
  #cancelTimer: (() => void) | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #unquietSinceMs: number | undefined;
  #stopped = false;
  #isMissing = false;
  /** Why nothing can be looked at. */
  #unreadable: string | undefined;
  #looks = 0;
  #failures = 0;
  #lastAttempt: Date | undefined;
  #lastSuccess: Date | undefined;

  constructor(deps: FileSourceDeps) {
    this.name = deps.path;
    this.key = deps.path;
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
    this.#watch = new PathWatch(deps.path, () => this.#onEvent());
    this.#records = new FileRecords({
      read: deps.read,
      clock: deps.clock,
      logger: deps.logger,
      facts: this.#facts,
      lastKnownGood: () => deps.lastKnownGood?.(),
    });
  }

  start(emit: (set: SourceSet) => void): void {
    this.#emit = emit;
    this.#look();
  }

  /** Looks until every file has settled; here a path that does not exist is an error. */
  async readOnce(signal: AbortSignal): Promise<SourceSet> {
    for (;;) {
      const retryMs = this.#examine("once");
      if (this.#unreadable) throw new Error(this.#unreadable);
      if (this.#isMissing) throw new Error(`"${this.name}" does not exist`);
      if (retryMs === undefined) return this.#records.assemble();
      await this.#deps.clock.sleep(retryMs, signal);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#watch.stop();
  }

  status(): SourceStatus {
    const set = this.#records.assemble(this.#unreadable);
    const state = (): SourceStatus["state"] => {
      if (this.#unreadable) return this.#lastSuccess === undefined && set.pods.length > 0 ? "restored" : "failing";
      return this.#looks === 0 ? "waiting" : "ok";
    };
    return {
      kind: "file",
      name: this.name,
      state: state(),
      ...(this.#unreadable ? { message: this.#unreadable } : {}),
      pods: set.pods.length,
      ...(this.#lastSuccess ? { lastSuccess: this.#lastSuccess } : {}),
      ...(this.#lastAttempt ? { lastAttempt: this.#lastAttempt } : {}),
      looks: this.#looks,
      failures: this.#failures,
    };
  }

  /** What each file wants now, for the checkpoint. */
  objectsByFile(): ReadonlyMap<string, Objects> {
    return this.#records.objectsByFile();
  }

  #onEvent(): void {
    const now = this.#deps.clock.monotonicMs();
    this.#unquietSinceMs ??= now;
    const patienceMs = Math.max(0, this.#unquietSinceMs + LONGEST_UNQUIET_MS - now);
    this.#schedule(Math.min(DEBOUNCE_MS, patienceMs), true);
  }

  /** @param postpone an earlier appointment is moved rather than kept: the directory is not quiet yet. */
  #schedule(delayMs: number, postpone = false): void {
    if (this.#stopped) return;
    const atMs = this.#deps.clock.monotonicMs() + delayMs;
    if (!postpone && atMs >= this.#timerAtMs) return;
    this.#cancelTimer?.();
    this.#timerAtMs = atMs;
    this.#cancelTimer = this.#deps.clock.schedule(delayMs, () => this.#look());
  }

  #look(): void {
    if (this.#stopped) return;
    this.#cancelTimer?.();
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    this.#unquietSinceMs = undefined;
    // Armed first, so that what happens while we look is heard.
    this.#watch.arm();
    const retryMs = this.#examine() ?? Number.POSITIVE_INFINITY;
    this.#schedule(Math.min(retryMs, this.#deps.checkFrequencyMs));
    this.#emitIfNew();
  }

  #emitIfNew(): void {
    // A source that cannot answer says nothing, and the first answer is complete: what it leaves out is removed.
    if (this.#unreadable && this.#records.isEmpty) return;
    if (this.#emitted === undefined && this.#records.isUnsettled) return;
    const state = `${this.#records.revision} ${this.#unreadable ?? ""}`;
    if (state === this.#emitted) return;
    this.#emitted = state;
    this.#emit?.(this.#records.assemble(this.#unreadable));
  }

  /** Brings the records up to date. Returns after how long something unsettled is to be looked at again. */
  #examine(purpose: "supervise" | "once" = "supervise"): number | undefined {
    const { clock, path, logger } = this.#deps;
    this.#looks++;
    this.#lastAttempt = clock.now();
    const listing = listManifests(path);
    this.#isMissing = listing.kind === "missing";
    if (listing.kind === "unreadable") {
      this.#failures++;
      this.#unreadable = listing.message;
      if (purpose === "supervise") {
        this.#facts.log("source", "error", `Manifests: ${listing.message}; pods that came from there stay as they are`);
      }
      if (this.#records.isEmpty && this.#records.restoreAll()) {
        logger.warn(`Manifests: the last good ones of "${path}", from before this start, are used`);
      }
      return undefined;
    }
    this.#unreadable = undefined;
    this.#lastSuccess = this.#lastAttempt;
    this.#facts.resolve("source", `Manifests: "${path}" can be read again`);
    if (listing.kind === "missing") {
      // Who looks once does not wait for it, and is told by the error.
      if (purpose === "supervise") {
        this.#facts.log(
          "missing",
          "warn",
          `Manifests: "${path}" does not exist; no pods come from there until it does`,
        );
      }
      return this.#records.examine([], false);
    }
    this.#facts.resolve("missing", `Manifests: "${path}" is there now`);
    for (const skipped of listing.skipped) {
      this.#facts.log(
        `skip:${skipped.path}`,
        "debug",
        `Manifests: "${skipped.path}" is not looked at: ${skipped.reason}`,
      );
    }
    return this.#records.examine(listing.files, !listing.isDirectory);
  }
}
