import * as v from "valibot";

/** One file of a bundle. */
export interface BundleFile {
  /** `kubelet-ts`, `images.tar`, `manifests/web.yaml`. */
  path: string;
  size: number;
  sha256: string;
}

/** `bundle.json`, the last entry of a bundle: a file without it is not complete. */
export const BundleIndexSchema = v.object({
  version: v.literal(1),
  /** As Node names it: `x64`, `arm64`. */
  architecture: v.string(),
  /** Version of the binary. */
  kubeletVersion: v.string(),
  /** Names of the images, as the manifests have them. */
  images: v.array(v.string()),
  files: v.array(v.object({ path: v.string(), size: v.number(), sha256: v.string() })),
});
export type BundleIndex = v.InferOutput<typeof BundleIndexSchema>;

export const INDEX = "bundle.json";
export const BINARY = "kubelet-ts";
export const IMAGES = "images.tar";
export const MANIFESTS = "manifests/";

/** A file of a bundle. */
export interface FoundFile extends BundleFile {
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
    if (file.path.startsWith(MANIFESTS) && !/^[^/]+$/.test(file.path.slice(MANIFESTS.length))) {
      return `"${file.path}" is not a name of a manifest`;
    }
  }
  const known = new Set(index.files.map(({ path }) => path));
  const extra = found.find(({ path }) => !known.has(path));
  return extra && `"${extra.path}" is not in its index`;
}
