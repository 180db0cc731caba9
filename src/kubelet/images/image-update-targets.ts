import type { Secret } from "../../base/api/config-objects.ts";
import type { DesiredPod, DesiredState } from "../../base/model/desired-state.ts";
import { containersOf } from "../../base/model/pod.ts";
import {
  type ImageUpdateDefaults,
  type ImageUpdateRecord,
  type ImageUpdateSettings,
  imageUpdateSettingsOf,
  isUpdatable,
  type UpdateState,
  updateOwnerOf,
  updateStateOf,
} from "../../plan/image-updates.ts";
import { resolvePullSecrets } from "../../plan/object-references.ts";

export interface Target {
  id: string;
  owner: string;
  image: string;
  settings: ImageUpdateSettings;
  pods: DesiredPod[];
  pullSecrets: readonly Secret[];
}

export const idOf = ({ owner, image }: { owner: string; image: string }) => `${owner}\n${image}`;

/** For users: `1.4.3 (sha256:0123456789ab)`. */
export function nameOf(pin: { ref: string; tag: string } | undefined): string {
  if (!pin) return "none";
  const digest = pin.ref.slice(pin.ref.indexOf("sha256:"));
  return `${pin.tag} (${digest.slice(0, "sha256:".length + 12)})`;
}

/** Every image that is kept up to date, by {@link idOf}. Pure. */
export function findTargets(state: DesiredState, defaults: ImageUpdateDefaults): Map<string, Target> {
  const targets = new Map<string, Target>();
  for (const desired of state.pods) {
    const settings = desired.runsOnce ? undefined : imageUpdateSettingsOf(desired.pod, defaults);
    const owner = settings && updateOwnerOf(desired.pod);
    if (!settings || owner === undefined) continue;
    const images = new Set(containersOf(desired.pod.spec).flatMap(({ image }) => image ?? []));
    for (const image of images) {
      if (!isUpdatable(image)) continue;
      const id = idOf({ owner, image });
      const known = targets.get(id);
      if (known) known.pods.push(desired);
      else {
        const pullSecrets = resolvePullSecrets(desired.pod, state);
        targets.set(id, { id, owner, image, settings, pods: [desired], pullSecrets });
      }
    }
  }
  return targets;
}

/** How often the file that blocks an update is checked while the update waits. */
const LOCK_PERIOD_MS = 60_000;

/** The next regular look-up, with a random delay. @param delayMs draws one */
export function nextCheckAt(
  { schedule }: Pick<ImageUpdateSettings, "schedule">,
  now: Date,
  delayMs: () => number,
): Date | undefined {
  const regular = schedule.next(now, now);
  return regular && new Date(regular.getTime() + delayMs());
}

/** Whether the stored time of the next look-up holds no longer: there is none, or the schedule or the clock has changed. */
export function isCheckStale(
  record: ImageUpdateRecord,
  { schedule, scheduleText }: Pick<ImageUpdateSettings, "schedule" | "scheduleText">,
  now: Date,
  maxDelayMs: number,
): boolean {
  if (!record.current || record.error !== undefined) return false;
  if (record.schedule !== scheduleText || record.nextCheckAt === undefined) return true;
  const regular = schedule.next(now, now);
  return regular !== undefined && new Date(record.nextCheckAt).getTime() > regular.getTime() + maxDelayMs;
}

/** Times after which an image without a trial may have a next step. Unit: milliseconds. @param isHeld updates are kept off */
export function stepDelaysMs(
  record: ImageUpdateRecord,
  { lock, window }: Pick<ImageUpdateSettings, "lock" | "window">,
  now: Date,
  isHeld: boolean,
): number[] {
  const until = (date: Date | undefined) => (date ? [date.getTime() - now.getTime()] : []);
  const check = until(record.nextCheckAt === undefined ? undefined : new Date(record.nextCheckAt));
  if (!record.candidate?.isPulled) return check;
  if (isHeld) return lock === undefined ? check : [...check, LOCK_PERIOD_MS];
  return [...check, ...until(window.nextOpening(now))];
}

/** One line of `kubelet-ts updates`. */
export interface ImageUpdateReport
  extends Pick<ImageUpdateRecord, "owner" | "image" | "rejected" | "checkedAt" | "nextCheckAt" | "updatedAt"> {
  state: UpdateState;
  /** The running image: a reference with a digest, or an id. */
  current?: string;
  currentTag?: string;
  former?: string;
  candidate?: string;
  candidateTag?: string;
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
