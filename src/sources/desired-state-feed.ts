import { ChangeLogger } from "../logging/change-logger.ts";
import type { DesiredState } from "../model/desired-pod.ts";
import type { Finding } from "../model/finding.ts";
import type { Logger } from "../model/logger.ts";
import type { CheckpointStore, ObjectsByText } from "./checkpoint-store.ts";
import { type Duplicate, mergeSources } from "./merge-sources.ts";
import type { Source, SourceSet, SourceStatus } from "./source-set.ts";

export interface FeedInfo {
  /**
   * Every source has spoken and no text is unknown: containers of ours that belong to no pod are orphans. Before that
   * nothing that is not in the state may be removed as one.
   */
  isComplete: boolean;
  findings: readonly Finding[];
  duplicates: readonly Duplicate[];
}

/** A source whose sets can be kept. */
export interface FeedSource extends Source {
  /** Path or URL, not masked: tells sources apart, is never shown. */
  readonly key: string;
  /** What it wants now by text; undefined when there is nothing worth keeping. */
  objectsByFile(): ObjectsByText | undefined;
}

/** What reading everything once brought. */
export interface ReadOnceResult extends FeedInfo {
  state: DesiredState;
  /** One line for each source that could not be read at all. */
  failures: string[];
}

export interface DesiredStateFeedDeps {
  /** In the order in which they win against each other. */
  sources: readonly FeedSource[];
  /** Absent: nothing is kept (--runonce). */
  checkpoints?: CheckpointStore;
  logger: Logger;
}

/** All sources together, as one desired state that changes. */
export class DesiredStateFeed {
  readonly #deps: DesiredStateFeedDeps;
  readonly #facts: ChangeLogger;
  readonly #sets: (SourceSet | undefined)[];
  readonly #listeners = new Set<(state: DesiredState, info: FeedInfo) => void>();
  #last: { state: DesiredState; info: FeedInfo } | undefined;

  constructor(deps: DesiredStateFeedDeps) {
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
    this.#sets = deps.sources.map(() => undefined);
  }

  /**
   * Begins to look and to watch; the first states come at once for files. Without any source the state is empty and
   * complete: nothing shall run.
   */
  start(): void {
    if (this.#deps.sources.length === 0) this.#publish();
    this.#deps.sources.forEach((source, index) => {
      source.start((set) => this.#onSet(index, set));
    });
  }

  /** Called with every new state, at once with the one there is. Returns the way to stop that. */
  onChange(listener: (state: DesiredState, info: FeedInfo) => void): () => void {
    this.#listeners.add(listener);
    if (this.#last) listener(this.#last.state, this.#last.info);
    return () => this.#listeners.delete(listener);
  }

  /** Lets go of everything and writes what is still to be kept. */
  async stop(): Promise<void> {
    this.#listeners.clear();
    await Promise.all(this.#deps.sources.map((source) => source.stop()));
    await this.#deps.checkpoints?.flush();
  }

  /** In the order of the sources; for `/healthz?verbose` and metrics. */
  status(): SourceStatus[] {
    return this.#deps.sources.map((source) => source.status());
  }

  /** Reads every source once, side by side, instead of `start`. Rejects only when `signal` aborts. */
  async readOnce(signal: AbortSignal): Promise<ReadOnceResult> {
    const outcomes = await Promise.allSettled(this.#deps.sources.map((source) => source.readOnce(signal)));
    signal.throwIfAborted();
    const merged = mergeSources(
      outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : undefined)),
    );
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === "rejected" ? [(outcome.reason as Error).message] : [],
    );
    return { ...merged, failures };
  }

  #onSet(index: number, set: SourceSet): void {
    this.#sets[index] = set;
    const source = this.#deps.sources[index]!;
    const texts = source.objectsByFile();
    if (texts) this.#deps.checkpoints?.save(source.key, texts);
    this.#publish();
  }

  #publish(): void {
    const { state, findings, duplicates, isComplete } = mergeSources(this.#sets);
    const said = new Set<string>();
    for (const { message } of duplicates) {
      said.add(`duplicate:${message}`);
      this.#facts.log(`duplicate:${message}`, "warn", message);
    }
    this.#facts.prune("duplicate:", said);
    this.#last = { state, info: { isComplete, findings, duplicates } };
    for (const listener of this.#listeners) listener(this.#last.state, this.#last.info);
  }
}
