import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { isNotFound } from "./engine/docker-error.ts";
import { type ImageInfo, toImageInfo } from "./image-info.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/**
 * Remembers what the engine says of images, as long as its events are heard: any image event (pull, load, tag, untag,
 * delete, import, prune) drops everything, and while the events are not heard nothing is remembered.
 */
export class ImageStatusCache {
  readonly #client: DockerClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #known = new Map<string, ImageInfo>();
  #listening = false;
  /** Counts drops: an answer that was under way at a drop is not remembered. */
  #generation = 0;

  constructor(options: { client: DockerClient; clock: Clock; logger: Logger }) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /** @returns undefined when the engine does not have it. @throws DockerError, DockerUnreachableError */
  async get(ref: string, signal: AbortSignal | undefined): Promise<ImageInfo | undefined> {
    const known = this.#known.get(ref);
    if (known) return known;
    const generation = this.#generation;
    try {
      const info = toImageInfo(ref, await this.#client.inspectImage(ref, { signal }));
      if (this.#listening && generation === this.#generation) this.#known.set(ref, info);
      return info;
    } catch (error) {
      // Absence is never cached: it is looked up just before a pull, and is cheap compared with it.
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  forget(ref: string): void {
    this.#generation++;
    this.#known.delete(ref);
  }

  /** Listens, and connects again when the engine was unreachable, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      try {
        const onOpen = () => {
          pauseMs = FIRST_PAUSE_MS;
          this.#drop();
          this.#listening = true;
        };
        for await (const _event of this.#client.events({ filters: { type: ["image"] }, signal, onOpen })) this.#drop();
      } catch (error) {
        this.#logger.debug("Image events are not heard", {
          why: messageOf(error),
        });
      }
      this.#listening = false;
      this.#drop();
      try {
        await this.#clock.sleep(pauseMs, signal);
      } catch {
        return;
      }
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  #drop(): void {
    this.#generation++;
    this.#known.clear();
  }
}
