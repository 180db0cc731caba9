import { basename } from "node:path";
import { nextTurn, TurnPace } from "../base/concurrency/turn-pace.ts";
import type { ChangeLogger } from "../base/logging/change-logger.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Finding } from "../base/model/finding.ts";
import type { Logger } from "../base/model/logger.ts";
import { type PodFullName, podFullName } from "../base/model/pod.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { ManifestResult } from "../manifest/object-reading.ts";
import { refuseManifest } from "../manifest/read-manifest.ts";
import { compareNames, type FileIdentity, looksLikeManifest, type ManifestSnapshot } from "./manifest-files.ts";
import {
  describeFinding,
  EMPTY_OBJECTS,
  EMPTY_SET,
  hasErrors,
  isEmptyObjects,
  joinLocations,
  keepLastGood,
  logFindings,
  type Objects,
  type ReadText,
  type SourceSet,
  staleNames,
} from "./source-set.ts";

/** Longest time until a text that is parsed in the background is read again, should its end be missed. */
const PARSE_LIMIT_MS = 120_000;

/** Texts that are taken in one turn of the event loop: 3,000 small ones together take a third of a second. */
const TEXT_BYTES_PER_TURN = 128 * 1024;
/** Added to the length of each text, for the lines of the log and the like. */
const TEXT_BYTES = 4096;

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
  readonly #pace = new TurnPace(TEXT_BYTES_PER_TURN);
  #assembled: SourceSet = EMPTY_SET;

  constructor(deps: FileRecordsDeps) {
    this.#deps = deps;
    this.#parser = new ManifestParser(deps.read, deps.onParsed);
    this.#reporter = new ManifestReporter(deps.logger, deps.facts);
  }

  get isEmpty(): boolean {
    return this.#records.size === 0;
  }

  /** Whether a file wants something; for a source that was never read, what its checkpoint wants. */
  get wantsAnything(): boolean {
    return [...this.#records.values()].some(({ live }) => !isEmptyObjects(live));
  }

  /** The texts that need not be read, or not be taken, again. */
  known(): ReadonlyMap<string, { hash: string; identity: FileIdentity | undefined }> {
    return new Map([...this.#records].map(([path, { identity, hash }]) => [path, { identity, hash }]));
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
   * Takes the files that a read of the source found, as many as are fit for one turn of the event loop; yields the next turn.
   * @returns after how many milliseconds something unsettled must be read again
   */
  *examine({ listing, contents }: ManifestSnapshot): Generator<Promise<void>, number | undefined, void> {
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
          if (!record || !content.identity) break;
          delete record.pending;
          remember(record, content.identity, this.#ageOf(content.identity));
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
          if (!record && !isGiven && !looksLikeManifest(path, content.bytes)) {
            skipped.set(path, "its text is not a manifest");
            break;
          }
          changed.push({ path, isGiven, ...content, ageMs: this.#ageOf(content.identity) });
          present.add(path);
          break;
        }
        default:
          content satisfies never;
      }
    }
    this.#reporter.reportSkipped(skipped);
    const retries: number[] = [];
    for (const file of changed) {
      const turn = this.#pace.enter(TEXT_BYTES + file.bytes.length);
      if (turn) yield turn;
      const retryMs = this.#accept(file);
      if (retryMs !== undefined) retries.push(retryMs);
    }
    if (changed.length * TEXT_BYTES > TEXT_BYTES_PER_TURN) yield nextTurn();
    retries.push(...this.#examineMissing(present, dangling));
    return retries.length > 0 ? Math.min(...retries) : undefined;
  }

  /** Takes what the checkpoint says; for a source that cannot be read. */
  restoreAll(): boolean {
    for (const [path, live] of this.#deps.lastKnownGood() ?? []) {
      this.#newRecord(path).live = live;
    }
    return this.#records.size > 0;
  }

  /** The same set while nothing has changed. @param unreadable why the source cannot be read; then every pod is stale. */
  assemble(unreadable = ""): SourceSet {
    const set = assembleFiles(this.#records, unreadable);
    if (!Bun.deepEquals(set, this.#assembled)) this.#assembled = set;
    return this.#assembled;
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

  /** Milliseconds since the last write. */
  #ageOf({ mtimeNs }: FileIdentity): number {
    return this.#deps.clock.now().getTime() - Number(mtimeNs / 1_000_000n);
  }

  #noteUnreadable(path: string, message: string): void {
    const record = this.#records.get(path) ?? this.#newRecord(path);
    delete record.identity;
    if (record.hash === message) return;
    const live = record.hash === "" ? this.#restore(path, record) : record.live;
    const names = live.pods.map(({ pod }) => podFullName(pod.metadata));
    this.#settle(path, record, message, live, refuse(path, message).findings, names);
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
    // A new file that has not settled may describe the pods of a missing one.
    const { isUnsettled } = this;
    for (const [path, record] of this.#records) {
      if (present.has(path)) {
        delete record.missingSinceMs;
        continue;
      }
      record.missingSinceMs ??= now;
      const leftMs = removalSettleMs(now - record.missingSinceMs, isUnsettled);
      if (leftMs > 0) {
        retries.push(leftMs);
        continue;
      }
      if (dangling.has(path)) {
        // The name is still there, so the manifest was not removed.
        delete record.missingSinceMs;
        this.#noteUnreadable(path, "is a symbolic link whose target is missing");
        continue;
      }
      this.#records.delete(path);
      this.#parser.forget(path);
      this.#reporter.reportGone(path);
    }
    return retries;
  }
}

/** How long a file must be missing before its pods are removed: editors, git and `rm FILE && curl -o FILE` remove it for a moment. */
const REMOVAL_SETTLE_MS = 1_000;
/** The same while another new file has not settled: the file may have been moved. */
const LONGEST_REMOVAL_SETTLE_MS = 10_000;
/** How long a file must not be written to before its text counts: a text that reads well may still be half of it. */
const WRITE_SETTLE_MS = 100;
/** How long a text with errors must stay the same before it counts as wrong rather than half written. */
const ERROR_SETTLE_MS = 300;
/** A text with errors that is older than this counts at once. */
const YOUNG_MS = 10_000;

interface NewText {
  identity: FileIdentity;
  /** Since its last write. Unit: milliseconds; below zero when the clock was set back. */
  ageMs: number;
  seenMs: number;
}

/** How much longer a text must stay the same before it counts; 0: it counts now. Pure. */
export function writeSettleMs({ identity, ageMs, seenMs }: NewText): number {
  // Every write sets both times of a file. A later change time means that it was renamed or chmodded since, as the
  // last step of writing it. An age below zero means that the clock was set back, or is another machine's.
  if (identity.ctimeNs > identity.mtimeNs) return 0;
  return Math.max(0, WRITE_SETTLE_MS - Math.max(ageMs, seenMs));
}

/** The same for a text with errors: it may be half written. Pure. */
export function errorSettleMs({ ageMs, seenMs }: NewText): number {
  return Math.abs(ageMs) < YOUNG_MS ? Math.max(0, ERROR_SETTLE_MS - seenMs) : 0;
}

/** How much longer a missing file keeps its pods. @param isUnsettled a new file may describe the same pods. Pure. */
export function removalSettleMs(missingMs: number, isUnsettled: boolean): number {
  return Math.max(0, (isUnsettled ? LONGEST_REMOVAL_SETTLE_MS : REMOVAL_SETTLE_MS) - missingMs);
}

/** File systems count time in ticks, and two writes in one tick look like one: younger files are read again every time. */
const RACY_MS = 2_000;

interface FileRecord {
  /** Identity of the text last read; absent when it must be read again in any case. */
  identity?: FileIdentity;
  /** Hash of the newest settled text; "" before the first; a message when it could not be read. */
  hash: string;
  live: Objects;
  findings: readonly Finding[];
  stale: readonly PodFullName[];
  /** A newer text that is not settled, and its start time (monotonic). */
  pending?: { hash: string; sinceMs: number };
  missingSinceMs?: number;
  /** It had errors when it was first read; its earlier content is unknown. */
  isUnknown?: boolean;
}

/** Notes the identity of the text that was read, so that it is not read again while it stays the same. */
function remember(record: FileRecord, identity: FileIdentity, ageMs: number): void {
  if (ageMs >= RACY_MS) record.identity = identity;
  else delete record.identity;
}

/**
 * The set of a source: its files together, in the order of their paths. Pure.
 * @param unreadable why the source cannot be read; then every pod is stale. "": it can
 */
function assembleFiles(byPath: ReadonlyMap<string, FileRecord>, unreadable: string): SourceSet {
  const records = [...byPath].sort(([a], [b]) => compareNames(a, b)).map(([, record]) => record);
  // A file that is missing gives way to one that describes the same pods: it was moved.
  const here = records.filter((record) => record.missingSinceMs === undefined);
  const namesHere = new Set(here.flatMap(({ live }) => live.pods.map(({ pod }) => podFullName(pod.metadata))));
  const isMoved = (record: FileRecord) =>
    record.missingSinceMs !== undefined && record.live.pods.some(({ pod }) => namesHere.has(podFullName(pod.metadata)));
  const used = records.filter((record) => !isMoved(record));
  // A pod that is kept from an older text gives way to the same pod in a good file.
  const fresh = new Set(used.flatMap((record) => freshNames(record)));
  const isOutdated = (record: FileRecord, name: PodFullName) => record.stale.includes(name) && fresh.has(name);
  const podsOf = (record: FileRecord) =>
    record.live.pods.filter(({ pod }) => !isOutdated(record, podFullName(pod.metadata)));
  const stale = new Map<PodFullName, string>();
  for (const record of used) {
    const error = record.findings.find(({ severity }) => severity === "error");
    for (const { pod } of podsOf(record)) {
      const name = podFullName(pod.metadata);
      if (error && record.stale.includes(name)) stale.set(name, describeFinding(error));
      else if (!error && unreadable !== "") stale.set(name, unreadable);
    }
  }
  return {
    pods: used.flatMap(podsOf),
    configMaps: used.flatMap(({ live }) => live.configMaps),
    secrets: used.flatMap(({ live }) => live.secrets),
    objects: used.flatMap(({ live }) => live.objects ?? []),
    locations: joinLocations(used.map(({ live }) => live)),
    findings: used.flatMap(({ findings }) => findings),
    stale,
    isComplete: !used.some(({ isUnknown }) => isUnknown),
  };
}

function freshNames({ live, stale }: FileRecord): PodFullName[] {
  return live.pods.map(({ pod }) => podFullName(pod.metadata)).filter((name) => !stale.includes(name));
}

/** Skipped files that one log line names. */
const SKIPPED_SHOWN = 20;

class ManifestReporter {
  readonly #logger: Logger;
  readonly #facts: ChangeLogger;
  #skipped: ReadonlyMap<string, string> = new Map();

  constructor(logger: Logger, facts: ChangeLogger) {
    this.#logger = logger;
    this.#facts = facts;
  }

  /** One line for what is new; hidden files are common, and go to the debug log. */
  reportSkipped(skipped: ReadonlyMap<string, string>): void {
    const isNews = (path: string) => this.#skipped.get(path) !== skipped.get(path);
    const news = [...skipped].filter(([path]) => isNews(path));
    this.#skipped = skipped;
    const logger = this.#logger;
    const isHidden = (path: string) => basename(path).startsWith(".");
    for (const [path, reason] of news.filter(([path]) => isHidden(path))) {
      logger.debug(`Manifests: skipped "${path}": ${reason}`);
    }
    const visible = news.filter(([path]) => !isHidden(path));
    if (visible.length === 0) return;
    const shown = visible.slice(0, SKIPPED_SHOWN).map(([path, reason]) => `"${path}" (${reason})`);
    const more = visible.length > shown.length ? ` and ${visible.length - shown.length} more` : "";
    logger.info(`Manifests: skipped ${shown.join(", ")}${more}`);
  }

  /** Logs the findings of a file that are new or gone. */
  report(path: string, record: Pick<FileRecord, "findings" | "stale">): void {
    const facts = this.#facts;
    const logged = logFindings(facts, `file:${path}:`, record.findings, record.stale);
    const staleKey = `file:${path}:stale`;
    if (record.stale.length > 0) {
      logged.add(staleKey);
      facts.note(staleKey, "");
    } else facts.resolve(staleKey, `${path}: is good again`);
    facts.prune(path, logged);
  }

  reportGone(path: string): void {
    this.#facts.prune(path, new Set());
    this.#logger.info(`Manifests: "${path}" is gone: what no other file describes is removed`);
  }
}

interface Parsing {
  hash: string;
  done: Promise<void>;
  result?: ManifestResult;
}

interface ManifestText {
  path: string;
  isGiven: boolean;
  bytes: Uint8Array;
  hash: string;
}

/** Parses the texts of a source; long ones in the background, one per file. */
class ManifestParser {
  readonly #read: ReadText;
  readonly #onParsed: () => void;
  readonly #parsing = new Map<string, Parsing>();

  /** @param onParsed a text that is parsed in the background is ready: {@link parse} has its result */
  constructor(read: ReadText, onParsed: () => void) {
    this.#read = read;
    this.#onParsed = onParsed;
  }

  /** Resolves when the next text that is parsed in the background is ready; undefined when there is none. */
  next(): Promise<void> | undefined {
    const open = [...this.#parsing.values()].filter(({ result }) => !result);
    return open.length === 0 ? undefined : Promise.race(open.map(({ done }) => done));
  }

  /** undefined while the text is parsed in the background. */
  parse(text: ManifestText): ManifestResult | undefined {
    if (isBlank(text.bytes)) return blankFile(text);
    const { path, bytes, hash } = text;
    const known = this.#parsing.get(path);
    if (known?.hash === hash) {
      if (known.result) this.#parsing.delete(path);
      return known.result;
    }
    const result = this.#read(bytes, path);
    if (!(result instanceof Promise)) {
      this.#parsing.delete(path);
      return result;
    }
    const parsing: Parsing = {
      hash,
      done: result
        .catch((error: unknown) => refuse(path, messageOf(error)))
        .then((parsed) => {
          parsing.result = parsed;
          this.#onParsed();
        }),
    };
    this.#parsing.set(path, parsing);
    return undefined;
  }

  forget(path: string): void {
    this.#parsing.delete(path);
  }
}

/** A file that is refused as a whole. */
const refuse = (file: string, message: string): ManifestResult =>
  refuseManifest({ file, nodeName: "", source: "file" }, message);

const isBlank = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));

/** An empty file is what a crash or a full disk leaves. */
function blankFile({ path, isGiven }: ManifestText): ManifestResult {
  const fix = isGiven ? "write a List without items" : "remove the file";
  return refuse(
    path,
    `is empty: a manifest is an object with apiVersion, kind, metadata and spec; to remove its pods, ${fix}`,
  );
}
