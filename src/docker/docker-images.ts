import { readdirSync, statSync } from "node:fs";
import * as v from "valibot";
import { readBoundedText, replaceFile, SYSTEM_FILE_BYTES } from "../base/files/whole-file.ts";
import type { Clock } from "../base/model/clock.ts";
import {
  type EngineImage,
  type ImageEngine,
  type ImageInfo,
  type ImageProgress,
  ImageRefusal,
  type Owner,
  type PullRequest,
  type RegistryProblem,
} from "../base/model/container-engine.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf, unlessFailed } from "../base/text/error-message.ts";
import { applyDefaultTag, fullNameOf, parseImageReference } from "../base/text/image-reference.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { DockerError, DockerUnreachableError, isConflict, isNotFound, known } from "./engine/docker-error.ts";
import type { ImageInspect, ProgressLine } from "./engine/schemas.ts";
import { isOwned, LABEL } from "./labels.ts";
import { isAnyPauseImage } from "./pause-image.ts";

/** Contents of the engine's image store. */
export interface ImageStore {
  /** Disk usage of all images. */
  bytes: number;
  images: readonly StoredImage[];
}

export interface StoredImage {
  /** `sha256:…` */
  id: string;
  /** Digests, then tags. */
  names: readonly string[];
  /** Layers shared with other images included. */
  sizeBytes: number;
  /** Unix seconds at which it was built; 0 = unknown. */
  createdSeconds: number;
}

/** Maximum age of a listed store: images change seldom, and a client that asks every second must cost nothing. */
const STORE_AGE_MS = 60_000;
const STORE_TIMEOUT_MS = 30_000;

interface DockerImagesDeps {
  client: DockerClient;
  owner: Owner;
  clock: Clock;
  logger: Logger;
  /** `--pod-infra-container-image`, "" = none. */
  pauseOverride: string;
}

/** The images of an engine. */
export class DockerImages implements ImageEngine {
  readonly #deps: DockerImagesDeps;
  readonly #pauseKey: string | undefined;
  #lastStore: { store: ImageStore; atMs: number } | undefined;
  #listing: Promise<ImageStore> | undefined;

  constructor(deps: DockerImagesDeps) {
    this.#deps = deps;
    this.#pauseKey = deps.pauseOverride === "" ? undefined : toImageKey(deps.pauseOverride);
  }

  async imageStatus(image: string, signal?: AbortSignal): Promise<ImageInfo | undefined> {
    const ref = applyDefaultTag(image);
    try {
      return await known(this.#inspect(ref, signal));
    } catch (error) {
      if (!(error instanceof DockerError)) throw error;
      // Newer grammar reads `UPPER/x` as a registry and a name; older engines refuse it.
      if (error.status !== 400) throw new ImageRefusal("failed", engineText(error), "other", { cause: error });
      const why = error.daemonMessage.replace(/^no such image: \S+: /i, "");
      throw new ImageRefusal("bad-name", why, "other", { cause: error });
    }
  }

  async #inspect(ref: string, signal: AbortSignal | undefined): Promise<ImageInfo> {
    return toImageInfo(ref, await this.#deps.client.inspectImage(ref, { signal }));
  }

  async pull(
    ref: string,
    { image, auths, progressDeadlineMs, onProgress }: PullRequest,
    signal: AbortSignal,
  ): Promise<ImageInfo> {
    const errors: unknown[] = [];
    for (const auth of auths.length > 0 ? auths : [undefined]) {
      const progress = new PullProgress(image);
      try {
        await this.#deps.client.pullImage(ref, {
          auth,
          signal,
          idleTimeoutMs: progressDeadlineMs,
          onProgress: (line) => onProgress?.(progress.add(line)),
        });
        return await this.#inspect(ref, signal);
      } catch (error) {
        signal.throwIfAborted();
        // A stalled pull is `timeout` too, but concerns the image, not the engine.
        if (error instanceof DockerUnreachableError && error.kind !== "timeout") throw error;
        this.#deps.logger.debug("A pull failed", { image, why: messageOf(error) });
        errors.push(error);
      }
    }
    throw toPullRefusal(errors);
  }

  /** All images, listed on demand, at most once a minute; concurrent callers share one request. @throws what the client throws */
  inventory(): Promise<ImageStore> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#lastStore && nowMs - this.#lastStore.atMs < STORE_AGE_MS) return Promise.resolve(this.#lastStore.store);
    this.#listing ??= this.#readStore(nowMs).finally(() => {
      this.#listing = undefined;
    });
    return this.#listing;
  }

  async #readStore(atMs: number): Promise<ImageStore> {
    const options = { timeoutMs: STORE_TIMEOUT_MS };
    const found = await this.#deps.client.listImages({}, options);
    // Each layer once. Older engines cannot be asked for images alone and would measure every container and volume too;
    // there layers that images share count for each of them, which is upstream's figure (ImageStats of its runtime).
    const bytes = (await this.#deps.client.supports("1.42"))
      ? await this.#deps.client.imagesBytes(options)
      : found.reduce((sum, { Size }) => sum + Size, 0);
    const images = found.map(({ Id, RepoDigests, RepoTags, Size, Created }) => ({
      id: Id,
      names: [...RepoDigests, ...RepoTags],
      sizeBytes: Size,
      createdSeconds: Created,
    }));
    const store = { bytes, images };
    this.#lastStore = { store, atMs };
    return store;
  }

  /** @throws DockerError, DockerUnreachableError */
  async list(signal: AbortSignal): Promise<EngineImage[]> {
    const [images, containers] = await Promise.all([
      this.#deps.client.listImages({}, { signal }),
      this.#deps.client.listContainers({ all: true }, { signal }),
    ]);
    const byImage = Map.groupBy(containers, ({ ImageID }) => ImageID);
    return images.map((image): EngineImage => {
      const users = byImage.get(image.Id) ?? [];
      const ours = users.filter(({ Labels }) => isOwned(Labels, this.#deps.owner));
      const names = ours.map(({ Labels }) => Labels[LABEL.image]).filter((name) => name !== undefined);
      const keys = image.RepoTags.map(toImageKey);
      const known = [image.Id, ...keys, ...image.RepoDigests.map(toImageKey)];
      return {
        id: image.Id,
        tags: image.RepoTags,
        keys,
        sizeBytes: image.Size,
        isInUse: users.length > 0,
        usedByUsAs: ours.length > 0 ? [...new Set([...new Set(names)].map(toImageKey))] : undefined,
        isPause: isAnyPauseImage(image.Labels) || (this.#pauseKey !== undefined && known.includes(this.#pauseKey)),
      };
    });
  }

  async remove({ id, tags }: EngineImage, signal: AbortSignal): Promise<boolean> {
    try {
      // The engine refuses to remove an image with several names by id; removing its last name removes the image.
      for (const name of tags.length > 0 ? tags : [id]) {
        await this.#deps.client.removeImage(name, {}, { signal });
      }
      return true;
    } catch (error) {
      if (isNotFound(error)) return true;
      if (isConflict(error)) return false;
      throw error;
    }
  }
}

/** An image name in the form in which two can be compared: `docker.io/library/busybox:latest`. An id stays as it is. */
export const toImageKey = (name: string): string =>
  unlessFailed(() => fullNameOf(parseImageReference(applyDefaultTag(name)))) ?? name;

type ImageConfig = ImageInspect["Config"];

function toImageInfo(ref: string, image: ImageInspect): ImageInfo {
  const { Config } = image;
  return {
    id: image.Id,
    ref,
    repoDigests: image.RepoDigests,
    repoTags: image.RepoTags,
    user: Config.User,
    env: Config.Env,
    entrypoint: Config.Entrypoint ?? [],
    cmd: Config.Cmd ?? [],
    workingDir: Config.WorkingDir,
    volumes: Object.keys(Config.Volumes),
    stopSignal: Config.StopSignal,
    healthcheck: Config.Healthcheck ? toHealthcheck(Config.Healthcheck) : undefined,
    labels: Config.Labels,
    architecture: image.Architecture,
    sizeBytes: image.Size,
  };
}

const toHealthcheck = ({ Test, Interval, Timeout, StartPeriod, Retries }: NonNullable<ImageConfig["Healthcheck"]>) => ({
  test: Test,
  intervalMs: Interval / 1e6,
  timeoutMs: Timeout / 1e6,
  startPeriodMs: StartPeriod / 1e6,
  retries: Retries,
});

/** The engine reports a registry's problem as text only: matched here alone, for hints; no decision depends on it. */
export function registryProblem(daemonMessage: string): Exclude<RegistryProblem, "stalled"> {
  const text = daemonMessage.toLowerCase();
  if (/x509:|tls:|certificate|gave http response to https client/.test(text)) return "tls";
  // Docker Hub says "denied" for what does not exist too: both words come, and denied covers both.
  if (/unauthorized|denied|no basic auth credentials|authentication required|forbidden/.test(text)) return "denied";
  if (/manifest unknown|name unknown|not found|no matching manifest|does not exist/.test(text)) return "unknown";
  if (/dial tcp|no such host|connection refused|i\/o timeout|timeout|unreachable|eof|connection reset/.test(text)) {
    return "unreachable";
  }
  return "other";
}

/** dockershim's prefix of the engine's messages; scripts and alerts match it. */
const RUNTIME_ERROR_PREFIX = "rpc error: code = Unknown desc = ";

/** An engine's error in the kubelet's format. */
const engineText = (error: DockerError) => `${RUNTIME_ERROR_PREFIX}Error response from daemon: ${error.daemonMessage}`;

function toPullRefusal(errors: readonly unknown[]): ImageRefusal {
  const causes = [
    ...new Set(errors.map((error) => (error instanceof DockerError ? engineText(error) : messageOf(error)))),
  ];
  const detail = causes.length === 1 ? causes[0]! : `[${causes.join(", ")}]`;
  const cause = errors.at(-1);
  if (!(cause instanceof DockerError)) {
    const isStalled = cause instanceof DockerUnreachableError && cause.kind === "timeout";
    return new ImageRefusal("failed", detail, isStalled ? "stalled" : "other", { cause });
  }
  // Source: dockershim `filterHTTPError`. A refused connection is no such case: the engine reports it as its own 500.
  const isGateway = [502, 503, 504].includes(cause.status);
  if (isGateway) return new ImageRefusal("unavailable", detail, "unreachable", { cause });
  return new ImageRefusal("failed", detail, registryProblem(cause.daemonMessage), { cause });
}

/** Adds up what the engine reports layer by layer. */
export class PullProgress {
  readonly #image: string;
  readonly #layers = new Map<string, { done: boolean; current: number; total: number }>();

  constructor(image: string) {
    this.#image = image;
  }

  add(line: ProgressLine): ImageProgress {
    // Lines about the whole image have no id, or (`Pulling from library/nginx`) the tag for an id.
    if (line.id !== "" && !line.status.startsWith("Pulling from")) this.#addLayer(line);
    const layers = [...this.#layers.values()];
    return {
      image: this.#image,
      layers: layers.length,
      layersDone: layers.filter((layer) => layer.done).length,
      downloadedBytes: layers.reduce((sum, layer) => sum + layer.current, 0),
      totalBytes: layers.reduce((sum, layer) => sum + layer.total, 0),
    };
  }

  #addLayer({ id, status, progressDetail }: ProgressLine): void {
    const layer = this.#layers.getOrInsert(id, { done: false, current: 0, total: 0 });
    switch (status) {
      case "Downloading":
        layer.current = progressDetail.current;
        layer.total = Math.max(progressDetail.total, progressDetail.current);
        break;
      case "Download complete":
        layer.current = layer.total;
        break;
      case "Pull complete":
      case "Already exists":
        layer.current = layer.total;
        layer.done = true;
        break;
    }
  }
}

/** Remembered per file, so that an archive of gigabytes is not sent to the engine at every start. A hint only. */
const RememberedSchema = v.object({ size: v.number(), mtimeMs: v.number(), images: v.array(v.string()) });
type Remembered = v.InferOutput<typeof RememberedSchema>;
const StateSchema = v.object({ version: v.literal(1), archives: v.record(v.string(), RememberedSchema) });

const ARCHIVE = /\.(?:tar|tar\.gz|tgz|tar\.xz|tar\.bz2|tar\.zst)$/;

/**
 * Loads every image archive of a directory, by name; one that cannot be loaded is logged. None when it is missing.
 * @param stateFile keeps which archives were loaded
 * @returns names of the images that are there now, or ids of those without a name
 */
export async function preloadImages(
  client: DockerClient,
  directory: string,
  stateFile: string,
  logger: Logger,
  signal: AbortSignal,
): Promise<string[]> {
  const remembered = readState(stateFile);
  const names: string[] = [];
  let isChanged = false;
  const next: { [file: string]: Remembered } = {};
  for (const file of listArchives(directory, logger)) {
    signal.throwIfAborted();
    const path = `${directory}/${file}`;
    try {
      const { size, mtimeMs } = statArchive(path);
      const before = remembered[file];
      const same = before && before.size === size && before.mtimeMs === mtimeMs && before.images.length > 0;
      if (same && (await areThere(client, before.images, signal))) {
        next[file] = before;
        names.push(...before.images);
        continue;
      }
      isChanged = true;
      const images = await loadArchive(client, path, signal);
      next[file] = { size, mtimeMs, images };
      names.push(...images);
      logger.info(`Loaded ${images.join(", ") || "no image"} from "${path}"`);
    } catch (error) {
      signal.throwIfAborted();
      logger.error(`Cannot load images from "${path}": ${messageOf(error)}`);
    }
  }
  if (isChanged) writeState(stateFile, next, logger);
  return names;
}

function statArchive(path: string): { size: number; mtimeMs: number } {
  const stats = statSync(path);
  if (!stats.isFile()) throw new Error("it is not a file");
  return stats;
}

/** zstd is decompressed here: engines before 23.0 support gzip, bzip2 and xz only. */
async function loadArchive(client: DockerClient, path: string, signal: AbortSignal): Promise<string[]> {
  if (!path.endsWith(".zst")) return client.loadImage(Bun.file(path), { signal });
  let broken: Error | undefined;
  const unpack = async function* () {
    try {
      yield* Bun.file(path).stream().pipeThrough(new DecompressionStream("zstd"));
    } catch (error) {
      broken = new Error(`not zstd, or truncated: ${(error as Error).message}`, { cause: error });
      throw broken;
    }
  };
  try {
    return await client.loadImage(new Response(unpack()).body as ReadableStream<Uint8Array>, { signal });
  } catch (error) {
    // The engine only sees the end of the stream.
    throw broken ?? error;
  }
}

function listArchives(directory: string, logger: Logger): string[] {
  try {
    return readdirSync(directory)
      .filter((file) => ARCHIVE.test(file))
      .sort();
  } catch (error) {
    logger.warn(`The images directory ${directory} cannot be read: ${messageOf(error)}`);
    return [];
  }
}

async function areThere(client: DockerClient, images: readonly string[], signal: AbortSignal): Promise<boolean> {
  for (const image of images) if (!(await known(client.inspectImage(image, { signal })))) return false;
  return true;
}

const readState = (path: string): Readonly<Record<string, Remembered | undefined>> =>
  unlessFailed(() => v.parse(StateSchema, JSON.parse(readBoundedText(path, SYSTEM_FILE_BYTES))).archives) ?? {};

function writeState(path: string, archives: Readonly<Record<string, Remembered>>, logger: Logger): void {
  try {
    replaceFile(path, JSON.stringify({ version: 1, archives }), { durable: false });
  } catch (error) {
    logger.warn(`Cannot save the list of loaded images to ${path}: ${messageOf(error)}`);
  }
}
