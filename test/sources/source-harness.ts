import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FileSystemId } from "../../src/base/files/mount-points.ts";
import { SystemClock } from "../../src/base/host/system-clock.ts";
import type { Clock } from "../../src/base/model/clock.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import type { FeedSource } from "../../src/sources/checkpoint-store.ts";
import { FileSource } from "../../src/sources/file-source.ts";
import { readManifests } from "../../src/sources/manifest-files.ts";
import type { Objects, SourceSet } from "../../src/sources/source-set.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { until } from "../support/until.ts";

/** A pod manifest; `image` is what an edit changes. */
export function manifest(name: string, image = "busybox:1", more = ""): string {
  return `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  containers:
  - name: main
    image: ${image}
${more}`;
}

export const readFile = (bytes: Uint8Array, file: string) =>
  readManifest(bytes, { file, nodeName: "node1", source: "file" });
export const readUrl = (bytes: Uint8Array, file: string) =>
  readManifest(bytes, { file, nodeName: "node1", source: "http" });

/** `name=image` of each pod, sorted. */
export const podsOf = (set: Pick<Objects, "pods"> | undefined): string[] =>
  (set?.pods ?? [])
    .map(({ pod }) => `${pod.metadata.name?.replace(/-node1$/, "")}=${pod.spec.containers[0]?.image}`)
    .sort();

/** Writes a file whose modification time says that the write was finished a second ago: it counts at once. */
export function writeSettled(path: string, text: string): void {
  writeFileSync(path, text);
  const time = new Date(Date.now() - 1000);
  utimesSync(path, time, time);
}

export interface WatchedOptions {
  clock?: Clock;
  checkFrequencyMs?: number;
  lastKnownGood?: () => ReadonlyMap<string, Objects> | undefined;
  lastPlace?: FileSystemId;
  /** Below the temporary directory. */
  path?: string;
}

/** A source with every set it emitted. */
export abstract class Watched {
  readonly logger = new RecordingLogger();
  readonly sets: SourceSet[] = [];
  abstract readonly source: FeedSource;

  start(): this {
    this.source.start((set) => this.sets.push(set));
    return this;
  }

  once(): Promise<SourceSet> {
    return this.source.readOnce!(new AbortController().signal);
  }

  get pods(): string[] {
    return podsOf(this.sets.at(-1));
  }

  /** Desired pods from set to set, without repetitions. */
  get history(): string[] {
    const shown = this.sets.map((set) => podsOf(set).join(" "));
    return shown.filter((line, index) => line !== shown[index - 1]);
  }

  async readsMore(count: number): Promise<void> {
    const { reads } = this.source.status();
    await until("more reads", () => this.source.status().reads > reads + count);
  }

  /** Waits until exactly these pods are wanted. */
  async wants(...pods: string[]): Promise<void> {
    const wanted = [...pods].sort().join(" ");
    await until(`pods ${wanted}`, () => this.sets.length > 0 && this.pods.join(" ") === wanted, {
      details: () => `wanted at last: ${this.pods.join(" ")}\n${this.logger.lines.join("\n")}`,
    });
  }
}

/** A file source on a directory of its own (made unless `path` says otherwise), with every set it emitted. */
export class WatchedDirectory extends Watched {
  readonly root: string;
  readonly path: string;
  readonly source: FileSource;

  /** @param root an empty directory, by its real path */
  constructor(root: string, options: WatchedOptions = {}) {
    super();
    this.root = root;
    this.path = join(this.root, options.path ?? "manifests");
    if (options.path === undefined) mkdirSync(this.path);
    this.source = new FileSource({
      path: this.path,
      read: readFile,
      readManifests,
      clock: options.clock ?? new SystemClock(),
      logger: this.logger,
      // Only the watch can be as quick as the tests want it, unless a test is about the timer.
      checkFrequencyMs: options.checkFrequencyMs ?? 3_600_000,
      lastKnownGood: () => {
        const texts = options.lastKnownGood?.();
        return texts && { texts, ...(options.lastPlace ? { place: options.lastPlace } : {}) };
      },
    });
  }

  file(name: string): string {
    return join(this.path, name);
  }

  write(name: string, text: string): void {
    writeSettled(this.file(name), text);
  }
}
