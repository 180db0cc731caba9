/** One image that may be removed: ours and unused. */
export interface UnusedImage {
  id: string;
  /** Size as the engine reports it, including shared layers. */
  sizeBytes: number;
  /** Monotonic; when it was last seen in use. */
  lastUsedMs: number;
}

export interface ImageGcPolicy {
  /** Per cent of the image disk; 100 = the disk never asks for anything. */
  highThresholdPercent: number;
  lowThresholdPercent: number;
  /** An image stays at least this long after it was last used. */
  minimumTtlMs: number;
  /** An image unused for longer is removed even when the disk has room; 0 = no limit. */
  maximumAgeMs: number;
}

/** The disk the engine keeps images on. */
export interface ImageDisk {
  capacityBytes: number;
  availableBytes: number;
}

export interface ImageRemoval {
  id: string;
  why: "age" | "disk";
}

/**
 * Which images are removed, in order: those that are too old, then the longest unused first. Source: upstream's realImageGCManager.
 * @param disk undefined: only age decides
 * @returns also the use of the disk, rounded as upstream does, and the bytes still missing after the removals
 */
export function computeImageGc(
  images: readonly UnusedImage[],
  disk: ImageDisk | undefined,
  policy: ImageGcPolicy,
  nowMs: number,
) {
  const removable = images
    .filter(({ lastUsedMs }) => nowMs - lastUsedMs >= policy.minimumTtlMs)
    .sort((a, b) => a.lastUsedMs - b.lastUsedMs || (a.id < b.id ? -1 : 1));
  const isTooOld = ({ lastUsedMs }: UnusedImage) => policy.maximumAgeMs > 0 && nowMs - lastUsedMs > policy.maximumAgeMs;
  const tooOld = removable.filter(isTooOld);
  const removals = tooOld.map(({ id }): ImageRemoval => ({ id, why: "age" }));
  const usedPercent = disk && computeUsedPercent(disk);
  if (!disk || usedPercent === undefined || !isOverHigh(usedPercent, policy)) {
    return { removals, usedPercent, missingBytes: 0 };
  }
  let missingBytes = (disk.capacityBytes * (100 - policy.lowThresholdPercent)) / 100 - disk.availableBytes;
  for (const { sizeBytes } of tooOld) missingBytes -= sizeBytes;
  for (const image of removable.filter((it) => !isTooOld(it))) {
    if (missingBytes <= 0) break;
    removals.push({ id: image.id, why: "disk" });
    missingBytes -= image.sizeBytes;
  }
  return { removals, usedPercent, missingBytes: Math.max(0, Math.ceil(missingBytes)) };
}

const isOverHigh = (usedPercent: number, { highThresholdPercent }: ImageGcPolicy) =>
  highThresholdPercent < 100 && usedPercent >= highThresholdPercent;

/** undefined for a disk without a size, as some network file systems are. */
function computeUsedPercent({ capacityBytes, availableBytes }: ImageDisk): number | undefined {
  return capacityBytes > 0 ? 100 - Math.floor((availableBytes * 100) / capacityBytes) : undefined;
}
