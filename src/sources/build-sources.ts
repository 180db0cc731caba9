import type { ManifestResult } from "../manifest/manifest-result.ts";
import type { Clock } from "../model/clock.ts";
import type { SourceKind } from "../model/desired-pod.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { Logger } from "../model/logger.ts";
import { isManifestUrl } from "../text/url.ts";
import { CheckpointStore, sourceId } from "./checkpoint-store.ts";
import { DesiredStateFeed, type FeedSource } from "./desired-state-feed.ts";
import { FileSource, type FileSourceDeps } from "./file-source.ts";
import { KeptSource, RUN_ONCE_ID } from "./kept-source.ts";
import { type ReadText, withSource } from "./source-set.ts";
import { StdinSource } from "./stdin-source.ts";
import { UrlSource } from "./url-source.ts";

export type SourceOptions = Pick<
  KubeletOptions,
  | "podManifestPaths"
  | "manifestUrls"
  | "manifestUrlHeaders"
  | "manifestUrlCaFile"
  | "manifestUrlClientCertFile"
  | "manifestUrlClientKeyFile"
  | "manifestUrlTimeoutMs"
  | "fileCheckFrequencyMs"
  | "httpCheckFrequencyMs"
  | "runOnce"
  | "rootDir"
>;

export interface BuildFeedDeps {
  options: SourceOptions;
  /** Arguments of the command line: absolute paths, URLs, `-`. They win against the options. */
  manifests: readonly string[];
  /** Objects of the local API: they come last, so that a manifest wins. */
  submitted?: FeedSource;
  nodeName: string;
  /** `readManifest` with node name and strictness filled in. */
  read: (bytes: Uint8Array, name: string, source: SourceKind) => ManifestResult | Promise<ManifestResult>;
  /** Reads a path without waiting for it in this thread; default: in this thread. */
  readManifests?: FileSourceDeps["readManifests"];
  clock: Clock;
  logger: Logger;
  /** In [0, 1). */
  random: () => number;
  /** Proxy of a URL, by the environment; undefined = direct. */
  proxyFor?: (url: URL) => string | undefined;
}

/**
 * The feed of all configured sources: arguments, then paths, then URLs, each place once; then, unless this is a run
 * once, what the root directory keeps of `--runonce` and of sources that are not configured any more.
 */
export function buildFeed(deps: BuildFeedDeps): DesiredStateFeed {
  const { options, manifests, nodeName, clock, logger } = deps;
  const checkpoints = new CheckpointStore({ dir: `${options.rootDir}/checkpoints`, nodeName, clock, logger });
  const lastKnownGood = (place: string) => (options.runOnce ? undefined : checkpoints.load(sourceId(place)));
  const places = [...new Set([...manifests, ...options.podManifestPaths, ...options.manifestUrls])];
  const build = (place: string): FeedSource => {
    const id = sourceId(place);
    const readAs =
      (kind: SourceKind): ReadText =>
      (bytes, name) => {
        const result = deps.read(bytes, name, kind);
        return result instanceof Promise ? result.then((read) => withSource(read, id)) : withSource(result, id);
      };
    if (place === "-") return new StdinSource(readAs("file"));
    if (isManifestUrl(place)) {
      return new UrlSource({
        url: place,
        headers: options.manifestUrlHeaders,
        caFile: options.manifestUrlCaFile,
        clientCertFile: options.manifestUrlClientCertFile,
        clientKeyFile: options.manifestUrlClientKeyFile,
        timeoutMs: options.manifestUrlTimeoutMs,
        checkFrequencyMs: options.httpCheckFrequencyMs,
        read: readAs("http"),
        lastKnownGood: () => lastKnownGood(place),
        clock,
        logger,
        random: deps.random,
        ...(deps.proxyFor ? { proxyFor: deps.proxyFor } : {}),
      });
    }
    return new FileSource({
      path: place,
      read: readAs("file"),
      checkFrequencyMs: options.fileCheckFrequencyMs,
      lastKnownGood: () => lastKnownGood(place),
      clock,
      logger,
      ...(deps.readManifests ? { readManifests: deps.readManifests } : {}),
    });
  };
  const sources = [...places.map(build), ...(deps.submitted ? [deps.submitted] : [])];
  const kept = options.runOnce ? [] : loadKept(checkpoints, places);
  return new DesiredStateFeed({ sources, kept, checkpoints, logger });
}

function loadKept(store: CheckpointStore, places: readonly string[]): KeptSource[] {
  const sources = store
    .loadOthers(new Set(places.map(sourceId)))
    .filter(({ id, checkpoint }) => {
      const isEmpty = [...checkpoint.texts.values()].every(({ pods }) => pods.length === 0);
      // The file goes; as a source it stays, so that what a crash left of its last pod is removed.
      if (isEmpty) store.remove(id);
      return !isEmpty || checkpoint.texts.size === 0;
    })
    .map(({ id, name, checkpoint }) => {
      const texts = new Map([...checkpoint.texts].map(([text, objects]) => [text, withSource(objects, id)]));
      const origin = id === RUN_ONCE_ID ? "run-once" : "unclaimed";
      return new KeptSource({ id, name: name ?? "(name not known)", texts, origin, store });
    });
  // The pods of --runonce first: their source exists.
  return sources.sort((a, b) => Number(b.id === RUN_ONCE_ID) - Number(a.id === RUN_ONCE_ID));
}
