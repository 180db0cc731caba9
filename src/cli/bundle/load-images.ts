import type { DockerClient } from "../../docker/engine/docker-client.ts";
import { type BundleIndex, IMAGES } from "./bundle-index.ts";
import { type Bundle, BundleError } from "./read-bundle.ts";

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
