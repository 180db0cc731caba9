import type { Clock } from "../base/model/clock.ts";
import type { DockerClient } from "./engine/docker-client.ts";

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

/** Maximum age of a cached list: images change seldom, and a client that asks every second must cost nothing. */
const AGE_MS = 60_000;
const TIMEOUT_MS = 30_000;

/** The engine's images, listed on demand, at most once a minute; concurrent callers share one request. */
export class ImageInventory {
  readonly #client: DockerClient;
  readonly #clock: Clock;
  #last: { store: ImageStore; atMs: number } | undefined;
  #listing: Promise<ImageStore> | undefined;

  constructor(client: DockerClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** @throws what the client throws */
  list(): Promise<ImageStore> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#last && nowMs - this.#last.atMs < AGE_MS) return Promise.resolve(this.#last.store);
    this.#listing ??= this.#read(nowMs).finally(() => {
      this.#listing = undefined;
    });
    return this.#listing;
  }

  async #read(atMs: number): Promise<ImageStore> {
    const options = { timeoutMs: TIMEOUT_MS };
    const found = await this.#client.listImages({}, options);
    // Each layer once. Older engines cannot be asked for images alone and would measure every container and volume too;
    // there layers that images share count for each of them, which is upstream's figure (ImageStats of its runtime).
    const bytes = this.#client.supports("1.42")
      ? (await this.#client.diskUsage({ ...options, only: "image" })).imagesBytes
      : found.reduce((sum, { Size }) => sum + Size, 0);
    const images = found.map(({ Id, RepoDigests, RepoTags, Size, Created }) => ({
      id: Id,
      names: [...RepoDigests, ...RepoTags],
      sizeBytes: Size,
      createdSeconds: Created,
    }));
    const store = { bytes, images };
    this.#last = { store, atMs };
    return store;
  }
}
