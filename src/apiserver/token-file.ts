import { SYSTEM_FILE_BYTES } from "../base/files/bounded-read.ts";
import type { TextFiles } from "../base/files/text-files.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import { parseTokenFile, type TokenEntry } from "./authentication.ts";

/** The file is read again after this time. */
const MAX_AGE_MS = 1_000;

interface TokenFileDeps {
  /** "" = none. */
  path: string;
  files: TextFiles;
  clock: Clock;
  logger: Logger;
}

/** The bearer tokens of `--token-auth-file`, read on demand. A file that becomes invalid leaves the previous tokens valid. */
export class TokenFile {
  readonly #deps: TokenFileDeps;
  #text = "";
  #readAtMs = Number.NEGATIVE_INFINITY;
  #entries = Promise.resolve<readonly TokenEntry[]>([]);

  constructor(deps: TokenFileDeps) {
    this.#deps = deps;
  }

  /** The tokens, at most a second old. Never rejects. */
  read(): Promise<readonly TokenEntry[]> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#readAtMs >= MAX_AGE_MS) {
      this.#readAtMs = nowMs;
      this.#entries = this.#readFile(this.#entries);
    }
    return this.#entries;
  }

  async #readFile(before: Promise<readonly TokenEntry[]>): Promise<readonly TokenEntry[]> {
    const { path, logger, files } = this.#deps;
    if (path === "") return [];
    const entries = await before;
    try {
      const text = await files.readText(path, SYSTEM_FILE_BYTES);
      if (text === undefined) throw new Error(`there is no "${path}"`);
      if (text === this.#text) return entries;
      this.#text = text;
      return parseTokenFile(text, path);
    } catch (error) {
      logger.warn(`Tokens of the local API stay as they were: ${messageOf(error)}`);
      return entries;
    }
  }
}
