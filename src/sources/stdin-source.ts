import { MAX_MANIFEST_BYTES } from "../manifest/yaml/source-text.ts";
import { type FeedSource, sourceId } from "./checkpoint-store.ts";
import { EMPTY_OBJECTS, type ReadText, type SourceSet, type SourceStatus } from "./source-set.ts";

/** Standard input (`-`), read to its end once. */
export class StdinSource implements FeedSource {
  readonly kind = "file";
  readonly name = "-";
  readonly id = sourceId("-");
  readonly #read: ReadText;
  readonly #input: () => AsyncIterable<Uint8Array>;
  #pods = 0;
  #reads = 0;

  constructor(read: ReadText, input: () => AsyncIterable<Uint8Array> = () => Bun.stdin.stream()) {
    this.#read = read;
    this.#input = input;
  }

  /** Standard input is read by {@link readOnce} only. */
  start(emit: (set: SourceSet) => void): void {
    emit({ ...EMPTY_OBJECTS, findings: [], stale: new Map(), isComplete: true });
  }

  async readOnce(signal: AbortSignal): Promise<SourceSet> {
    const chunks: Uint8Array[] = [];
    let length = 0;
    this.#reads++;
    for await (const chunk of this.#input()) {
      signal.throwIfAborted();
      length += chunk.length;
      if (length >= MAX_MANIFEST_BYTES)
        throw new Error(`standard input is too large: ${MAX_MANIFEST_BYTES} bytes or more`);
      chunks.push(chunk);
    }
    if (length === 0) throw new Error("standard input is empty");
    const { findings, results: _, ...objects } = await this.#read(Buffer.concat(chunks), "-");
    this.#pods = objects.pods.length;
    return { ...objects, findings, stale: new Map(), isComplete: true };
  }

  async stop(): Promise<void> {}

  status(): SourceStatus {
    return {
      kind: "file",
      name: "-",
      state: this.#reads === 0 ? "waiting" : "ok",
      pods: this.#pods,
      reads: this.#reads,
      failures: 0,
    };
  }

  checkpoint(): undefined {
    return undefined;
  }
}
