import { createHash } from "node:crypto";
import * as v from "valibot";
import type { DockerClient } from "../../docker/engine/docker-client.ts";
import { BLOCK_BYTES, parseTarHeader } from "../../docker/engine/tar.ts";
import { type BundleIndex, BundleIndexSchema, checkBundle, type FoundFile, IMAGES, INDEX } from "./bundle-index.ts";

/** The bundle cannot be used; nothing was changed. */
export class BundleError extends Error {}

export interface Bundle {
  index: BundleIndex;
  files: FoundFile[];
  /** The bytes of one of its files. */
  read: (path: string) => Blob;
}

const MAX_INDEX_BYTES = 16 * 1024 * 1024;

/**
 * Reads a whole bundle and verifies every checksum.
 * @param architecture of this machine, as Node names it
 * @throws BundleError
 */
export async function openBundle(file: string, architecture: string): Promise<Bundle> {
  const bundle = Bun.file(file);
  if (!(await bundle.exists())) throw new BundleError(`there is no bundle "${file}"`);
  const found: FoundFile[] = [];
  let index: BundleIndex | undefined;
  const { size } = bundle;
  for (let at = 0; index === undefined; ) {
    const header = await readHeader(bundle, at, file);
    if (!header) break;
    const offset = at + BLOCK_BYTES;
    if (offset + header.size > size) throw new BundleError(`"${file}" is cut off in "${header.path}"`);
    const slice = bundle.slice(offset, offset + header.size);
    if (header.path === INDEX) index = await readIndex(slice, file);
    else found.push({ ...header, offset, sha256: await hashOf(slice) });
    at = offset + Math.ceil(header.size / BLOCK_BYTES) * BLOCK_BYTES;
  }
  if (!index) throw new BundleError(`"${file}" is not complete: it has no ${INDEX} at its end`);
  const problem = checkBundle(index, found, architecture);
  if (problem !== undefined) throw new BundleError(`"${file}": ${problem}`);
  const read = (path: string) => {
    const entry = found.find((one) => one.path === path);
    if (!entry) throw new BundleError(`"${file}" has no "${path}"`);
    return bundle.slice(entry.offset, entry.offset + entry.size);
  };
  return { index, files: found, read };
}

async function readHeader(bundle: Blob, at: number, file: string) {
  if (at + BLOCK_BYTES > bundle.size) return undefined;
  try {
    return parseTarHeader(new Uint8Array(await bundle.slice(at, at + BLOCK_BYTES).arrayBuffer()));
  } catch (error) {
    throw new BundleError(`"${file}" is not a bundle, or is damaged at byte ${at}: ${(error as Error).message}`);
  }
}

async function readIndex(slice: Blob, file: string): Promise<BundleIndex> {
  if (slice.size > MAX_INDEX_BYTES) throw new BundleError(`the ${INDEX} of "${file}" is too large`);
  try {
    return v.parse(BundleIndexSchema, JSON.parse(await slice.text()));
  } catch {
    throw new BundleError(`the ${INDEX} of "${file}" cannot be read: it may be of another version of kubelet-ts`);
  }
}

async function hashOf(slice: Blob): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of slice.stream()) hash.update(chunk);
  return hash.digest("hex");
}

/**
 * Loads the images of a bundle that are not on the engine yet.
 * @returns their names; empty when all were there
 * @throws BundleError when the engine does not take them
 */
export async function loadBundleImages(
  client: Pick<DockerClient, "loadImage" | "inspectImage">,
  { index, read }: Pick<Bundle, "read"> & { index: Pick<BundleIndex, "images"> },
): Promise<string[]> {
  const missing = await missingImages(client, index.images);
  if (missing.length === 0) return [];
  try {
    await client.loadImage(read(IMAGES));
  } catch (error) {
    throw new BundleError(
      `the engine does not load the images: ${(error as Error).message}; check its disk: docker system df`,
    );
  }
  const still = await missingImages(client, missing);
  if (still.length > 0) throw new BundleError(`images are missing after loading: ${still.join(", ")}`);
  return missing;
}

async function missingImages(client: Pick<DockerClient, "inspectImage">, images: readonly string[]): Promise<string[]> {
  const missing: string[] = [];
  for (const image of images) {
    const found = await client.inspectImage(image).catch((error: { status?: number }) => {
      if (error.status === 404) return undefined;
      throw error;
    });
    if (!found) missing.push(image);
  }
  return missing;
}
