import type { FileIdentity } from "./manifest-files.ts";

/** How long a file must be missing before its pods are removed: editors and git remove files for a moment. */
const REMOVAL_SETTLE_MS = 100;
/** The same while another new file has not settled: the file may have been moved. */
const LONGEST_REMOVAL_SETTLE_MS = 10_000;
/** How long a file must not be written to before its text counts: a text that reads well may still be half of it. */
const WRITE_SETTLE_MS = 100;
/** How long a text with errors must stay the same before it counts as wrong rather than half written. */
const ERROR_SETTLE_MS = 300;
/** A text with errors that is older than this counts at once. */
const YOUNG_MS = 10_000;

/** A text that differs from the one in force. */
interface NewText {
  identity: FileIdentity;
  /** Since its last write. Unit: milliseconds; below zero when the clock was set back. */
  ageMs: number;
  /** Since it was first seen. */
  seenMs: number;
}

/** How much longer a text must stay the same before it counts; 0: it counts now. Pure. */
export function writeSettleMs({ identity, ageMs, seenMs }: NewText): number {
  // Every write sets both times of a file. A later change time means that it was renamed or chmodded since, as the
  // last step of writing it. An age below zero means that the clock was set back, or is another machine's.
  if (identity.ctimeNs > identity.mtimeNs) return 0;
  return Math.max(0, WRITE_SETTLE_MS - Math.max(ageMs, seenMs));
}

/** The same for a text with errors: it may be half written. Pure. */
export function errorSettleMs({ ageMs, seenMs }: NewText): number {
  return Math.abs(ageMs) < YOUNG_MS ? Math.max(0, ERROR_SETTLE_MS - seenMs) : 0;
}

/** How much longer a missing file keeps its pods. @param isUnsettled a new file may describe the same pods. Pure. */
export function removalSettleMs(missingMs: number, isUnsettled: boolean): number {
  return Math.max(0, (isUnsettled ? LONGEST_REMOVAL_SETTLE_MS : REMOVAL_SETTLE_MS) - missingMs);
}
