import { type FileSystemId, isSameFileSystem } from "../base/files/mount-points.ts";
import { ChangeLogger } from "../base/logging/change-logger.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import { type Checkpoint, type FeedSource, sourceId } from "./checkpoint-store.ts";
import { FileRecords } from "./file-records.ts";
import type { KnownFile, ManifestSnapshot } from "./manifest-files.ts";
import { PathWatch } from "./path-watch.ts";
import { isEmptyObjects, type ReadText, SourceReads, type SourceSet, type SourceStatus } from "./source-set.ts";

/** How long a directory must be quiet after an event: a copy of 500 files is one read. */
const DEBOUNCE_MS = 10;
/** A directory that is never quiet is read after this time. */
const MAX_DEBOUNCE_MS = 500;

export interface FileSourceDeps {
  path: string;
  read: ReadText;
  clock: Clock;
  logger: Logger;
  checkFrequencyMs: number;
  /** The objects of each file when this source was last read, also by an earlier process. */
  lastKnownGood: () => Checkpoint | undefined;
  /** Reads path and files; rejects when a file system does not respond. */
  readManifests: (path: string, known: ReadonlyMap<string, KnownFile>) => ManifestSnapshot | Promise<ManifestSnapshot>;
}

/**
 * Manifests in a directory (not below it), or one manifest file. Only a path that was read removes pods: one that is
 * missing, unreadable, or empty because nothing is mounted there any more keeps the last set.
 */
export class FileSource implements FeedSource {
  readonly kind = "file";
  readonly name: string;
  readonly id: string;
  readonly #deps: FileSourceDeps;
  readonly #facts: ChangeLogger;
  readonly #watch = new PathWatch(() => this.#onEvent());
  readonly #records: FileRecords;
  #emit: ((set: SourceSet) => void) | undefined;
  #emitted: SourceSet | undefined;
  #cancelTimer: (() => void) | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #debouncingSinceMs: number | undefined;
  #isReading = false;
  #stopped = false;
  readonly #reads = new SourceReads();
  /** The checkpoint while the files are examined: loading it for each broken file takes seconds. */
  #known: { texts: Checkpoint["texts"] | undefined } | undefined;
  #place: FileSystemId | undefined;

  constructor(deps: FileSourceDeps) {
    this.name = deps.path;
    this.id = sourceId(deps.path);
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
    this.#records = new FileRecords({
      read: deps.read,
      clock: deps.clock,
      logger: deps.logger,
      facts: this.#facts,
      onParsed: () => this.#schedule(0),
      lastKnownGood: () => {
        this.#known ??= { texts: deps.lastKnownGood()?.texts };
        return this.#known.texts;
      },
    });
  }

  start(emit: (set: SourceSet) => void): void {
    this.#emit = emit;
    this.#startRead();
  }

  /** Reads until every file has settled. @throws Error for a path that cannot be read */
  async readOnce(signal: AbortSignal): Promise<SourceSet> {
    for (;;) {
      const taking = this.#take(await this.#read(), "once");
      let step = taking.next();
      for (; !step.done; step = taking.next()) await step.value;
      const retryMs = step.value;
      if (this.#reads.failure !== undefined) throw new Error(this.#reads.failure);
      if (retryMs === undefined) return this.#records.assemble();
      await (this.#records.nextParsed() ?? this.#deps.clock.sleep(retryMs, signal));
      signal.throwIfAborted();
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#watch.stop();
  }

  status(): SourceStatus {
    const { failure, lastSuccess } = this.#reads;
    const pods = this.#emitted?.pods.length ?? 0;
    const failed = lastSuccess === undefined && pods > 0 ? "restored" : "failing";
    const succeeded = lastSuccess === undefined ? "waiting" : "ok";
    return this.#reads.status(this, failure === undefined ? succeeded : failed, pods);
  }

  checkpoint(): Checkpoint {
    return { texts: this.#records.objectsByFile(), ...(this.#place ? { place: this.#place } : {}) };
  }

  #onEvent(): void {
    const now = this.#deps.clock.monotonicMs();
    this.#debouncingSinceMs ??= now;
    const longestMs = Math.max(0, this.#debouncingSinceMs + MAX_DEBOUNCE_MS - now);
    this.#schedule(Math.min(DEBOUNCE_MS, longestMs), true);
  }

  /** @param postpone moves an earlier read instead of keeping it: the directory is not quiet yet */
  #schedule(delayMs: number, postpone = false): void {
    if (this.#stopped) return;
    const atMs = this.#deps.clock.monotonicMs() + delayMs;
    if (!postpone && atMs >= this.#timerAtMs) return;
    this.#cancelTimer?.();
    this.#timerAtMs = atMs;
    this.#cancelTimer = this.#deps.clock.schedule(delayMs, () => this.#startRead());
  }

  #startRead(): void {
    this.#cancelTimer?.();
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    this.#debouncingSinceMs = undefined;
    if (this.#stopped) return;
    // A read that is under way may have missed what this one is for.
    if (this.#isReading) return this.#schedule(DEBOUNCE_MS);
    const read = this.#read();
    if (!(read instanceof Promise)) return this.#finishRead(read);
    this.#isReading = true;
    void read.then((snapshot) => {
      this.#isReading = false;
      this.#finishRead(snapshot);
    });
  }

  #read(): ManifestSnapshot | Promise<ManifestSnapshot> {
    const { path, clock, readManifests } = this.#deps;
    this.#reads.begin(clock.now());
    const read = readManifests(path, this.#records.known());
    if (!(read instanceof Promise)) return read;
    return read.catch((error: unknown): ManifestSnapshot => {
      const reason = messageOf(error);
      const message = `"${path}" cannot be read: ${reason}`;
      return { listing: { kind: "unreadable", message, reason }, contents: new Map() };
    });
  }

  #finishRead(snapshot: ManifestSnapshot, taking = this.#take(snapshot, "supervise")): void {
    if (this.#stopped) return;
    const step = taking.next();
    this.#isReading = !step.done;
    if (!step.done) return void step.value.then(() => this.#finishRead(snapshot, taking));
    const retryMs = step.value ?? Number.POSITIVE_INFINITY;
    this.#schedule(Math.min(retryMs, this.#deps.checkFrequencyMs));
    // Not for a file system that does not respond: this thread would wait for it, too. What happened before the watch
    // was set up is found by a second read.
    if (snapshot.listing.kind !== "unreadable" && this.#watch.arm([this.name])) this.#schedule(0);
    this.#emitIfNew();
  }

  #emitIfNew(): void {
    // A source that was never read has no set to emit: a set is complete, so the pods that it leaves out are removed.
    if (this.#reads.failure !== undefined && this.#records.isEmpty) return;
    if (this.#emitted === undefined && this.#records.isUnsettled) return;
    const set = this.#records.assemble(this.#reads.failure);
    if (set === this.#emitted) return;
    this.#emitted = set;
    this.#emit?.(set);
  }

  /**
   * Brings the records up to date; yields the next turn where there is much to do.
   * @returns after how many milliseconds something unsettled must be read again
   */
  *#take(
    snapshot: ManifestSnapshot,
    purpose: "supervise" | "once",
  ): Generator<Promise<void>, number | undefined, void> {
    const failure = this.#whyNotRead(snapshot);
    this.#reads.end(failure);
    if (failure !== undefined) {
      if (this.#records.isEmpty && purpose === "supervise" && this.#records.restoreAll()) {
        this.#place = this.#deps.lastKnownGood()?.place;
        this.#deps.logger.warn(`Manifests: the last good ones of "${this.name}", from before this start, are used`);
      }
      const effect = this.#records.wantsAnything
        ? "its pods stay as they are until it can be read"
        : "no pods come from it until it can be read";
      if (purpose === "supervise") this.#facts.log("source", "warn", `Manifests: ${failure}; ${effect}`);
      return undefined;
    }
    if (snapshot.listing.kind === "directory") this.#place = snapshot.listing.place;
    this.#facts.resolve("source", `Manifests: "${this.name}" can be read again`);
    const retryMs = yield* this.#records.examine(snapshot);
    this.#known = undefined;
    return retryMs;
  }

  #whyNotRead({ listing, contents }: ManifestSnapshot): string | undefined {
    if (listing.kind === "missing" || listing.kind === "unreadable") return listing.message;
    if (listing.kind === "file") {
      const content = contents.get(listing.files[0])?.kind;
      return content === "missing" || content === "dangling" ? `"${this.name}" does not exist` : undefined;
    }
    if (listing.files.length > 0) return undefined;
    const before = this.#place ?? this.#deps.lastKnownGood()?.place;
    if (before === undefined || isSameFileSystem(before, listing.place)) return undefined;
    const hadPods = this.#records.isEmpty ? hasObjects(this.#deps.lastKnownGood()) : this.#records.wantsAnything;
    if (!hadPods) return undefined;
    return `"${this.name}" is empty and on another file system than before (a disk that is not mounted?)`;
  }
}

const hasObjects = (checkpoint: Checkpoint | undefined): boolean =>
  [...(checkpoint?.texts.values() ?? [])].some((objects) => !isEmptyObjects(objects));
