/** Decisions about image updates: what is known of an image in, the next step out. Nothing here acts or waits. */
import type { Container } from "../base/api/pod.ts";

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
export interface ImageCandidate {
  ref: string;
  tag: string;
  foundAt: string;
  /** It is on this machine. */
  isPulled?: true;
}

/** A candidate that some pods run, and that has yet to become Ready in all of them. */
export interface ImageTrial {
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
const FIRST_RETRY_MS = 60_000;
const MAX_RETRY_MS = 3_600_000;

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
  return { ...checked, candidate: { ...found, foundAt: now.toISOString() } };
}

/** A look-up or a pull failed: the next try comes after 1 min, 2 min, … 1 h. */
export function noteFailed(record: ImageUpdateRecord, error: string, now: Date): ImageUpdateRecord {
  const failures = (record.failures ?? 0) + 1;
  const delayMs = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS);
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

/**
 * Goes back to the previous image; the present one counts as bad.
 * @returns undefined when there is nothing to go back to
 */
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
