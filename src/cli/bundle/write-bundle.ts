import { createHash } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { BLOCK_BYTES, tarHeader } from "../../docker/engine/tar.ts";
import { type BundleFile, type BundleIndex, INDEX } from "./bundle-index.ts";

/** Content of a bundle, streamed: sizes need not be known before. */
export interface BundleContent {
  path: string;
  mode: number;
  chunks: AsyncIterable<Uint8Array>;
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
    const handle = await open(scratch, "w", 0o600);
    try {
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
      await add({
        path: INDEX,
        mode: 0o644,
        chunks: once(new TextEncoder().encode(`${JSON.stringify(index, null, 2)}\n`)),
      });
      await put(new Uint8Array(2 * BLOCK_BYTES), at);
      await handle.sync();
      await handle.close();
      await rename(scratch, file);
      return index;
    } finally {
      await handle.close().catch(() => {});
    }
  } catch (error) {
    await rm(scratch, { force: true }).catch(() => {});
    throw error;
  }
}

export async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
