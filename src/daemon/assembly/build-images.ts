import { join } from "node:path";
import { parseImageUpdatePolicy } from "../../base/api/image-update.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { DesiredPod } from "../../base/model/desired-pod.ts";
import { containersOf } from "../../base/model/pod-containers.ts";
import { parseImageReference, repositoryOf } from "../../base/text/image-reference.ts";
import type { DockerEngine } from "../../docker/docker-engine.ts";
import { toImageKey } from "../../docker/docker-images.ts";
import type { ImageCredentials } from "../../docker/image-credentials.ts";
import { RegistryClient } from "../../docker/registry-client.ts";
import { ImageGcManager } from "../../kubelet/images/image-gc-manager.ts";
import type { BaselineImage } from "../../kubelet/images/image-update-manager.ts";
import { ImageUpdateManager } from "../../kubelet/images/image-update-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { VolumeManager } from "../../kubelet/volumes/volume-manager.ts";
import { pickTag } from "../../plan/image-tags.ts";
import { proxyFor } from "../../sources/proxy.ts";
import { readCapacity } from "../../stats/disk-usage.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { ImageUpdatesSchema, KnownImagesSchema } from "./state-schemas.ts";

/** Removes unused images. Images that pods use are noted from now on. */
export function buildImageGc(
  context: NodeContext,
  engine: DockerEngine,
  kubelet: Kubelet,
  updates: ImageUpdateManager,
): ImageGcManager {
  const { options, clock, logger } = context;
  const imageGc = new ImageGcManager({
    clock,
    logger,
    images: engine.images,
    readDisk: () => readCapacity(engine.info().imagesDir, context.background.slot),
    wantedNames: () => new Set([...kubelet.desiredPods.flatMap(imagesOf), ...updates.pinnedRefs()].map(toImageKey)),
    isReady: () => kubelet.isComplete,
    file: openStateFile(context, "images-used", KnownImagesSchema),
    // Read at each use: these options may change while the kubelet runs.
    policy: {
      get highThresholdPercent() {
        return options.imageGcHighThresholdPercent;
      },
      get lowThresholdPercent() {
        return options.imageGcLowThresholdPercent;
      },
      get minimumTtlMs() {
        return options.minimumImageTtlMs;
      },
      get maximumAgeMs() {
        return options.imageMaximumGcAgeMs;
      },
    },
  });
  engine.images.onUse(({ id, ref }) => imageGc.noteUsed(id, toImageKey(ref)));
  return imageGc;
}

/** Every image that a pod mentions, but those that were updated: another image runs under these names. */
const imagesOf = ({ pod: { spec }, imagePins }: DesiredPod): string[] =>
  [
    ...containersOf(spec).map(({ image = "" }) => (imagePins?.get(image)?.isBaseline === false ? undefined : image)),
    ...(spec.volumes ?? []).map(({ image }) => image?.reference),
  ].filter((name) => name !== undefined && name !== "") as string[];

/** Loads the archives of `--images-dir` onto the engine. Rejects only when the signal aborts. */
export async function preloadImageArchives(
  { options }: NodeContext,
  engine: DockerEngine,
  imageGc: ImageGcManager,
  signal: AbortSignal,
): Promise<void> {
  if (!options.imagesDir) return;
  const state = join(options.rootDir, "state", "images.json");
  for (const name of await engine.preloadImages(options.imagesDir, state, signal)) {
    const image = await engine.images.imageStatus(name, signal).catch(() => undefined);
    if (image) imageGc.noteUsed(image.id, toImageKey(name));
  }
}

interface ImageUpdateParts {
  credentials: ImageCredentials;
  volumes: VolumeManager;
  /** Pods run other images now. */
  onChange: () => void;
}

/** Safe updates of images, for pods that ask for them. */
export function buildImageUpdates(
  context: NodeContext,
  engine: DockerEngine,
  { credentials, volumes, onChange }: ImageUpdateParts,
): ImageUpdateManager {
  const { options, clock, logger, recorder, environment, metrics } = context;
  const registry = new RegistryClient({
    files: context.background.textFiles,
    insecureRegistries: (signal) => engine.insecureRegistries(signal),
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
    pull: async (ref, pullSecrets, signal) => (await engine.images.pullAhead(ref, pullSecrets, signal)).id,
    describe: async (imageId, image) => {
      const info = await engine.images.imageStatus(imageId);
      return describeBaseline(image, imageId, info?.repoDigests ?? []);
    },
    isLocked: async (pod, lock) => {
      const lockPath = lockPathOf(pod, lock, volumes);
      return (
        lockPath !== undefined && (await context.background.tasks.existsBeneath(lockPath.directory, lockPath.path))
      );
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
function lockPathOf(pod: Pod, lock: string, volumes: VolumeManager): { directory: string; path: string } | undefined {
  const slash = lock.indexOf("/");
  const volume = pod.spec.volumes?.find(({ name }) => name === lock.slice(0, slash));
  const directory = volume?.emptyDir
    ? volumes.directories(pod.metadata.uid ?? "").volume("empty-dir", volume.name)
    : volume?.hostPath?.path;
  return directory === undefined ? undefined : { directory, path: lock.slice(slash + 1) };
}
