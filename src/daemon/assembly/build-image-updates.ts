import { parseImageUpdatePolicy } from "../../base/api/image-update.ts";
import type { Pod } from "../../base/api/pod.ts";
import { parseImageReference, repositoryOf } from "../../base/text/image-reference.ts";
import type { EngineConnection } from "../../docker/engine-connection.ts";
import type { ImageCredentials } from "../../docker/image-credentials.ts";
import type { ImageManager } from "../../docker/image-manager.ts";
import { RegistryClient } from "../../docker/registry-client.ts";
import type { BaselineImage } from "../../kubelet/images/image-update-manager.ts";
import { ImageUpdateManager } from "../../kubelet/images/image-update-manager.ts";
import type { VolumeManager } from "../../kubelet/volumes/volume-manager.ts";
import { pickTag } from "../../plan/image-tags.ts";
import { proxyFor } from "../../sources/proxy.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { ImageUpdatesSchema } from "./state-schemas.ts";

interface ImageUpdateParts {
  images: ImageManager;
  credentials: ImageCredentials;
  volumes: VolumeManager;
  /** Pods run other images now. */
  onChange: () => void;
}

/** Safe updates of images, for pods that ask for them. */
export function buildImageUpdates(
  context: NodeContext,
  { client }: EngineConnection,
  { images, credentials, volumes, onChange }: ImageUpdateParts,
): ImageUpdateManager {
  const { options, clock, logger, recorder, environment, metrics } = context;
  const registry = new RegistryClient({
    files: context.background.textFiles,
    engineInfo: (signal) => client.info({ signal }),
    proxyFor: (url) => proxyFor(url, environment),
  });
  return new ImageUpdateManager({
    clock,
    logger,
    recorder,
    random: Math.random,
    file: openStateFile(context, "image-updates", ImageUpdatesSchema, { durable: true }),
    defaults: () => ({
      policy: parseImageUpdatePolicy(options.imageUpdate) ?? { kind: "never" },
      schedule: options.imageUpdateSchedule,
      window: options.imageUpdateWindow,
    }),
    jitterMs: () => options.imageUpdateJitterMs,
    lookUp: async (image, policy, present, pullSecrets, signal) => {
      const reference = parseImageReference(image);
      const auths = await credentials.lookUp(reference, pullSecrets, signal);
      const written = reference.tag ?? "latest";
      // A version is compared with the one that runs, not with the one of the manifest.
      const from = present === "" ? written : present;
      const picked =
        policy.kind === "semver" ? pickTag(await registry.tags(reference, auths, signal), policy.range, from) : written;
      const tag = picked ?? from;
      return { ref: `${nameOf(image)}@${await registry.digest(reference, tag, auths, signal)}`, tag };
    },
    pull: async (ref, pullSecrets, signal) => (await images.pullAhead(ref, pullSecrets, signal)).id,
    describe: async (imageId, image) => {
      const info = await images.imageStatus(imageId);
      return describeBaseline(image, imageId, info?.repoDigests ?? []);
    },
    isLocked: async (pod, lock) => {
      const place = lockPlace(pod, lock, volumes);
      return place !== undefined && (await context.background.tasks.existsBeneath(place.directory, place.path));
    },
    onChange,
    onResult: (owner, result) => metrics.countImageUpdate(owner, result),
  });
}

/** The image that runs, by the digest under which its registry has it; by its id when it was never pulled. */
function describeBaseline(image: string, imageId: string, repoDigests: readonly string[]): BaselineImage {
  const reference = parseImageReference(image);
  const digest = repoDigests
    .filter((known) => repositoryOf(parseImageReference(known)) === repositoryOf(reference))
    .map((known) => known.slice(known.indexOf("@")))[0];
  const tag = reference.tag ?? "latest";
  return digest === undefined ? { ref: imageId, tag } : { ref: `${nameOf(image)}${digest}`, tag };
}

/** An image name without its tag, as it is written. */
function nameOf(image: string): string {
  const colon = image.indexOf(":", image.lastIndexOf("/") + 1);
  return colon < 0 ? image : image.slice(0, colon);
}

/** Where a lock file lies, in an emptyDir or hostPath volume; undefined when there is no such volume. */
function lockPlace(pod: Pod, lock: string, volumes: VolumeManager): { directory: string; path: string } | undefined {
  const slash = lock.indexOf("/");
  const volume = pod.spec.volumes?.find(({ name }) => name === lock.slice(0, slash));
  const directory = volume?.emptyDir
    ? volumes.directories(pod.metadata.uid ?? "").volume("empty-dir", volume.name)
    : volume?.hostPath?.path;
  return directory === undefined ? undefined : { directory, path: lock.slice(slash + 1) };
}
