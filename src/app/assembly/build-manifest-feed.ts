import { readManifest } from "../../manifest/read-manifest.ts";
import { buildFeed } from "../../sources/build-sources.ts";
import type { DesiredStateFeed, FeedSource } from "../../sources/desired-state-feed.ts";
import { proxyFor } from "../../sources/proxy.ts";
import type { NodeContext } from "./node-context.ts";

/**
 * @param manifests arguments of the command line: absolute paths, URLs, `-`
 * @param submitted objects of the local API; absent when pods run once
 */
export function buildManifestFeed(
  { options, environment, node, clock, logger }: NodeContext,
  manifests: readonly string[],
  submitted?: FeedSource,
): DesiredStateFeed {
  return buildFeed({
    options,
    manifests,
    ...(submitted && { submitted }),
    nodeName: node.name,
    read: (bytes, file, source) =>
      readManifest(bytes, {
        file,
        nodeName: node.name,
        source,
        strictness: options.validate,
        allowPrivileged: options.allowPrivileged,
      }),
    clock,
    logger,
    random: Math.random,
    proxyFor: (url) => proxyFor(url, environment),
  });
}
