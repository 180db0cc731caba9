import { createHash } from "node:crypto";
import type { ChangeLogger } from "../base/logging/change-logger.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Finding } from "../base/model/finding.ts";
import { type PodFullName, podFullName } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import { assembleFiles, type FileRecord, remember } from "./file-record.ts";
import { type FileIdentity, looksLikeManifest, type ManifestSnapshot } from "./manifest-files.ts";
import { ManifestParser, type ManifestText, wholeFile } from "./manifest-parser.ts";
import { ManifestReporter } from "./manifest-reporter.ts";
import { errorSettleMs, removalSettleMs, writeSettleMs } from "./settling.ts";
import {
  EMPTY_OBJECTS,
  hasErrors,
  isEmptyObjects,
  keepLastGood,
  type Objects,
  type ReadText,
  type SourceSet,
  staleNames,
} from "./source-set.ts";

/** Longest time until a text that is parsed in the background is read again, should its end be missed. */
const PARSE_LIMIT_MS = 120_000;

interface FileRecordsDeps {
  read: ReadText;
  clock: Clock;
  logger: Logger;
  facts: ChangeLogger;
  /** A text that is parsed in the background is ready: the source must be read again. */
  onParsed: () => void;
  /** The checkpoint: what each file wanted when this source was last read; undefined when that is not known. */
  lastKnownGood: () => ReadonlyMap<string, Objects> | undefined;
}

interface ChangedFile extends ManifestText {
  identity: FileIdentity;
  ageMs: number;
}

/** State of each manifest file of one source; decides which texts take effect. */
export class FileRecords {
  readonly #deps: FileRecordsDeps;
  readonly #records = new Map<string, FileRecord>();
  readonly #parser: ManifestParser;
  readonly #reporter: ManifestReporter;
  #revision = 0;

  constructor(deps: FileRecordsDeps) {
    this.#deps = deps;
    this.#parser = new ManifestParser(deps.read, deps.onParsed);
    this.#reporter = new ManifestReporter(deps.logger, deps.facts);
  }

  /** Grows with every change of what {@link assemble} returns. */
  get revision(): number {
    return this.#revision;
  }

  get isEmpty(): boolean {
    return this.#records.size === 0;
  }

  /** Whether a file wants something; for a source that was never read, what its checkpoint wants. */
  get wantsAnything(): boolean {
    return [...this.#records.values()].some(({ live }) => !isEmptyObjects(live));
  }

  /** Identities of the texts that need not be read again. */
  identities(): ReadonlyMap<string, FileIdentity> {
    const known = new Map<string, FileIdentity>();
    for (const [path, { identity }] of this.#records) if (identity) known.set(path, identity);
    return known;
  }

  /** Resolves when the next text that is parsed in the background is ready; undefined when there is none. */
  nextParsed(): Promise<void> | undefined {
    return this.#parser.next();
  }

  /** A file was seen whose first text has not settled: the set is not complete yet. */
  get isUnsettled(): boolean {
    return [...this.#records.values()].some(({ hash, pending }) => hash === "" && pending !== undefined);
  }

  objectsByFile(): ReadonlyMap<string, Objects> {
    return new Map([...this.#records].map(([path, { live }]) => [path, live]));
  }

  /**
   * Takes the files that a read of the source found.
   * @returns after how many milliseconds something unsettled must be read again
   */
  examine({ listing, contents }: ManifestSnapshot): number | undefined {
    const isGiven = listing.kind === "file";
    const present = new Set<string>();
    const dangling = new Set<string>();
    const skipped = new Map<string, string>();
    const changed: ChangedFile[] = [];
    if (listing.kind === "directory") for (const { path, reason } of listing.skipped) skipped.set(path, reason);
    for (const [path, content] of contents) {
      const record = this.#records.get(path);
      switch (content.kind) {
        case "same":
          present.add(path);
          break;
        case "missing":
          break;
        case "dangling":
          if (record) dangling.add(path);
          else skipped.set(path, "a symbolic link whose target is missing");
          break;
        case "not-a-file":
          if (!isGiven && !record) {
            skipped.set(path, content.what);
            break;
          }
          present.add(path);
          this.#noteUnreadable(path, `is ${content.what}`);
          break;
        case "unreadable":
          present.add(path);
          this.#noteUnreadable(path, content.message);
          break;
        case "content": {
          const { identity, bytes } = content;
          const ageMs = this.#deps.clock.now().getTime() - Number(identity.mtimeNs / 1_000_000n);
          const hash = createHash("sha256").update(bytes).digest("hex");
          if (record?.hash === hash) {
            delete record.pending;
            remember(record, identity, ageMs);
          } else if (!record && !isGiven && !looksLikeManifest(path, bytes)) {
            skipped.set(path, "its text is not a manifest");
            break;
          } else changed.push({ path, isGiven, bytes, identity, hash, ageMs });
          present.add(path);
          break;
        }
        default:
          content satisfies never;
      }
    }
    this.#reporter.reportSkipped(skipped);
    const accepted = changed.map((file) => this.#accept(file)).filter((retryMs) => retryMs !== undefined);
    const retries = [...accepted, ...this.#examineMissing(present, dangling)];
    return retries.length > 0 ? Math.min(...retries) : undefined;
  }

  /** Takes what the checkpoint says; for a source that cannot be read. */
  restoreAll(): boolean {
    for (const [path, live] of this.#deps.lastKnownGood() ?? []) {
      const record = this.#newRecord(path);
      record.live = live;
      this.#revision++;
    }
    return this.#records.size > 0;
  }

  /** @param outOfReach why the source cannot be read; then every pod is stale. */
  assemble(outOfReach?: string): SourceSet {
    return assembleFiles(this.#records, outOfReach);
  }

  /** Takes a new text, or returns after how many milliseconds it must be read again. */
  #accept(file: ChangedFile): number | undefined {
    const now = this.#deps.clock.monotonicMs();
    const known = this.#records.get(file.path);
    const sinceMs = known?.pending?.hash === file.hash ? known.pending.sinceMs : now;
    const wait = (delayMs: number): number => {
      const record = known ?? this.#newRecord(file.path);
      record.pending = { hash: file.hash, sinceMs };
      delete record.identity;
      return delayMs;
    };
    const text = { ...file, seenMs: now - sinceMs };
    const writtenMs = writeSettleMs(text);
    if (writtenMs > 0) return wait(writtenMs);
    const result = this.#parser.parse(file);
    if (!result) return wait(PARSE_LIMIT_MS);
    const isBad = hasErrors(result.findings);
    const wrongMs = isBad ? errorSettleMs(text) : 0;
    if (wrongMs > 0) return wait(wrongMs);
    const record = known ?? this.#newRecord(file.path);
    const before = isBad && record.hash === "" ? this.#restore(file.path, record) : record.live;
    if (!isBad) delete record.isUnknown;
    const live = keepLastGood(before, result);
    this.#settle(file.path, record, file.hash, live, result.findings, isBad ? staleNames(live, result) : []);
    remember(record, file.identity, file.ageMs);
    return undefined;
  }

  #noteUnreadable(path: string, message: string): void {
    const record = this.#records.get(path) ?? this.#newRecord(path);
    delete record.identity;
    if (record.hash === message) return;
    const live = record.hash === "" ? this.#restore(path, record) : record.live;
    const names = live.pods.map(({ pod }) => podFullName(pod.metadata));
    this.#settle(path, record, message, live, [wholeFile(path, message)], names);
  }

  #settle(
    path: string,
    record: FileRecord,
    hash: string,
    live: Objects,
    findings: readonly Finding[],
    stale: readonly PodFullName[],
  ): void {
    Object.assign(record, { hash, live, findings, stale });
    delete record.pending;
    this.#revision++;
    this.#reporter.report(path, record);
  }

  #newRecord(path: string): FileRecord {
    const record: FileRecord = { hash: "", live: EMPTY_OBJECTS, findings: [], stale: [] };
    this.#records.set(path, record);
    return record;
  }

  #restore(path: string, record: FileRecord): Objects {
    const known = this.#deps.lastKnownGood();
    record.isUnknown = known === undefined;
    const restored = known?.get(path);
    if (!restored) return record.live;
    // A file whose text was never good is in the checkpoint, too, as one that wants nothing.
    if (!isEmptyObjects(restored))
      this.#deps.logger.warn(`${path}: its last good text, from before this start, is used`);
    return restored;
  }

  #examineMissing(present: ReadonlySet<string>, dangling: ReadonlySet<string>): number[] {
    const now = this.#deps.clock.monotonicMs();
    const retries: number[] = [];
    for (const [path, record] of this.#records) {
      if (present.has(path)) {
        if (record.missingSinceMs !== undefined) this.#revision++;
        delete record.missingSinceMs;
        continue;
      }
      if (record.missingSinceMs === undefined) this.#revision++;
      record.missingSinceMs ??= now;
      // A new file that has not settled may describe the pods of this one.
      const leftMs = removalSettleMs(now - record.missingSinceMs, this.isUnsettled);
      if (leftMs > 0) {
        retries.push(leftMs);
        continue;
      }
      if (dangling.has(path)) {
        // The name is still there, so the manifest was not removed.
        delete record.missingSinceMs;
        this.#revision++;
        this.#noteUnreadable(path, "is a symbolic link whose target is missing");
        continue;
      }
      this.#records.delete(path);
      this.#parser.forget(path);
      this.#revision++;
      this.#reporter.reportGone(path);
    }
    return retries;
  }
}
