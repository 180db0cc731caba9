import { encryptionOf } from "../../base/text/age-text.ts";
import type { ReadManifestOptions } from "../../manifest/manifest-result.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { buildFeed } from "../../sources/build-sources.ts";
import type { FeedSource } from "../../sources/checkpoint-store.ts";
import type { DesiredStateFeed } from "../../sources/desired-state-feed.ts";
import { ManifestChangeCheck } from "../../sources/manifest-change-check.ts";
import { proxyFor } from "../../sources/proxy.ts";
import type { NodeContext } from "./node-context.ts";

/** A longer text takes more than some 10 ms, and is parsed in another thread. */
const LONG_MANIFEST_BYTES = 256 * 1024;

/**
 * @param manifests arguments of the command line: absolute paths, URLs, `-`
 * @param submitted pods of the cluster's API server, or objects of the local API; absent when pods run once
 */
export function buildManifestFeed(
  { options, environment, node, clock, logger, background }: NodeContext,
  manifests: readonly string[],
  submitted?: FeedSource,
): DesiredStateFeed {
  const changeCheck = new ManifestChangeCheck(background.slot);
  return buildFeed({
    options,
    manifests,
    ...(submitted && { submitted }),
    nodeName: node.name,
    read: (bytes, file, source) => {
      const how: ReadManifestOptions = {
        file,
        nodeName: node.name,
        source,
        strictness: options.validate,
        allowPrivileged: options.allowPrivileged,
      };
      const { manifestIdentityFile } = options;
      return manifestIdentityFile !== "" && encryptionOf(bytes)
        ? background.tasks.readEncryptedManifest(bytes, how, manifestIdentityFile)
        : bytes.length > LONG_MANIFEST_BYTES
          ? background.tasks.readManifest(bytes, how)
          : readManifest(bytes, how);
    },
    readManifests: async (path, known) =>
      (await changeCheck.snapshotIfUnchanged(path, known)) ?? background.tasks.readManifests(path, known),
    replaceFile: background.tasks.replaceFile,
    files: background.textFiles,
    clock,
    logger,
    random: Math.random,
    proxyFor: (url) => proxyFor(url, environment),
  });
}
