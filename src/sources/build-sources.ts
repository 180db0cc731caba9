import { existsSync } from "node:fs";
import { readBoundedBytesOf, StreamTooLongError } from "../base/files/bounded-stream.ts";
import type { Clock } from "../base/model/clock.ts";
import type { SourceKind } from "../base/model/desired-state.ts";
import type { Logger } from "../base/model/logger.ts";
import { isManifestUrl } from "../base/text/url.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { ManifestResult } from "../manifest/object-reading.ts";
import { MAX_MANIFEST_BYTES } from "../manifest/yaml/parse-stream.ts";
import { type CheckpointStore, type FeedSource, sourceId } from "./checkpoint-store.ts";
import { DesiredStateFeed, KeptSource, RUN_ONCE_ID, runnableKeys } from "./desired-state-feed.ts";
import { FileSource, type FileSourceDeps } from "./file-source.ts";
import { hasManifestExtension } from "./manifest-files.ts";
import { EMPTY_SET, type ReadText, type SourceSet, type SourceStatus, withSource } from "./source-set.ts";
import type { UrlFetchDeps, UrlOptions } from "./url-fetch.ts";
import { UrlSource } from "./url-source.ts";

type SourceOptions = UrlOptions &
  Pick<
    KubeletOptions,
    "podManifestPaths" | "manifestUrls" | "fileCheckFrequencyMs" | "httpCheckFrequencyMs" | "runOnce"
  >;

/** How manifests are read on this machine. */
export interface ManifestReader
  extends Pick<FileSourceDeps, "readManifests">,
    Pick<UrlFetchDeps, "files" | "proxyFor"> {
  /** `readManifest` with node name and strictness filled in. */
  read(bytes: Uint8Array, name: string, source: SourceKind): ManifestResult | Promise<ManifestResult>;
}

interface BuildFeedDeps {
  options: SourceOptions;
  /** Arguments of the command line: absolute paths, URLs, `-`. They win against the options. */
  manifests: readonly string[];
  /** Objects of the local API: they come last, so that a manifest wins. */
  submitted?: FeedSource | undefined;
  reader: ManifestReader;
  checkpoints: CheckpointStore;
  clock: Clock;
  logger: Logger;
}

/**
 * The feed of all configured sources: arguments, then paths, then URLs, each once; then, without
 * `--runonce`, what the root directory keeps of earlier runs with it and of sources that are not configured any more.
 */
export function buildFeed(deps: BuildFeedDeps): DesiredStateFeed {
  const { options, manifests, reader, checkpoints, logger } = deps;
  const loadCheckpoint = (location: string) => (options.runOnce ? undefined : checkpoints.load(sourceId(location)));
  const locations = [...new Set([...manifests, ...options.podManifestPaths, ...options.manifestUrls])];
  const build = (location: string): FeedSource => {
    const id = sourceId(location);
    const readAs =
      (kind: SourceKind): ReadText =>
      (bytes, name) => {
        const result = reader.read(bytes, name, kind);
        return result instanceof Promise ? result.then((read) => withSource(read, id)) : withSource(result, id);
      };
    const lastKnownGood = () => loadCheckpoint(location);
    if (location === "-") return new StdinSource(readAs("file"));
    if (isManifestUrl(location)) {
      const { files, proxyFor } = reader;
      return new UrlSource({ ...deps, url: location, read: readAs("http"), lastKnownGood, files, proxyFor });
    }
    return new FileSource({
      ...deps,
      path: location,
      read: readAs("file"),
      checkFrequencyMs: options.fileCheckFrequencyMs,
      lastKnownGood,
      readManifests: reader.readManifests,
    });
  };
  const missing = options.runOnce
    ? []
    : locations.filter((location) => isMissingFile(location) && !loadCheckpoint(location));
  if (missing.length > 0) {
    const names = missing.map((path) => `"${path}"`).join(", ");
    throw new Error(`Manifest ${names} does not exist; correct the path or create the file`);
  }
  const sources = [...locations.map(build), ...(deps.submitted ? [deps.submitted] : [])];
  const kept = options.runOnce
    ? []
    : loadKept(checkpoints, [...locations.map(sourceId), ...(deps.submitted ? [deps.submitted.id] : [])]);
  return new DesiredStateFeed({ sources, kept, checkpoints, logger });
}

/** A directory may appear later; a missing path with the name of a manifest is a mistake. */
const isMissingFile = (location: string): boolean =>
  location !== "-" && !isManifestUrl(location) && hasManifestExtension(location) && !existsSync(location);

function loadKept(store: CheckpointStore, configured: readonly string[]): KeptSource[] {
  const sources = store.loadOthers(new Set(configured)).map(({ id, name, checkpoint }) => {
    // An empty one stays a source for this run, so that what a crash left of its last pod is removed.
    if ([...checkpoint.texts.values()].every((objects) => runnableKeys(objects).length === 0)) store.remove(id);
    const texts = new Map([...checkpoint.texts].map(([text, objects]) => [text, withSource(objects, id)]));
    const origin = id === RUN_ONCE_ID ? "run-once" : "unclaimed";
    return new KeptSource({ id, name, texts, origin, store });
  });
  // The pods of --runonce first: their source exists.
  return sources.sort((a, b) => Number(b.id === RUN_ONCE_ID) - Number(a.id === RUN_ONCE_ID));
}

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
    emit(EMPTY_SET);
  }

  async readOnce(signal: AbortSignal): Promise<SourceSet> {
    this.#reads++;
    const bytes = await readBoundedBytesOf(this.#input(), MAX_MANIFEST_BYTES - 1).catch((error: unknown) => {
      if (!(error instanceof StreamTooLongError)) throw error;
      throw new Error(`standard input is too large: ${MAX_MANIFEST_BYTES} bytes or more`);
    });
    signal.throwIfAborted();
    if (bytes.length === 0) throw new Error("standard input is empty");
    const { findings, results: _, ...objects } = await this.#read(bytes, "-");
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
}
