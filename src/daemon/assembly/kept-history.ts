import { join } from "node:path";
import { readBoundedBytes } from "../../base/files/bounded-read.ts";
import type { ReplaceFile } from "../../base/files/replace-file.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { UsageRecorder } from "../../server/page/usage-recorder.ts";

/** A crash or a power cut loses at most this period. With 110 pods 2.4 MB are written each time. */
const SAVE_MS = 3_600_000;
/** 500 pods. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Key of the one fact that is logged. */
const SAVE = "save";

/** Keeps the usage history over restarts: `<root-dir>/state/usage-history`, written each hour and when the kubelet stops. */
export class KeptHistory {
  readonly #usage: UsageRecorder;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #changes: ChangeLogger;
  readonly #replaceFile: ReplaceFile;
  #cancel: () => void;

  constructor(usage: UsageRecorder, rootDir: string, clock: Clock, logger: Logger, replaceFile: ReplaceFile) {
    this.#usage = usage;
    this.#path = join(rootDir, "state", "usage-history");
    this.#clock = clock;
    this.#logger = logger;
    this.#changes = new ChangeLogger(logger);
    this.#replaceFile = replaceFile;
    this.#cancel = this.#schedule();
  }

  /** Reads the saved history. A file that cannot be read is replaced by the next save: it holds only charts. */
  restore(): void {
    try {
      this.#usage.restore(readBoundedBytes(this.#path, MAX_BYTES));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        this.#logger.warn("The usage history cannot be read; the page's charts start empty", {
          path: this.#path,
          error: messageOf(error),
        });
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
      this.#changes.resolve(SAVE, "The usage history is saved again", { path: this.#path });
    } catch (error) {
      this.#changes.log(
        SAVE,
        "warn",
        "The usage history cannot be saved; a restart loses the charts since the last save",
        {
          path: this.#path,
          error: messageOf(error),
        },
      );
    }
  }
}
