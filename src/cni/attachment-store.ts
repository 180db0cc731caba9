import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { readBoundedText } from "../files/bounded-read.ts";
import type { Logger } from "../model/logger.ts";
import { messageOf } from "../text/error-message.ts";
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

/** A file for each sandbox that plugins were called for; written before ADD, removed after DEL has succeeded. */
export class AttachmentStore {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #records = new Map<string, AttachmentRecord>();

  constructor(directory: string, logger: Logger) {
    this.#directory = directory;
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
  save(record: AttachmentRecord): void {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    const path = this.#path(record.sandboxId);
    writeFileSync(`${path}.new`, JSON.stringify({ version: 1, ...record }), { mode: 0o600 });
    renameSync(`${path}.new`, path);
    this.#records.set(record.sandboxId, record);
  }

  remove(sandboxId: string): void {
    rmSync(this.#path(sandboxId), { force: true });
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
