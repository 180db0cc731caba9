import { createHash } from "node:crypto";
import { readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { FileSystemId } from "../base/files/mount-points.ts";
import { type ReplaceFile, readBoundedText } from "../base/files/whole-file.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { Objects, SourceSet, SourceStatus } from "./source-set.ts";

const VERSION = 2;
/** Time until a write that failed is repeated: a full disk may have space again. */
const RETRY_MS = 30_000;
/** Edits come in bursts. A crash within this time loses the newest set only. */
const WRITE_DELAY_MS = 500;
/** Larger than the pods of a thousand manifests. Unit: bytes. */
const MAX_CHECKPOINT_BYTES = 1024 ** 3;

interface CheckpointStoreDeps {
  /** `<root-dir>/checkpoints`. */
  dir: string;
  /** A checkpoint of another node is not used. */
  nodeName: string;
  clock: Clock;
  logger: Logger;
  replaceFile: ReplaceFile;
}

/** The objects of a source, by the name of the text (file path or masked URL). */
export type ObjectsByText = ReadonlyMap<string, Objects>;

/** The last set of a source that was read. */
export interface Checkpoint {
  texts: ObjectsByText;
  /** File system that the directory was on. */
  place?: FileSystemId;
}

interface NamedCheckpoint {
  /** {@link sourceId} of its source. */
  id: string;
  /** Path or masked URL. */
  name: string;
  checkpoint: Checkpoint;
}

interface Body {
  nodeName: string;
  /** {@link sourceId} */
  source: string;
  name: string;
  savedAt: string;
  place?: FileSystemId;
  texts: Record<string, Objects>;
}

/** Where manifests come from. Emits complete sets, and nothing while it cannot be read. */
export interface FeedSource {
  readonly name: string;
  readonly kind: SourceStatus["kind"];
  /** Identifies the source: hash of its path or URL. */
  readonly id: string;
  start(emit: (set: SourceSet) => void): void;
  /** One read now, also before `start`; rejects when the source cannot be read. Absent: there is nothing for `--runonce`. */
  readOnce?(signal: AbortSignal): Promise<SourceSet>;
  /** Ends timers, watches and requests; nothing is emitted any more. */
  stop(): Promise<void>;
  status(): SourceStatus;
  /** Its current set; undefined when there is nothing to store. Absent: it is never stored. */
  checkpoint?(): Checkpoint | undefined;
}

/**
 * The last set of each source, on disk: a machine that boots without its network or a disk starts the pods it had. The
 * files hold secrets (mode 0600). A file that cannot be read is not used, with a warning, and is left in place.
 */
export class CheckpointStore {
  readonly #deps: CheckpointStoreDeps;
  readonly #waiting = new Map<string, NamedCheckpoint>();
  readonly #latest = new Map<string, Checkpoint>();
  /** Hash of the texts on disk, by source: an unchanged set is not written again. */
  readonly #written = new Map<string, string>();
  #cancelTimer: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #hasReportedFailure = false;

  constructor(deps: CheckpointStoreDeps) {
    this.#deps = deps;
  }

  /** The checkpoint of a source; undefined when there is none that can be used. */
  load(id: string): Checkpoint | undefined {
    const body = this.#read(id);
    return body && toCheckpoint(body);
  }

  /** The checkpoints of all sources but these, by name. */
  loadOthers(ids: ReadonlySet<string>): NamedCheckpoint[] {
    return this.#ids()
      .filter((id) => !ids.has(id))
      .flatMap((id) => {
        const body = this.#read(id);
        return body ? [{ id, name: body.name, checkpoint: toCheckpoint(body) }] : [];
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Stores a set; it is on disk shortly after, or when {@link flush} resolves.
   * @param name for messages: path or masked URL
   */
  save(id: string, name: string, checkpoint: Checkpoint): void {
    this.#waiting.set(id, { id, name, checkpoint });
    this.#latest.set(id, checkpoint);
    this.#cancelTimer ??= this.#deps.clock.schedule(WRITE_DELAY_MS, () => void this.flush());
  }

  /** Never rejects: a full disk must not stop supervision. */
  async flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#writing = this.#writing.then(async () => {
      for (const each of waiting) await this.#write(each);
    });
    await this.#writing;
  }

  remove(id: string): void {
    try {
      unlinkSync(this.#path(id));
    } catch {
      // It holds no pods, and another start tries again.
    }
  }

  #ids(): string[] {
    try {
      return readdirSync(this.#deps.dir).flatMap((name) => /^source-([\da-f]{32})\.json$/.exec(name)?.[1] ?? []);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        this.#deps.logger.warn(`The last known good pods in "${this.#deps.dir}" are not used: ${messageOf(error)}`);
      }
      return [];
    }
  }

  #read(id: string): Body | undefined {
    const path = this.#path(id);
    const { logger, nodeName } = this.#deps;
    try {
      const body = readCheckpoint(path);
      if (body.nodeName === nodeName) return body;
      logger.warn(`The last known good pods in "${path}" are those of node "${body.nodeName}": not used`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      logger.warn(`The last known good pods in "${path}" are not used: ${messageOf(error)}`);
    }
    return undefined;
  }

  #path(id: string): string {
    return join(this.#deps.dir, `source-${id}.json`);
  }

  async #write({ id, name, checkpoint }: NamedCheckpoint): Promise<void> {
    const { clock, logger, nodeName, replaceFile } = this.#deps;
    const path = this.#path(id);
    const { place } = checkpoint;
    const content = JSON.stringify({ ...(place ? { place } : {}), texts: Object.fromEntries(checkpoint.texts) });
    const hash = sha256(content);
    if (this.#written.get(id) === hash) return;
    const head: Omit<Body, "texts"> = { nodeName, source: id, name, savedAt: clock.now().toISOString() };
    const json = `${JSON.stringify(head).slice(0, -1)},${content.slice(1)}`;
    try {
      const text = `{"version":${VERSION},"sha256":"${sha256(json)}","body":${json}}\n`;
      await replaceFile(path, text, { durable: true, directoryMode: 0o700 });
      this.#written.set(id, hash);
      this.#hasReportedFailure = false;
    } catch (error) {
      if (!this.#hasReportedFailure) {
        logger.error(`Cannot store the last known good pods in "${path}", will try again: ${messageOf(error)}`);
      }
      this.#hasReportedFailure = true;
      clock.schedule(RETRY_MS, () => {
        if (this.#latest.get(id) === checkpoint) this.save(id, name, checkpoint);
      });
    }
  }
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Identifies a source on disk: its path or URL may be long, and hold secrets. */
export const sourceId = (key: string): string => sha256(key).slice(0, 32);

const toCheckpoint = ({ texts, place }: Body): Checkpoint => ({
  texts: new Map(Object.entries(texts)),
  ...(place ? { place } : {}),
});

/** The file of one source. @throws Error that says what is wrong with it; the system's error */
export function readCheckpoint(path: string): Body {
  const text = readBoundedText(path, MAX_CHECKPOINT_BYTES);
  const head = /^\{"version":(\d+),"sha256":"([\da-f]{64})","body":/.exec(text);
  if (!head) throw new Error("it is damaged");
  if (Number(head[1]) !== VERSION) throw new Error(`it has version ${head[1]}, known is ${VERSION}`);
  const json = text.slice(head[0].length).replace(/\}\n$/, "");
  if (sha256(json) !== head[2]) throw new Error("it is damaged (its checksum differs)");
  return JSON.parse(json) as Body;
}
