import {
  durationOf,
  IMAGE_UPDATE_ANNOTATION,
  IMAGE_UPDATE_HOLD_ANNOTATION,
  IMAGE_UPDATE_LOCK_ANNOTATION,
  IMAGE_UPDATE_SCHEDULE_ANNOTATION,
  IMAGE_UPDATE_WINDOW_ANNOTATION,
  type ImageUpdatePolicy,
  parseImageUpdatePolicy,
  UPDATE_DEADLINE_ANNOTATION,
} from "../base/api/annotations.ts";
import type { Container, Pod } from "../base/api/pod.ts";
import { backOffMs } from "../base/model/back-off.ts";
import { nameWithoutNode } from "../base/model/pod.ts";
import { type CronSchedule, parseCronSchedule } from "../base/text/cron-schedule.ts";
import { unlessFailed } from "../base/text/error-message.ts";
import { parseImageReference } from "../base/text/image-reference.ts";
import { parseTimeWindow, type TimeWindow } from "../base/text/time-window.ts";

/** Decisions about image updates: what is known of an image in, the next step out. Nothing here acts or waits. */

/** An image that a container is started from in place of the name in its manifest. */
interface ImagePin {
  /** Name for the engine: `nginx@sha256:…`, or an image id. */
  ref: string;
  /** The tag that had this digest. */
  tag: string;
  /** Other references of the same image. */
  aliases?: string[];
  /** It ran under the name of the manifest: pinning it restarts nothing. */
  isBaseline?: true;
}

/** A newer image. */
interface ImageCandidate {
  ref: string;
  tag: string;
  /** It is on this machine. */
  isPulled?: true;
}

/** A candidate that some pods run, and that has yet to become Ready in all of them. */
interface ImageTrial {
  /** UIDs in the order in which they got the new image; the last one is judged. */
  pods: string[];
  /** Starts of this program during the trial: an image that crashes the machine is rolled back. */
  starts: number;
}

/** The stored state of one image of one pod or workload. Times are ISO 8601. */
export interface ImageUpdateRecord {
  /** `default/web`, `default/Deployment/web`. */
  owner: string;
  /** As the manifest names it. */
  image: string;
  current?: ImagePin;
  former?: ImagePin;
  candidate?: ImageCandidate;
  trial?: ImageTrial;
  /** Digests that failed and are not tried again, oldest first. */
  rejected: { ref: string; why: string; at: string }[];
  checkedAt?: string;
  /** The next look-up, and the schedule it was computed from. */
  nextCheckAt?: string;
  schedule?: string;
  updatedAt?: string;
  /** Why the last look-up or pull failed. */
  error?: string;
  failures?: number;
}

/** One pod as an update sees it. */
export interface UpdatePod {
  uid: string;
  /** Its containers are those that are wanted, images included. */
  isLive: boolean;
  /** The revision with the image under trial is judged. */
  verdict: { state: "pending" | "ready" } | { state: "failed"; message: string };
}

export interface UpdateFacts {
  now: Date;
  pods: readonly UpdatePod[];
  isWindowOpen: boolean;
  /** Why the pod keeps updates off; undefined: it does not. */
  hold: string | undefined;
  /** A look-up was asked for: the schedule does not count. */
  isCheckAsked: boolean;
}

type UpdateStep =
  | { do: "nothing" }
  | { do: "look-up" }
  | { do: "pull"; candidate: ImageCandidate }
  | { do: "swap"; candidate: ImageCandidate; uid: string }
  | { do: "keep"; candidate: ImageCandidate }
  | { do: "roll-back"; candidate: ImageCandidate; why: string };

/** Digests that are remembered as bad. */
const MAX_REJECTED = 20;
const MAX_TRIAL_STARTS = 3;
const RETRY_MS = { first: 60_000, longest: 3_600_000 };

/** The next step for one image. Pods change one after the other; the first failure takes all of them back. */
export function decideUpdateStep(record: ImageUpdateRecord, facts: UpdateFacts): UpdateStep {
  const { candidate, trial } = record;
  if (candidate && trial) return judgeTrialOf(candidate, trial, facts);
  const isDue = facts.isCheckAsked || (record.nextCheckAt !== undefined && facts.now >= new Date(record.nextCheckAt));
  if (isDue || !record.current) return record.current ? { do: "look-up" } : { do: "nothing" };
  if (!candidate) return { do: "nothing" };
  // A pull that failed is repeated after the next look-up.
  if (!candidate.isPulled) return record.error === undefined ? { do: "pull", candidate } : { do: "nothing" };
  if (facts.hold !== undefined || !facts.isWindowOpen) return { do: "nothing" };
  return nextSwap(candidate, [], facts.pods);
}

function judgeTrialOf(candidate: ImageCandidate, trial: ImageTrial, { pods }: UpdateFacts): UpdateStep {
  if (trial.starts >= MAX_TRIAL_STARTS) {
    return { do: "roll-back", candidate, why: `kubelet-ts was started ${trial.starts} times before it was Ready` };
  }
  const tried = pods.filter(({ uid }) => trial.pods.includes(uid));
  for (const { verdict } of tried) {
    if (verdict.state === "failed") return { do: "roll-back", candidate, why: verdict.message };
  }
  if (tried.some(({ verdict }) => verdict.state === "pending")) return { do: "nothing" };
  // All pods of the trial were removed meanwhile: their successors are tried.
  if (pods.every(({ uid }) => trial.pods.includes(uid))) {
    return tried.length > 0 ? { do: "keep", candidate } : { do: "nothing" };
  }
  return nextSwap(candidate, trial.pods, pods);
}

function nextSwap(candidate: ImageCandidate, done: readonly string[], pods: readonly UpdatePod[]): UpdateStep {
  const next = pods.find(({ uid }) => !done.includes(uid));
  // A pod that is being changed already is changed again afterwards.
  return next?.isLive ? { do: "swap", candidate, uid: next.uid } : { do: "nothing" };
}

/** The image that each pod runs: of a trial, only the pods that have their turn run the new one. */
export function pinFor(record: ImageUpdateRecord, uid: string): { ref: string; isBaseline: boolean } | undefined {
  const { candidate, trial, current } = record;
  if (candidate && trial?.pods.includes(uid)) return { ref: candidate.ref, isBaseline: false };
  return current && { ref: current.ref, isBaseline: current.isBaseline ?? false };
}

/** The container with the image that it runs in place of the manifest's. A pinned image is not pulled again. */
export function pinImage(container: Container, pins: ReadonlyMap<string, { ref: string }> | undefined): Container {
  const pin = pins?.get(container.image ?? "");
  if (!pin) return container;
  const imagePullPolicy = container.imagePullPolicy === "Never" ? "Never" : "IfNotPresent";
  return { ...container, image: pin.ref, imagePullPolicy };
}

/** Name of an image for the engine, and the tag that has this digest. */
export interface LookedUp {
  ref: string;
  tag: string;
}

/** @param nextCheckAt the next regular look-up */
export function noteLookedUp(
  record: ImageUpdateRecord,
  found: LookedUp,
  now: Date,
  nextCheckAt: Date | undefined,
): ImageUpdateRecord {
  const { candidate, error: _, failures: __, nextCheckAt: ___, ...rest } = record;
  const checked = {
    ...rest,
    checkedAt: now.toISOString(),
    ...(nextCheckAt && { nextCheckAt: nextCheckAt.toISOString() }),
  };
  const present = record.current ? [record.current.ref, ...(record.current.aliases ?? [])] : [];
  const isKnown = present.includes(found.ref) || record.rejected.some(({ ref }) => ref === found.ref);
  if (isKnown) return checked;
  if (candidate?.ref === found.ref) return { ...checked, candidate };
  return { ...checked, candidate: found };
}

/** A look-up or a pull failed: the next try comes after 1 min, 2 min, … 1 h. */
export function noteFailed(record: ImageUpdateRecord, error: string, now: Date): ImageUpdateRecord {
  const failures = (record.failures ?? 0) + 1;
  const delayMs = backOffMs(failures - 1, RETRY_MS);
  return { ...record, error, failures, nextCheckAt: new Date(now.getTime() + delayMs).toISOString() };
}

export function notePulled(record: ImageUpdateRecord): ImageUpdateRecord {
  const { error: _, failures: __, ...rest } = record;
  return record.candidate ? { ...rest, candidate: { ...record.candidate, isPulled: true } } : rest;
}

/** The candidate is the image that runs already, under another digest. */
export function noteSame({ candidate, error: _, failures: __, ...rest }: ImageUpdateRecord): ImageUpdateRecord {
  if (!candidate || !rest.current) return rest;
  return { ...rest, current: { ...rest.current, aliases: [...(rest.current.aliases ?? []), candidate.ref].slice(-8) } };
}

export function noteSwapped(record: ImageUpdateRecord, uid: string): ImageUpdateRecord {
  const pods = record.trial?.pods ?? [];
  return { ...record, trial: { starts: record.trial?.starts ?? 0, pods: [...pods, uid] } };
}

export function noteKept(record: ImageUpdateRecord, now: Date): ImageUpdateRecord {
  const { candidate, trial: _, current, ...rest } = record;
  if (!candidate) return record;
  return {
    ...rest,
    current: { ref: candidate.ref, tag: candidate.tag },
    ...(current && { former: current }),
    updatedAt: now.toISOString(),
  };
}

export function noteRolledBack(record: ImageUpdateRecord, why: string, now: Date): ImageUpdateRecord {
  const { candidate, trial: _, ...rest } = record;
  return candidate ? { ...rest, rejected: reject(record, candidate.ref, why, now) } : rest;
}

/** Goes back to the previous image; the present one counts as bad. @returns undefined when there is none */
export function undoUpdate(record: ImageUpdateRecord, now: Date): ImageUpdateRecord | undefined {
  const updatedAt = now.toISOString();
  if (record.trial) return { ...noteRolledBack(record, "it was undone", now), updatedAt };
  const { current, former, candidate: _, ...rest } = record;
  if (!current || !former) return undefined;
  return { ...rest, current: former, rejected: reject(record, current.ref, "it was undone", now), updatedAt };
}

/** The program starts again: a trial continues, a limited number of times. */
export const noteStarted = (record: ImageUpdateRecord): ImageUpdateRecord =>
  record.trial ? { ...record, trial: { ...record.trial, starts: record.trial.starts + 1 } } : record;

const reject = ({ rejected }: ImageUpdateRecord, ref: string, why: string, now: Date) =>
  [...rejected.filter((one) => one.ref !== ref), { ref, why, at: now.toISOString() }].slice(-MAX_REJECTED);

/** For users. */
export type UpdateState = "waiting" | "pinned" | "new" | "held" | "trial" | "failed";

export function updateStateOf(
  { current, candidate, trial, rejected, error, updatedAt }: ImageUpdateRecord,
  hold: string | undefined,
): UpdateState {
  if (!current) return "waiting";
  if (trial) return "trial";
  if (candidate) return hold === undefined ? "new" : "held";
  const last = rejected.at(-1);
  if (error !== undefined || (last && (updatedAt === undefined || last.at > updatedAt))) return "failed";
  return "pinned";
}

/** A tag that is a complete semantic version, with the variant after it: `v1.4.2-alpine3.19`. */
const VERSION_TAG = /^v?(\d+\.\d+\.\d+)([-+_.].*)?$/;

interface VersionTag {
  tag: string;
  /** `1.4.2`. */
  version: string;
  /** `-alpine3.19`; "" for none. */
  variant: string;
}

function parseVersionTag(tag: string): VersionTag | undefined {
  const match = VERSION_TAG.exec(tag);
  return match ? { tag, version: match[1] ?? "", variant: match[2] ?? "" } : undefined;
}

/** The suffix after the version in a tag of any precision: `-alpine` of `1.4-alpine`; "" where there is no version. */
const variantOf = (tag: string): string => /^v?\d+(?:\.\d+){0,2}([-+_.][A-Za-z].*)?$/.exec(tag)?.[1] ?? "";

/**
 * The highest tag in a range. Tags with another variant (`-alpine`) or fewer than three numbers are not taken.
 * @param present the tag that runs, or that the manifest has: never below it
 * @param range as npm writes it: `~1.4`, `>=1.4 <3`
 */
export function pickTag(tags: readonly string[], range: string, present: string): string | undefined {
  const variant = variantOf(present);
  const floor = parseVersionTag(present)?.version;
  let best: VersionTag | undefined;
  for (const tag of tags) {
    const found = parseVersionTag(tag);
    if (!found || found.variant !== variant || !Bun.semver.satisfies(found.version, range)) continue;
    if (floor !== undefined && Bun.semver.order(found.version, floor) < 0) continue;
    if (!best || Bun.semver.order(found.version, best.version) > 0) best = found;
  }
  return best?.tag;
}

/** Settings for pods without annotations: `--image-update` and its companions. */
export interface ImageUpdateDefaults {
  policy: ImageUpdatePolicy;
  /** Five fields of cron. */
  schedule: string;
  /** As {@link parseTimeWindow} reads it. */
  window: string;
}

/** How the images of one pod are updated. */
export interface ImageUpdateSettings {
  policy: Exclude<ImageUpdatePolicy, { kind: "never" }>;
  /** As it is written. */
  scheduleText: string;
  schedule: CronSchedule;
  window: TimeWindow;
  deadlineMs: number;
  isHeld: boolean;
  /** `VOLUME/PATH` of a file that blocks updates while it exists. */
  lock: string | undefined;
}

const DEFAULT_DEADLINE_MS = 300_000;

/** The annotations of a pod, else the settings of the node; unreadable ones count as absent. undefined: no updates. */
export function imageUpdateSettingsOf(pod: Pod, defaults: ImageUpdateDefaults): ImageUpdateSettings | undefined {
  const read = (name: string) => pod.metadata.annotations?.[name];
  const policy = parseImageUpdatePolicy(read(IMAGE_UPDATE_ANNOTATION) ?? "") ?? defaults.policy;
  if (policy.kind === "never") return undefined;
  const { text: scheduleText, schedule } = readSchedule([read(IMAGE_UPDATE_SCHEDULE_ANNOTATION), defaults.schedule]);
  return {
    policy,
    scheduleText,
    schedule,
    window: readWindow([read(IMAGE_UPDATE_WINDOW_ANNOTATION), defaults.window]),
    deadlineMs: durationOf(pod.metadata, UPDATE_DEADLINE_ANNOTATION, DEFAULT_DEADLINE_MS),
    isHeld: read(IMAGE_UPDATE_HOLD_ANNOTATION) === "true",
    lock: read(IMAGE_UPDATE_LOCK_ANNOTATION),
  };
}

const DAILY = "0 4 * * *";

function readSchedule(texts: readonly (string | undefined)[]): { text: string; schedule: CronSchedule } {
  for (const text of [...texts, DAILY]) {
    const schedule = text === undefined ? { problem: "" } : parseCronSchedule(text);
    if (!("problem" in schedule)) return { text: text!, schedule };
  }
  throw new Error(`${DAILY} is a schedule`);
}

function readWindow(texts: readonly (string | undefined)[]): TimeWindow {
  const [found] = texts.flatMap((text) => {
    const window = text === undefined ? { problem: "" } : parseTimeWindow(text);
    return "problem" in window ? [] : [window];
  });
  // An unreadable window never opens: updating at the wrong time is worse than not updating.
  return found ?? { isOpen: () => false, nextOpening: () => undefined };
}

/** Whether a newer image can exist: a name with a digest is pinned by the manifest. */
export const isUpdatable = (image: string): boolean =>
  unlessFailed(() => parseImageReference(image).digest === undefined) ?? false;

/** The unit of updates, a pod or a workload: `default/web`, `default/Deployment/web`. undefined for pods of a Job. */
export function updateOwnerOf(pod: Pod): string | undefined {
  const { metadata } = pod;
  const namespace = metadata.namespace ?? "default";
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  if (!owner || owner.kind === "Node") return `${namespace}/${nameWithoutNode(pod)}`;
  if (owner.kind === "Job") return undefined;
  const hash = metadata.labels?.["pod-template-hash"];
  if (owner.kind === "ReplicaSet" && hash !== undefined && owner.name.endsWith(`-${hash}`)) {
    return `${namespace}/Deployment/${owner.name.slice(0, -hash.length - 1)}`;
  }
  return `${namespace}/${owner.kind}/${owner.name}`;
}
