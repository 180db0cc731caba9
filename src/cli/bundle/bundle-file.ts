import { createHash } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import * as v from "valibot";
import { BLOCK_BYTES, parseTarHeader, tarHeader } from "../../base/files/tar.ts";
import type { DockerHost } from "../../docker/docker-host.ts";

/** The bundle cannot be used; nothing was changed. */
export class BundleError extends Error {}

interface Bundle {
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
  const stat = await bundle.stat().catch(() => undefined);
  if (!stat) throw new BundleError(`there is no bundle "${file}"`);
  if (!stat.isFile()) throw new BundleError(`"${file}" is no file: a bundle is read more than once`);
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
  engine: Pick<DockerHost, "loadImages" | "missingImages">,
  { index, read }: Pick<Bundle, "read"> & { index: Pick<BundleIndex, "images"> },
): Promise<string[]> {
  const missing = await engine.missingImages(index.images);
  if (missing.length === 0) return [];
  try {
    await engine.loadImages(read(IMAGES));
  } catch (error) {
    throw new BundleError(
      `the engine does not load the images: ${(error as Error).message}; check its disk: docker system df`,
    );
  }
  const still = await engine.missingImages(missing);
  if (still.length > 0) throw new BundleError(`images are missing after loading: ${still.join(", ")}`);
  return missing;
}

/** `bundle.json`, the last entry of a bundle: a file without it is not complete. */
const BundleIndexSchema = v.object({
  version: v.literal(1),
  /** As Node names it: `x64`, `arm64`. */
  architecture: v.string(),
  /** Version of the binary. */
  kubeletVersion: v.string(),
  /** Names of the images, as the manifests have them. */
  images: v.array(v.string()),
  /** `kubelet-ts`, `images.tar`, `manifests/web.yaml`. */
  files: v.array(v.object({ path: v.string(), size: v.number(), sha256: v.string() })),
});
type BundleIndex = v.InferOutput<typeof BundleIndexSchema>;
type BundleFile = BundleIndex["files"][number];

const INDEX = "bundle.json";
export const BINARY = "kubelet-ts";
export const IMAGES = "images.tar";
export const MANIFESTS = "manifests/";

/** A file of a bundle. */
interface FoundFile extends BundleFile {
  /** Position of its first byte in the bundle. */
  offset: number;
}

/**
 * Compares what a bundle holds with its index.
 * @returns what is wrong, or undefined
 */
export function checkBundle(index: BundleIndex, found: readonly FoundFile[], architecture: string): string | undefined {
  if (index.architecture !== architecture) {
    return `it is for ${index.architecture}, and this machine is ${architecture}: make it on a machine of that kind`;
  }
  for (const file of index.files) {
    const there = found.find(({ path }) => path === file.path);
    if (!there) return `"${file.path}" is missing`;
    if (there.size !== file.size || there.sha256 !== file.sha256) {
      return `"${file.path}" is damaged: its checksum is not that of the index`;
    }
    if (file.path.startsWith(MANIFESTS) && !/^(?!\.\.?$)[^/]+$/.test(file.path.slice(MANIFESTS.length))) {
      return `"${file.path}" is not a name of a manifest`;
    }
  }
  const known = new Set(index.files.map(({ path }) => path));
  const extra = found.find(({ path }) => !known.has(path));
  return extra && `"${extra.path}" is not in its index`;
}

/** Content of a bundle, streamed: sizes need not be known before. */
export interface BundleContent {
  path: string;
  mode: number;
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/**
 * Writes a bundle: a tar archive whose headers are written when the sizes are known, with the checksums in the last entry.
 * The file is complete or absent.
 * @throws the system's error, e.g. ENOSPC; what a content throws
 */
export async function writeBundle(
  file: string,
  contents: readonly BundleContent[],
  facts: Omit<BundleIndex, "files">,
): Promise<BundleIndex> {
  const scratch = `${file}.partial`;
  try {
    // Manifests may hold secrets.
    await using handle = await open(scratch, "w", 0o600);
    let at = 0;
    const put = async (bytes: Uint8Array, position: number) => {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
        done += bytesWritten;
      }
    };
    const add = async ({ path, mode, chunks }: BundleContent): Promise<BundleFile> => {
      const hash = createHash("sha256");
      let size = 0;
      for await (const chunk of chunks) {
        hash.update(chunk);
        await put(chunk, at + BLOCK_BYTES + size);
        size += chunk.length;
      }
      await put(tarHeader({ path, mode, size }), at);
      const end = Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
      if (end > size) await put(new Uint8Array(end - size), at + BLOCK_BYTES + size);
      at += BLOCK_BYTES + end;
      return { path, size, sha256: hash.digest("hex") };
    };
    const files: BundleFile[] = [];
    for (const content of contents) files.push(await add(content));
    const index: BundleIndex = { ...facts, files };
    await add({ path: INDEX, mode: 0o644, chunks: [Buffer.from(`${JSON.stringify(index, null, 2)}\n`)] });
    await put(new Uint8Array(2 * BLOCK_BYTES), at);
    await handle.sync();
    await rename(scratch, file);
    return index;
  } catch (error) {
    await rm(scratch, { force: true }).catch(() => {});
    throw error;
  }
}
