import { readdirSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { readBoundedText } from "../../base/files/bounded-read.ts";
import type { ReplaceFile } from "../../base/files/replace-file.ts";
import type { Logger } from "../../base/model/logger.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { type CniResult, parseCniResult } from "./cni-result.ts";
import { NetworkConfigSchema } from "./network-config.ts";

const RecordSchema = v.object({
  version: v.literal(1),
  sandboxId: v.string(),
  pod: v.object({ uid: v.string(), name: v.string(), namespace: v.string() }),
  runtimeConfig: v.record(v.string(), v.unknown()),
  config: NetworkConfigSchema,
  /** Absent: ADD had begun and did not end. */
  result: v.optional(v.unknown()),
});

const MAX_RECORD_BYTES = 1024 * 1024;

/** The attachment of one sandbox, with all that any later process needs to release it. */
export interface AttachmentRecord {
  sandboxId: string;
  pod: { uid: string; name: string; namespace: string };
  runtimeConfig: Readonly<Record<string, unknown>>;
  /** The configuration that ADD used. */
  config: v.InferOutput<typeof NetworkConfigSchema>;
  result?: CniResult | undefined;
}

/** How records are written and removed: in another thread, since the disk may not answer. */
export interface RecordFiles {
  replaceFile: ReplaceFile;
  /** A file that is missing is success. */
  removeFile(path: string): Promise<void>;
}

/** A file for each sandbox that plugins were called for; written before ADD, removed after DEL has succeeded. */
export class AttachmentStore {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #files: RecordFiles;
  readonly #records = new Map<string, AttachmentRecord>();

  constructor(directory: string, files: RecordFiles, logger: Logger) {
    this.#directory = directory;
    this.#files = files;
    this.#logger = logger;
    this.#load();
  }

  get(sandboxId: string): AttachmentRecord | undefined {
    return this.#records.get(sandboxId);
  }

  list(): AttachmentRecord[] {
    return [...this.#records.values()];
  }

  /** @throws the system's error when it cannot be written */
  async save(record: AttachmentRecord): Promise<void> {
    const text = JSON.stringify({ version: 1, ...record });
    await this.#files.replaceFile(this.#path(record.sandboxId), text, { durable: false, directoryMode: 0o700 });
    this.#records.set(record.sandboxId, record);
  }

  /** @throws the system's error */
  async remove(sandboxId: string): Promise<void> {
    await this.#files.removeFile(this.#path(sandboxId));
    this.#records.delete(sandboxId);
  }

  #path = (sandboxId: string) => join(this.#directory, `${sandboxId}.json`);

  #load(): void {
    for (const name of this.#names()) {
      try {
        const data = JSON.parse(readBoundedText(join(this.#directory, name), MAX_RECORD_BYTES));
        const { version: _, result, ...record } = v.parse(RecordSchema, data);
        if (this.#path(record.sandboxId) !== join(this.#directory, name)) throw new Error("it names another sandbox");
        this.#records.set(record.sandboxId, {
          ...record,
          ...(result !== undefined && { result: parseCniResult(JSON.stringify(result)) }),
        });
      } catch (error) {
        this.#logger.warn(`"${join(this.#directory, name)}" cannot be used: ${messageOf(error)}`);
      }
    }
  }

  #names(): string[] {
    try {
      return readdirSync(this.#directory).filter((name) => name.endsWith(".json"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }
}
