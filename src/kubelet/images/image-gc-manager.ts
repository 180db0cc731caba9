import { Turns } from "../../base/concurrency/turns.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { EngineImage, ImageEngine } from "../../base/model/container-engine.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import {
  computeImageGc,
  type ImageDisk,
  type ImageGcPolicy,
  type ImageRemoval,
  type UnusedImage,
} from "../../plan/image-gc.ts";

export interface KnownImage {
  /** Names under which it was pulled or loaded, as `toImageKey` writes them. */
  names: readonly string[];
  /** How long the image was unused while the kubelet ran: wall clocks jump, so no time of day is stored. */
  unusedMs: number;
}

interface ImageGcDeps {
  clock: Clock;
  logger: Logger;
  images: Pick<ImageEngine, "list" | "remove">;
  /** The disk the engine keeps images on; undefined when it cannot be asked. */
  readDisk: () => Promise<ImageDisk | undefined>;
  /** Names that desired pods mention, as `toImageKey` writes them: these are in use, whether the pods run or not. */
  wantedNames: () => ReadonlySet<string>;
  /** false while not every desired pod is known: nothing is removed then. */
  isReady: () => boolean;
  file: Persisted<Record<string, KnownImage>>;
  policy: ImageGcPolicy;
}

/** Source: upstream's ImageGCPeriod. */
const PERIOD_MS = 5 * 60_000;
/** Long enough for sources to be read and pods to be created. */
const FIRST_MS = 10_000;
/** The age of an unused image is written when it has grown by this: a kubelet that starts again knows it no better. */
const WRITTEN_AGE_MS = 3_600_000;

/**
 * Removes unused images when the image disk is too full or the images are too old. Only images that our pods used or
 * that the kubelet loaded, and only while all their names were pulled or loaded by it. Images of other users of the
 * engine, the pause image, and images of any existing container are never removed.
 */
export class ImageGcManager {
  readonly #deps: ImageGcDeps;
  readonly #changes: ChangeLogger;
  readonly #tracked = new Map<string, { names: Set<string>; lastUsedMs: number }>();
  /** The timer and a node short of disk do not remove side by side. */
  readonly #turns = new Turns();
  /** Ids of the images that may be removed when the disk is full, as of the last collection. */
  removable: ReadonlySet<string> = new Set();
  /** Names and written ages, as text. */
  #saved = "";

  constructor(deps: ImageGcDeps) {
    this.#deps = deps;
    this.#changes = new ChangeLogger(deps.logger);
    const nowMs = deps.clock.monotonicMs();
    for (const [id, { names, unusedMs }] of Object.entries(deps.file.read() ?? {})) {
      this.#tracked.set(id, { names: new Set(names), lastUsedMs: nowMs - unusedMs });
    }
  }

  /** Time since a pod used this image, as of the last collection; undefined for an image that none has used. */
  unusedMs(id: string): number | undefined {
    const known = this.#tracked.get(id);
    return known && this.#deps.clock.monotonicMs() - known.lastUsedMs;
  }

  /** One of our pods uses this image, or the kubelet loaded it: it may be removed once it is unused. */
  noteUsed(id: string, name: string): void {
    const known = this.#tracked.get(id);
    const isNew = !known?.names.has(name);
    this.#track(id, [name]);
    if (isNew) this.#save();
  }

  /** Collects every five minutes. Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    for (let waitMs = FIRST_MS; !signal.aborted; waitMs = PERIOD_MS) {
      await this.#deps.clock.sleep(waitMs, signal).catch(() => {});
      if (signal.aborted) return;
      await this.collect(signal).catch((error: Error) => {
        if (!signal.aborted) this.#deps.logger.warn(`Cannot collect unused images: ${error.message}`);
      });
    }
  }

  /** One collection by the thresholds. @throws what the engine throws */
  collect(signal: AbortSignal): Promise<void> {
    return this.#turns.run("", async () => {
      const { readDisk, policy } = this.#deps;
      const age = "it was not used for too long";
      const toDisk = (used: number | undefined) =>
        `the image disk is ${used} % full, the threshold is ${policy.highThresholdPercent} %`;
      const done = await this.#reclaim(readDisk, policy, (used) => ({ disk: toDisk(used), age }), signal);
      if (!done) return;
      const { usedPercent = 0, missingBytes, inUse } = done;
      if (usedPercent >= policy.highThresholdPercent && missingBytes + inUse > 0) {
        const message = `The image disk is ${usedPercent} % full and no further unused image may be removed`;
        this.#changes.log("full", "warn", message);
      } else this.#changes.resolve("full", "The image disk has room again");
    });
  }

  /** Removes everything unused for the minimum time: the node is short of disk. @returns how many images were removed */
  reclaim(signal: AbortSignal): Promise<number> {
    return this.#turns.run("", async () => {
      const everything = { ...this.#deps.policy, highThresholdPercent: 0, lowThresholdPercent: 0 };
      const full = async () => ({ capacityBytes: Number.MAX_SAFE_INTEGER, availableBytes: 0 });
      const why = "the node is short of disk";
      const done = await this.#reclaim(full, everything, () => ({ disk: why, age: why }), signal);
      return done ? done.removals.length - done.inUse : 0;
    });
  }

  /** @param toReasons gets the percentage of the disk in use @returns undefined while it is too early */
  async #reclaim(
    readDisk: ImageGcDeps["readDisk"],
    policy: ImageGcPolicy,
    toReasons: (usedPercent: number | undefined) => Record<ImageRemoval["why"], string>,
    signal: AbortSignal,
  ) {
    const unused = await this.#detectImages(signal);
    if (!unused) return undefined;
    const plan = computeImageGc([...unused.keys()], await readDisk(), policy, this.#deps.clock.monotonicMs());
    const images = new Map([...unused].map(([{ id }, image]) => [id, image]));
    return { ...plan, inUse: await this.#remove(plan.removals, images, signal, toReasons(plan.usedPercent)) };
  }

  /** Brings the record up to date. @returns what may go, with the image itself; undefined while it is too early */
  async #detectImages(signal: AbortSignal): Promise<Map<UnusedImage, EngineImage> | undefined> {
    const { images, isReady } = this.#deps;
    const found = await images.list(signal);
    const unused = new Map<UnusedImage, EngineImage>();
    const wanted = this.#deps.wantedNames();
    const ids = new Set(found.map(({ id }) => id));
    for (const id of this.#tracked.keys()) if (!ids.has(id)) this.#tracked.delete(id);
    for (const image of found) {
      if (image.usedByUsAs) this.#track(image.id, image.usedByUsAs);
      const known = this.#tracked.get(image.id);
      if (!known) continue;
      if (image.isInUse || this.#isWanted(image, wanted)) known.lastUsedMs = this.#deps.clock.monotonicMs();
      else if (!image.isPause && image.keys.every((key) => known.names.has(key))) {
        unused.set({ id: image.id, sizeBytes: image.sizeBytes, lastUsedMs: known.lastUsedMs }, image);
      }
    }
    this.#save();
    this.removable = new Set([...unused.keys()].map(({ id }) => id));
    return isReady() ? unused : undefined;
  }

  #isWanted({ id, keys }: EngineImage, wanted: ReadonlySet<string>): boolean {
    return [id, ...keys, ...(this.#tracked.get(id)?.names ?? [])].some((name) => wanted.has(name));
  }

  /** @returns how many of them turned out to be in use */
  async #remove(
    removals: readonly ImageRemoval[],
    images: ReadonlyMap<string, EngineImage>,
    signal: AbortSignal,
    reasons: Record<ImageRemoval["why"], string>,
  ): Promise<number> {
    let inUse = 0;
    for (const { id, why } of removals) {
      const image = images.get(id);
      if (!image) continue;
      signal.throwIfAborted();
      const name = image.tags[0] ?? id;
      // A pod may have started to need it while others were removed.
      if (this.#isWanted(image, this.#deps.wantedNames()) || !(await this.#deps.images.remove(image, signal))) {
        inUse++;
        this.#deps.logger.debug(`Image "${name}" is used after all`);
        continue;
      }
      this.#tracked.delete(id);
      const megabytes = (image.sizeBytes / 1e6).toFixed(1);
      this.#deps.logger.info(`Removed unused image "${name}" (${megabytes} MB): ${reasons[why]}`);
    }
    if (removals.length > 0) this.#save();
    return inUse;
  }

  #track(id: string, names: readonly string[]): void {
    const known = this.#tracked.getOrInsertComputed(id, () => ({ names: new Set(), lastUsedMs: 0 }));
    for (const name of names) known.names.add(name);
    known.lastUsedMs = this.#deps.clock.monotonicMs();
  }

  #save(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const known: Record<string, KnownImage> = {};
    for (const [id, { names, lastUsedMs }] of this.#tracked)
      known[id] = { names: [...names], unusedMs: nowMs - lastUsedMs };
    const text = JSON.stringify(known, (key, value) =>
      key === "unusedMs" ? Math.ceil(value / WRITTEN_AGE_MS) : value,
    );
    if (text === this.#saved) return;
    this.#saved = text;
    this.#deps.file.write(known);
  }
}
