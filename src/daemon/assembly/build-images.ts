import { join } from "node:path";
import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { DesiredPod } from "../../base/model/desired-state.ts";
import { containersOf } from "../../base/model/pod.ts";
import { parseImageReference, repositoryOf, withoutTag } from "../../base/text/image-reference.ts";
import type { DockerEngine } from "../../docker/docker-engine.ts";
import { type ImageStore, toImageKey } from "../../docker/docker-images.ts";
import type { ImageCredentials } from "../../docker/image-credentials.ts";
import { RegistryClient } from "../../docker/registry-client.ts";
import { ImageGcManager } from "../../kubelet/images/image-gc-manager.ts";
import type { ImageManager } from "../../kubelet/images/image-manager.ts";
import { ImageUpdateManager, type ImageUpdateSources } from "../../kubelet/images/image-update-manager.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { VolumeManager } from "../../kubelet/volumes/volume-manager.ts";
import { type LookedUp, pickTag } from "../../plan/image-updates.ts";
import { proxyFor } from "../../sources/proxy.ts";
import { readCapacity } from "../../stats/disk-usage.ts";
import { liveOptions, type NodeContext } from "./node-context.ts";
import { openStateFile } from "./state-files.ts";

interface Images {
  engine: DockerEngine;
  images: ImageManager;
}

interface UpdateParts extends Images {
  credentials: ImageCredentials;
  volumes: VolumeManager;
}

/** Removes unused images. Images that pods use are noted from now on. */
export function buildImageGc(
  context: NodeContext,
  { engine, images }: Images,
  kubelet: Kubelet,
  updates: ImageUpdateManager,
): ImageGcManager {
  const { options } = context;
  const imageGc = new ImageGcManager({
    ...context,
    images: engine.images,
    readDisk: () => readCapacity(engine.info().imagesDir, context.background.slot),
    wantedNames: () => new Set([...kubelet.desiredPods.flatMap(imagesOf), ...updates.pinnedRefs()].map(toImageKey)),
    isReady: () => kubelet.isComplete,
    file: openStateFile(context, "images-used"),
    policy: liveOptions(options, {
      highThresholdPercent: "imageGcHighThresholdPercent",
      lowThresholdPercent: "imageGcLowThresholdPercent",
      minimumTtlMs: "minimumImageTtlMs",
      maximumAgeMs: "imageMaximumGcAgeMs",
    }),
  });
  images.uses.add(({ id, ref }) => imageGc.noteUsed(id, toImageKey(ref)));
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

/** All images; undefined where the engine fails, or does not answer in time. */
export const imagesWithin = (ms: number, { images }: DockerEngine, clock: Clock): Promise<ImageStore | undefined> =>
  Promise.race([images.inventory().catch(() => undefined), clock.sleep(ms).then(() => undefined)]);

/** Safe updates of images, for pods that ask for them. */
export function buildImageUpdates(context: NodeContext, parts: UpdateParts): ImageUpdateManager {
  return new ImageUpdateManager({
    ...context,
    random: Math.random,
    file: openStateFile(context, "image-updates"),
    sources: new RegistriesAndEngine(context, parts),
  });
}

class RegistriesAndEngine implements ImageUpdateSources {
  readonly #background: NodeContext["background"];
  readonly #parts: UpdateParts;
  readonly #registry: RegistryClient;

  constructor({ background, environment }: NodeContext, parts: UpdateParts) {
    this.#background = background;
    this.#parts = parts;
    this.#registry = new RegistryClient({
      files: background.textFiles,
      insecureRegistries: (signal) => parts.engine.insecureRegistries(signal),
      proxyFor: (url) => proxyFor(url, environment),
    });
  }

  async lookUp(...[image, policy, present, pullSecrets, signal]: Parameters<ImageUpdateSources["lookUp"]>) {
    const reference = parseImageReference(image);
    const auths = await this.#parts.credentials.lookUp(reference, pullSecrets, signal);
    const written = reference.tag ?? "latest";
    // A version is compared with the one that runs, not with the one of the manifest.
    const from = present === "" ? written : present;
    const tag =
      policy.kind === "semver"
        ? (pickTag(await this.#registry.tags(reference, auths, signal), policy.range, from) ?? from)
        : written;
    return { ref: `${withoutTag(image)}@${await this.#registry.digest(reference, tag, auths, signal)}`, tag };
  }

  async pull(...args: Parameters<ImageUpdateSources["pull"]>) {
    return (await this.#parts.images.pullAhead(...args)).id;
  }

  async describe(imageId: string, image: string) {
    const info = await this.#parts.engine.images.imageStatus(imageId);
    return describeBaseline(image, imageId, info?.repoDigests ?? []);
  }

  async isLocked(pod: Pod, lock: string) {
    const found = lockPathOf(pod, lock, this.#parts.volumes);
    return found !== undefined && (await this.#background.tasks.existsBeneath(found.directory, found.path));
  }
}

/** The image that runs, by the digest under which its registry has it; by its id when it was never pulled. */
function describeBaseline(image: string, imageId: string, repoDigests: readonly string[]): LookedUp {
  const reference = parseImageReference(image);
  const digest = repoDigests
    .filter((known) => repositoryOf(parseImageReference(known)) === repositoryOf(reference))
    .map((known) => known.slice(known.indexOf("@")))[0];
  const tag = reference.tag ?? "latest";
  return digest === undefined ? { ref: imageId, tag } : { ref: `${withoutTag(image)}${digest}`, tag };
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
