import { applyDefaultTag, parseImageReference } from "../base/text/image-reference.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { isConflict, isNotFound } from "./engine/docker-error.ts";
import { isOwned, LABEL, type Owner } from "./labels.ts";
import { isAnyPauseImage } from "./pause-image.ts";

/** One image as the clean-up sees it. */
export interface EngineImage {
  /** The engine's, `sha256:…`. */
  id: string;
  /** As the engine writes them. */
  tags: readonly string[];
  /** The same, as {@link toImageKey} writes them. */
  keys: readonly string[];
  sizeBytes: number;
  /** A container was created from it, by any program and in any state. */
  isInUse: boolean;
  /** {@link toImageKey} of the names by which our containers use it now; undefined when none does. */
  usedByUsAs: readonly string[] | undefined;
  isPause: boolean;
}

/**
 * An image name in the one form in which two can be compared: `docker.io/library/busybox:latest`. What is not a name (an
 * id) stays as it is.
 */
export function toImageKey(name: string): string {
  try {
    const { domain, path, tag, digest } = parseImageReference(applyDefaultTag(name));
    return `${domain}/${path}${tag === undefined ? "" : `:${tag}`}${digest === undefined ? "" : `@${digest}`}`;
  } catch {
    return name;
  }
}

/** The images of an engine, to clean up among them. */
export class EngineImages {
  readonly #client: DockerClient;
  readonly #owner: Owner;
  readonly #pauseKey: string | undefined;

  /** @param pauseOverride `--pod-infra-container-image`, "" = none */
  constructor(client: DockerClient, owner: Owner, pauseOverride: string) {
    this.#client = client;
    this.#owner = owner;
    this.#pauseKey = pauseOverride === "" ? undefined : toImageKey(pauseOverride);
  }

  /** @throws DockerError, DockerUnreachableError */
  async list(signal: AbortSignal): Promise<EngineImage[]> {
    const [images, containers] = await Promise.all([
      this.#client.listImages({}, { signal }),
      this.#client.listContainers({ all: true }, { signal }),
    ]);
    return images.map((image): EngineImage => {
      const users = containers.filter(({ ImageID }) => ImageID === image.Id);
      const ours = users.filter(({ Labels }) => isOwned(Labels, this.#owner));
      const names = ours.map(({ Labels }) => Labels[LABEL.image]).filter((name) => name !== undefined);
      const keys = image.RepoTags.map(toImageKey);
      const known = [image.Id, ...keys, ...image.RepoDigests.map(toImageKey)];
      return {
        id: image.Id,
        tags: image.RepoTags,
        keys,
        sizeBytes: image.Size,
        isInUse: users.length > 0,
        usedByUsAs: ours.length > 0 ? [...new Set(names.map(toImageKey))] : undefined,
        isPause: isAnyPauseImage(image.Labels) || (this.#pauseKey !== undefined && known.includes(this.#pauseKey)),
      };
    });
  }

  /**
   * Removes an image with all its names. Never by force: the engine refuses while any container uses it.
   * @returns false when it is used after all
   */
  async remove({ id, tags }: EngineImage, signal: AbortSignal): Promise<boolean> {
    try {
      // The engine refuses to remove an image with several names by id; removing its last name removes the image.
      for (const name of tags.length > 0 ? tags : [id]) {
        await this.#client.removeImage(name, {}, { signal });
      }
      return true;
    } catch (error) {
      if (isNotFound(error)) return true;
      if (isConflict(error)) return false;
      throw error;
    }
  }
}
