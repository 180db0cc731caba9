import { createHash } from "node:crypto";
import type { ChangeLogger } from "../logging/change-logger.ts";
import type { ManifestResult } from "../manifest/manifest-result.ts";
import type { Clock } from "../model/clock.ts";
import type { Finding } from "../model/finding.ts";
import { type PodFullName, podFullName } from "../model/identity.ts";
import type { Logger } from "../model/logger.ts";
import { type FileIdentity, looksLikeManifest, readManifestFile } from "./manifest-files.ts";
import {
  describeFinding,
  EMPTY_OBJECTS,
  hasErrors,
  isEmptyObjects,
  keepLastGood,
  type Objects,
  type ReadText,
  type SourceSet,
  staleNames,
} from "./source-set.ts";

/** How long a file must be missing before its pods are removed: editors and git remove files for a moment. */
const REMOVAL_SETTLE_MS = 100;
/** How long a file must not be written to before its text counts: a text that reads well may still be half of it. */
const WRITE_SETTLE_MS = 100;
/** How long a text with errors must stay the same before it counts as wrong rather than half written. */
const ERROR_SETTLE_MS = 300;
/** A text with errors that is older than this counts at once. */
const YOUNG_MS = 10_000;
/** File systems count time in ticks, and two writes in one tick look like one: younger files are read at every look. */
const RACY_MS = 2_000;

export interface FileRecordsDeps {
  read: ReadText;
  clock: Clock;
  logger: Logger;
  facts: ChangeLogger;
  /** The checkpoint: what each file wanted when this source was last read; undefined when that is not known. */
  lastKnownGood: () => ReadonlyMap<string, Objects> | undefined;
}

interface FileRecord {
  /** Of the text last read; absent when it must be read again in any case. */
  identity?: FileIdentity;
  /** Of the newest settled text; "" before the first; a message where it could not be read. */
  hash: string;
  /** What is wanted by this file. */
  live: Objects;
  /** Of the newest settled text, also when it is bad. */
  findings: readonly Finding[];
  stale: readonly PodFullName[];
  /** A newer text that is not settled, since when (monotonic). */
  pending?: { hash: string; sinceMs: number };
  missingSinceMs?: number;
  /** It had errors from the first look on, and what it said before that is not known. */
  isUnknown?: boolean;
}

interface ChangedFile {
  path: string;
  bytes: Uint8Array;
  identity: FileIdentity;
  hash: string;
  ageMs: number;
}

/** What is known of each manifest file of one source; decides which texts count. */
export class FileRecords {
  readonly #deps: FileRecordsDeps;
  readonly #records = new Map<string, FileRecord>();
  #revision = 0;

  constructor(deps: FileRecordsDeps) {
    this.#deps = deps;
  }

  /** Grows whenever {@link assemble} would answer something else. */
  get revision(): number {
    return this.#revision;
  }

  get isEmpty(): boolean {
    return this.#records.size === 0;
  }

  /** A file was seen whose first text has not settled: the set is not complete yet. */
  get isUnsettled(): boolean {
    return [...this.#records.values()].some(({ hash, pending }) => hash === "" && pending !== undefined);
  }

  objectsByFile(): ReadonlyMap<string, Objects> {
    return new Map([...this.#records].map(([path, { live }]) => [path, live]));
  }

  /**
   * Looks at all files there are now.
   * @param isGiven the path is the source itself, whatever its name and text look like
   * @returns after how many milliseconds something unsettled is to be looked at again
   */
  examine(files: readonly string[], isGiven: boolean): number | undefined {
    const { clock } = this.#deps;
    const present = new Set<string>();
    const changed: ChangedFile[] = [];
    for (const path of files) {
      const record = this.#records.get(path);
      const content = readManifestFile(path, record?.identity);
      switch (content.kind) {
        case "same":
          present.add(path);
          break;
        case "missing":
          break;
        case "not-a-file":
          if (!isGiven) {
            this.#skip(path, content.what);
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
          const ageMs = clock.now().getTime() - Number(content.identity.mtimeNs / 1_000_000n);
          const hash = createHash("sha256").update(content.bytes).digest("hex");
          if (record?.hash === hash) {
            delete record.pending;
            remember(record, content.identity, ageMs);
          } else if (!record && !isGiven && !looksLikeManifest(path, content.bytes)) {
            this.#skip(path, "no manifest, by name or text");
            break;
          } else changed.push({ path, bytes: content.bytes, identity: content.identity, hash, ageMs });
          present.add(path);
          break;
        }
        default:
          content satisfies never;
      }
    }
    const accepted = changed.map((file) => this.#accept(file)).filter((retryMs) => retryMs !== undefined);
    const retries = [...accepted, ...this.#examineMissing(present)];
    return retries.length > 0 ? Math.min(...retries) : undefined;
  }

  /** Takes what was wanted before this start, where there is nothing to be read. */
  restoreAll(): boolean {
    for (const [path, live] of this.#deps.lastKnownGood() ?? []) {
      const record = this.#newRecord(path);
      record.live = live;
      this.#revision++;
    }
    return this.#records.size > 0;
  }

  /** @param outOfReach why no file can be looked at; then every pod is stale. */
  assemble(outOfReach?: string): SourceSet {
    const paths = [...this.#records.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const records = paths.map((path) => this.#records.get(path)!);
    // A file that is gone (perhaps only for a moment) gives way to one that describes the same pods: it was moved.
    const here = records.filter((record) => record.missingSinceMs === undefined);
    const namesHere = new Set(here.flatMap(({ live }) => live.pods.map(({ pod }) => podFullName(pod.metadata))));
    const isMoved = (record: FileRecord) =>
      record.missingSinceMs !== undefined &&
      record.live.pods.some(({ pod }) => namesHere.has(podFullName(pod.metadata)));
    const used = records.filter((record) => !isMoved(record));
    // So does what is only kept from an older text: its pod may have been moved to a good file.
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
        else if (!error && outOfReach) stale.set(name, outOfReach);
      }
    }
    return {
      pods: used.flatMap(podsOf),
      configMaps: used.flatMap(({ live }) => live.configMaps),
      secrets: used.flatMap(({ live }) => live.secrets),
      objects: used.flatMap(({ live }) => live.objects ?? []),
      findings: used.flatMap(({ findings }) => findings),
      stale,
      isComplete: !used.some(({ isUnknown }) => isUnknown),
    };
  }

  /** Takes a new text, or says after how long it is to be looked at again. */
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
    // Every write sets both times of a file. A later change time means that it was renamed or chmodded since, as the
    // last step of writing it. An age below zero means that the clock was set back, or is another machine's.
    const isMaybeWritten = file.identity.ctimeNs <= file.identity.mtimeNs;
    const quietMs = Math.max(file.ageMs, now - sinceMs);
    if (isMaybeWritten && quietMs < WRITE_SETTLE_MS) return wait(WRITE_SETTLE_MS - quietMs);
    const result = isBlank(file.bytes) ? blankFile(file.path) : this.#deps.read(file.bytes, file.path);
    const isBad = hasErrors(result.findings);
    if (isBad && Math.abs(file.ageMs) < YOUNG_MS && now - sinceMs < ERROR_SETTLE_MS) {
      return wait(ERROR_SETTLE_MS - (now - sinceMs));
    }
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
    this.#report(path, record);
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
    // A file whose text was never good is remembered, too: as one that wants nothing.
    if (!isEmptyObjects(restored)) {
      this.#deps.logger.warn(`${path}: its last good text, from before this start, is used`);
    }
    return restored;
  }

  #skip(path: string, reason: string): void {
    this.#deps.facts.log(`skip:${path}`, "debug", `Manifests: "${path}" is not looked at: ${reason}`);
  }

  #report(path: string, record: FileRecord): void {
    const { facts } = this.#deps;
    const said = new Set<string>();
    for (const finding of record.findings) {
      const key = `file:${path}:${finding.document}:${finding.field}:${finding.message}`;
      said.add(key);
      facts.log(key, finding.severity === "error" ? "error" : "warn", describeFinding(finding));
    }
    const staleKey = `file:${path}:stale`;
    if (record.stale.length > 0) {
      said.add(staleKey);
      const names = record.stale.map((name) => `"${name}"`).join(", ");
      facts.log(
        staleKey,
        "warn",
        `${path}: has errors; as it was before ${record.stale.length > 1 ? "stay" : "stays"} ${names}`,
      );
    } else facts.resolve(staleKey, `${path}: is good again`);
    facts.prune(`file:${path}:`, said);
  }

  #examineMissing(present: ReadonlySet<string>): number[] {
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
      const leftMs = REMOVAL_SETTLE_MS - (now - record.missingSinceMs);
      if (leftMs > 0) {
        retries.push(leftMs);
        continue;
      }
      this.#records.delete(path);
      this.#revision++;
      this.#deps.facts.prune(`file:${path}:`, new Set());
      this.#deps.logger.debug(`Manifests: "${path}" is gone`);
    }
    return retries;
  }
}

function freshNames({ live, stale }: FileRecord): PodFullName[] {
  return live.pods.map(({ pod }) => podFullName(pod.metadata)).filter((name) => !stale.includes(name));
}

function remember(record: FileRecord, identity: FileIdentity, ageMs: number): void {
  if (ageMs >= RACY_MS) record.identity = identity;
  else delete record.identity;
}

const isBlank = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));

/** An empty file is what a crash or a full disk leaves; whoever wants the pod gone removes the file. */
function blankFile(file: string): ManifestResult {
  const finding = wholeFile(file, "is empty; to remove its pods remove the file");
  return { pods: [], configMaps: [], secrets: [], objects: [], findings: [finding], results: [] };
}

function wholeFile(file: string, message: string): Finding {
  return { code: "syntax", severity: "error", file, document: 1, line: 1, column: 1, field: "", message };
}
