import {
  IMAGE_UPDATE_ANNOTATION,
  IMAGE_UPDATE_HOLD_ANNOTATION,
  IMAGE_UPDATE_LOCK_ANNOTATION,
  IMAGE_UPDATE_SCHEDULE_ANNOTATION,
  IMAGE_UPDATE_WINDOW_ANNOTATION,
  UPDATE_DEADLINE_ANNOTATION,
} from "../base/api/annotations.ts";
import { parseDuration } from "../base/api/duration.ts";
import { type ImageUpdatePolicy, parseImageUpdatePolicy } from "../base/api/image-update.ts";
import type { Pod } from "../base/api/pod.ts";
import { type CronSchedule, parseCronSchedule } from "../base/text/cron-schedule.ts";
import { parseImageReference } from "../base/text/image-reference.ts";
import { parseTimeWindow, type TimeWindow } from "../base/text/time-window.ts";

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

/**
 * The settings of a pod: its annotations, else those of the node. An annotation that cannot be read counts as absent; the
 * validation of the manifest reports it.
 * @returns undefined when its images are not updated
 */
export function imageUpdateSettingsOf(pod: Pod, defaults: ImageUpdateDefaults): ImageUpdateSettings | undefined {
  const read = (name: string) => pod.metadata.annotations?.[name];
  const policy = parseImageUpdatePolicy(read(IMAGE_UPDATE_ANNOTATION) ?? "") ?? defaults.policy;
  if (policy.kind === "never") return undefined;
  const { text: scheduleText, schedule } = readSchedule([read(IMAGE_UPDATE_SCHEDULE_ANNOTATION), defaults.schedule]);
  const deadlineMs = parseDuration(read(UPDATE_DEADLINE_ANNOTATION) ?? "");
  return {
    policy,
    scheduleText,
    schedule,
    window: readWindow([read(IMAGE_UPDATE_WINDOW_ANNOTATION), defaults.window]),
    deadlineMs: deadlineMs !== undefined && deadlineMs > 0 ? deadlineMs : DEFAULT_DEADLINE_MS,
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
export function isUpdatable(image: string): boolean {
  try {
    return parseImageReference(image).digest === undefined;
  } catch {
    return false;
  }
}

/**
 * The unit of updates: a pod, or all pods of a workload: `default/web`, `default/Deployment/web`. The name of a pod
 * from a file is that of the manifest. undefined for pods of a Job, which run once.
 */
export function updateOwnerOf({ metadata, spec }: Pod): string | undefined {
  const namespace = metadata.namespace ?? "default";
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  if (!owner || owner.kind === "Node") {
    const suffix = `-${spec.nodeName}`;
    const name = metadata.name ?? "";
    return `${namespace}/${name.endsWith(suffix) ? name.slice(0, -suffix.length) : name}`;
  }
  if (owner.kind === "Job") return undefined;
  const hash = metadata.labels?.["pod-template-hash"];
  if (owner.kind === "ReplicaSet" && hash !== undefined && owner.name.endsWith(`-${hash}`)) {
    return `${namespace}/Deployment/${owner.name.slice(0, -hash.length - 1)}`;
  }
  return `${namespace}/${owner.kind}/${owner.name}`;
}
