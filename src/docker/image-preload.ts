import { readdirSync, statSync } from "node:fs";
import * as v from "valibot";
import { readBoundedText, replaceFile, SYSTEM_FILE_BYTES } from "../base/files/whole-file.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf, unlessFailed } from "../base/text/error-message.ts";
import type { DockerClient } from "./engine/docker-client.ts";
import { known } from "./engine/docker-error.ts";

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
