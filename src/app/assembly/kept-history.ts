import { join } from "node:path";
import { readBoundedBytes } from "../../files/bounded-read.ts";
import type { ReplaceFile } from "../../files/replace-file.ts";
import type { Clock } from "../../model/clock.ts";
import type { Logger } from "../../model/logger.ts";
import type { UsageRecorder } from "../../pageserver/usage-recorder.ts";
import { messageOf } from "../../text/error-message.ts";

/** A crash loses at most this period; with 110 pods 2.4 MB an hour are written. */
const SAVE_MS = 3_600_000;
/** 500 pods. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Keeps the history of the usage over restarts: `<root-dir>/state/usage-history`, written each hour and at the end. */
export class KeptHistory {
  readonly #usage: UsageRecorder;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #replaceFile: ReplaceFile;
  #cancel: () => void;

  constructor(usage: UsageRecorder, rootDir: string, clock: Clock, logger: Logger, replaceFile: ReplaceFile) {
    this.#usage = usage;
    this.#path = join(rootDir, "state", "usage-history");
    this.#clock = clock;
    this.#logger = logger;
    this.#replaceFile = replaceFile;
    this.#cancel = this.#schedule();
  }

  /** Takes over the saved history. A damaged file is forgotten: it holds only charts. */
  restore(): void {
    try {
      this.#usage.restore(readBoundedBytes(this.#path, MAX_BYTES));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        this.#logger.warn("The history of the usage begins again", { path: this.#path, error: messageOf(error) });
      }
    }
  }

  stop(): void {
    this.#cancel();
    void this.#save();
  }

  #schedule(): () => void {
    return this.#clock.schedule(SAVE_MS, () => {
      void this.#save();
      this.#cancel = this.#schedule();
    });
  }

  /** Never rejects. */
  async #save(): Promise<void> {
    try {
      await this.#replaceFile(this.#path, this.#usage.save(), { durable: false });
    } catch (error) {
      this.#logger.debug("The history of the usage could not be saved", { error: messageOf(error) });
    }
  }
}
