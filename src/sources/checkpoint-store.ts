import { createHash } from "node:crypto";
import { readdirSync, readFileSync, unlinkSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import type { Objects } from "./source-set.ts";

const VERSION = 1;
/** A disk that was full may have room again. */
const RETRY_MS = 30_000;
/** Edits come in bursts; a crash in between loses a hint, nothing more. */
const WRITE_DELAY_MS = 500;

export interface CheckpointStoreDeps {
  /** `<root-dir>/checkpoints`. */
  dir: string;
  /** Pods carry it in their names: what was kept for another node is of no use. */
  nodeName: string;
  clock: Clock;
  logger: Logger;
}

/** What a source wants, by the name of the text (file path or masked URL). */
export type ObjectsByText = ReadonlyMap<string, Objects>;

interface Body {
  nodeName: string;
  source: string;
  savedAt: string;
  texts: Record<string, Objects>;
}

/**
 * The last good set of each source, on disk [D7 P13]: a box that boots without its network starts the pods it had. The
 * files hold secrets (mode 0600). They are hints: what cannot be read is thrown away with a warning.
 */
export class CheckpointStore {
  readonly #deps: CheckpointStoreDeps;
  readonly #waiting = new Map<string, ObjectsByText>();
  readonly #latest = new Map<string, ObjectsByText>();
  /** Hash of the texts on disk, by source: an unchanged set is not written again. */
  readonly #written = new Map<string, string>();
  #cancelTimer: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #complained = false;

  constructor(deps: CheckpointStoreDeps) {
    this.#deps = deps;
  }

  /** What `source` wanted last; undefined when that is not known. */
  load(source: string): ObjectsByText | undefined {
    const path = this.#path(source);
    try {
      const body = parseCheckpoint(readFileSync(path, "utf8"));
      if (body.nodeName !== this.#deps.nodeName) {
        this.#deps.logger.warn(`The last known good pods in "${path}" are those of node "${body.nodeName}": not used`);
        return undefined;
      }
      return new Map(Object.entries(body.texts));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      this.#deps.logger.warn(`The last known good pods in "${path}" are not used: ${(error as Error).message}`);
      return undefined;
    }
  }

  /** Keeps a set; it is on disk shortly after, or when {@link flush} resolves. */
  save(source: string, texts: ObjectsByText): void {
    this.#waiting.set(source, texts);
    this.#latest.set(source, texts);
    this.#cancelTimer ??= this.#deps.clock.schedule(WRITE_DELAY_MS, () => void this.flush());
  }

  /** Never rejects: a full disk must not stop supervision. */
  async flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    this.#writing = this.#writing.then(async () => {
      for (const [source, texts] of waiting) await this.#write(source, texts);
    });
    await this.#writing;
  }

  /** Forgets the sources nobody configures any more: they may hold secrets. */
  keepOnly(sources: readonly string[]): void {
    const wanted = new Set(sources.map(fileName));
    try {
      for (const name of readdirSync(this.#deps.dir)) {
        if (name.startsWith("source-") && !wanted.has(name)) unlinkSync(join(this.#deps.dir, name));
      }
    } catch {
      // No directory yet, or not ours to change: nothing is lost.
    }
  }

  #path(source: string): string {
    return join(this.#deps.dir, fileName(source));
  }

  async #write(source: string, texts: ObjectsByText): Promise<void> {
    const path = this.#path(source);
    const temporary = `${path}.tmp`;
    const shown = Object.fromEntries(texts);
    const hash = sha256(JSON.stringify(shown));
    if (this.#written.get(source) === hash) return;
    const body: Body = {
      nodeName: this.#deps.nodeName,
      source: fileName(source),
      savedAt: this.#deps.clock.now().toISOString(),
      texts: shown,
    };
    const json = JSON.stringify(body);
    try {
      await mkdir(this.#deps.dir, { recursive: true, mode: 0o700 });
      // Made anew: an old one might have another mode.
      await rm(temporary, { force: true });
      const file = await open(temporary, "wx", 0o600);
      try {
        await file.writeFile(`{"version":${VERSION},"sha256":"${sha256(json)}","body":${json}}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      this.#written.set(source, hash);
      this.#complained = false;
    } catch (error) {
      if (!this.#complained) {
        this.#deps.logger.error(
          `Cannot keep the last known good pods in "${path}", will try again: ${(error as Error).message}`,
        );
      }
      this.#complained = true;
      // Where there is no room, half a file takes some.
      await rm(temporary, { force: true }).catch(() => {});
      this.#deps.clock.schedule(RETRY_MS, () => {
        if (this.#latest.get(source) === texts) this.save(source, texts);
      });
    }
  }
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The name of a source may be long, and hold secrets. */
const fileName = (source: string): string => `source-${sha256(source).slice(0, 32)}.json`;

/** @throws Error that says what is wrong with it. */
function parseCheckpoint(text: string): Body {
  const head = /^\{"version":(\d+),"sha256":"([\da-f]{64})","body":/.exec(text);
  if (!head) throw new Error("it is damaged");
  if (Number(head[1]) !== VERSION) throw new Error(`it has version ${head[1]}, known is ${VERSION}`);
  const json = text.slice(head[0].length).replace(/\}\n$/, "");
  if (sha256(json) !== head[2]) throw new Error("it is damaged (its checksum differs)");
  return JSON.parse(json) as Body;
}
