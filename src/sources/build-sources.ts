import type { ManifestResult } from "../manifest/manifest-result.ts";
import type { Clock } from "../model/clock.ts";
import type { SourceKind } from "../model/desired-pod.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { Logger } from "../model/logger.ts";
import { isManifestUrl } from "../text/url.ts";
import { CheckpointStore } from "./checkpoint-store.ts";
import { DesiredStateFeed, type FeedSource } from "./desired-state-feed.ts";
import { FileSource } from "./file-source.ts";
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
  /** Arguments of the command line: absolute paths, URLs, `-`. They come first. */
  manifests: readonly string[];
  nodeName: string;
  /** `readManifest` with node name and strictness filled in. */
  read: (bytes: Uint8Array, name: string, source: SourceKind) => ManifestResult;
  clock: Clock;
  logger: Logger;
  /** In [0, 1). */
  random: () => number;
  /** Proxy of a URL by the environment we were started with; undefined = direct. */
  proxyFor?: (url: URL) => string | undefined;
}

/** The feed of everything that was asked for: arguments, then paths, then URLs; each place once. */
export function buildFeed(deps: BuildFeedDeps): DesiredStateFeed {
  const { options, manifests, nodeName, clock, logger } = deps;
  const checkpoints = options.runOnce
    ? undefined
    : new CheckpointStore({ dir: `${options.rootDir}/checkpoints`, nodeName, clock, logger });
  const places = [...new Set([...manifests, ...options.podManifestPaths, ...options.manifestUrls])];
  const build = (place: string): FeedSource => {
    if (place === "-") return new StdinSource((bytes, name) => deps.read(bytes, name, "file"));
    if (isManifestUrl(place)) {
      return new UrlSource({
        url: place,
        headers: options.manifestUrlHeaders,
        caFile: options.manifestUrlCaFile,
        clientCertFile: options.manifestUrlClientCertFile,
        clientKeyFile: options.manifestUrlClientKeyFile,
        timeoutMs: options.manifestUrlTimeoutMs,
        checkFrequencyMs: options.httpCheckFrequencyMs,
        read: (bytes, name) => deps.read(bytes, name, "http"),
        lastKnownGood: () => checkpoints?.load(place),
        clock,
        logger,
        random: deps.random,
        ...(deps.proxyFor ? { proxyFor: deps.proxyFor } : {}),
      });
    }
    return new FileSource({
      path: place,
      read: (bytes, name) => deps.read(bytes, name, "file"),
      checkFrequencyMs: options.fileCheckFrequencyMs,
      lastKnownGood: () => checkpoints?.load(place),
      clock,
      logger,
    });
  };
  const sources = places.map(build);
  checkpoints?.keepOnly(places);
  return new DesiredStateFeed({ sources, logger, ...(checkpoints ? { checkpoints } : {}) });
}
