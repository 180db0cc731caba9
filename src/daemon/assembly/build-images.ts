import { join } from "node:path";
import type { DesiredPod } from "../../base/model/desired-pod.ts";
import { containersOf } from "../../base/model/pod-containers.ts";
import { CredentialProviders } from "../../docker/credential-provider.ts";
import type { EngineConnection } from "../../docker/engine-connection.ts";
import { EngineImages, toImageKey } from "../../docker/engine-images.ts";
import { ImageCredentials } from "../../docker/image-credentials.ts";
import { ImageManager } from "../../docker/image-manager.ts";
import { preloadImages } from "../../docker/image-preload.ts";
import type { ImageProgress } from "../../docker/pull-progress.ts";
import { ImageGcManager } from "../../kubelet/images/image-gc-manager.ts";
import type { ImageUpdateManager } from "../../kubelet/images/image-update-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { readCapacity } from "../../stats/disk-usage.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { KnownImagesSchema } from "./state-schemas.ts";

/** Pulls images, with the credentials of pods, of the machine and of credential providers. */
export function buildImageManager(
  context: NodeContext,
  { client }: EngineConnection,
  credentials: ImageCredentials,
  onProgress: ((progress: ImageProgress) => void) | undefined,
): ImageManager {
  const { options, clock, logger, recorder, metrics } = context;
  return new ImageManager({
    client,
    clock,
    logger,
    recorder,
    credentials,
    limits: {
      maxParallel: options.serializeImagePulls ? 1 : options.maxParallelImagePulls,
      perSecond: options.registryPullQps,
      burst: options.registryBurst,
    },
    progressDeadlineMs: options.imagePullProgressDeadlineMs,
    onProgress,
    onPull: (durationMs, failed) => metrics.countOperation("pull_image", durationMs, failed),
  });
}

export function buildImageCredentials({
  options,
  environment,
  clock,
  logger,
  background,
}: NodeContext): ImageCredentials {
  const { imageCredentialProviderConfig: file, imageCredentialProviderBinDir: binDir } = options;
  return new ImageCredentials({
    rootDir: options.rootDir,
    homeDir: environment.HOME ?? "",
    logger,
    files: background.textFiles,
    ...(file && { providers: CredentialProviders.fromFile(file, binDir, clock, logger) }),
  });
}

/** Removes unused images. Images that pods use are noted from now on. */
export function buildImageGc(
  context: NodeContext,
  engine: EngineConnection,
  images: ImageManager,
  kubelet: Kubelet,
  updates: ImageUpdateManager,
): ImageGcManager {
  const { options, clock, logger, owner } = context;
  const imageGc = new ImageGcManager({
    clock,
    logger,
    images: new EngineImages(engine.client, owner, options.podInfraContainerImage),
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
  images.onUse(({ id, ref }) => imageGc.noteUsed(id, toImageKey(ref)));
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
  { options, logger }: NodeContext,
  { client }: EngineConnection,
  imageGc: ImageGcManager,
  signal: AbortSignal,
): Promise<void> {
  if (!options.imagesDir) return;
  const state = join(options.rootDir, "state", "images.json");
  const archives = await preloadImages(client, options.imagesDir, state, logger, signal);
  for (const name of archives.flatMap((archive) => archive.images)) {
    const image = await client.inspectImage(name, { signal }).catch(() => undefined);
    if (image) imageGc.noteUsed(image.Id, toImageKey(name));
  }
}
