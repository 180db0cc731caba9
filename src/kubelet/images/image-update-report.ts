import { type ImageUpdateRecord, type UpdateState, updateStateOf } from "../../plan/image-updates.ts";
import type { Target } from "./image-update-targets.ts";

/** One line of `kubelet-ts updates`. */
export interface ImageUpdateReport {
  owner: string;
  image: string;
  state: UpdateState;
  /** The running image: a reference with a digest, or an id. */
  current?: string;
  currentTag?: string;
  former?: string;
  candidate?: string;
  candidateTag?: string;
  rejected: readonly { ref: string; why: string; at: string }[];
  checkedAt?: string;
  nextCheckAt?: string;
  updatedAt?: string;
  /** Why it waits, or what failed. */
  message: string;
  /** A look-up, a pull or a trial is under way or was asked for. */
  isBusy: boolean;
}

/**
 * The report of one image, for users. Pure.
 * @param hold why the pod keeps updates off
 * @param isAtOnce the window does not count
 */
export function toImageUpdateReport(
  target: Target,
  record: ImageUpdateRecord,
  { hold, isWorking, isAtOnce, now }: { hold: string | undefined; isWorking: boolean; isAtOnce: boolean; now: Date },
): ImageUpdateReport {
  const { current, former, candidate, rejected, checkedAt, nextCheckAt, updatedAt } = record;
  const state = updateStateOf(record, hold);
  const mayBegin = isAtOnce || target.settings.window.isOpen(now);
  const isUnderWay =
    record.trial !== undefined ||
    (candidate !== undefined && record.error === undefined && hold === undefined && mayBegin);
  return {
    owner: target.owner,
    image: target.image,
    state,
    ...(current && { current: current.ref, currentTag: current.tag }),
    ...(former && { former: former.ref }),
    ...(candidate && { candidate: candidate.ref, candidateTag: candidate.tag }),
    rejected,
    ...(checkedAt && { checkedAt }),
    ...(nextCheckAt && { nextCheckAt }),
    ...(updatedAt && { updatedAt }),
    message: describe(target, record, state, hold, now),
    isBusy: isWorking || isUnderWay,
  };
}

function describe(
  { settings }: Target,
  { error, candidate, rejected }: ImageUpdateRecord,
  state: UpdateState,
  hold: string | undefined,
  now: Date,
): string {
  if (error !== undefined) return error;
  switch (state) {
    case "waiting":
      return "waits until the pod is Ready";
    case "new": {
      if (!candidate?.isPulled) return "is pulled";
      const opens = settings.window.nextOpening(now);
      return settings.window.isOpen(now) || !opens ? "" : `waits for the window at ${opens.toISOString()}`;
    }
    case "held":
      return hold ?? "";
    case "trial":
      return "waits until the pod is Ready with the new image";
    case "failed":
      return rejected.at(-1)?.why ?? "";
    default:
      return "";
  }
}
