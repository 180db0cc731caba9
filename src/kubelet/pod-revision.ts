import type { Pod, PodStatus, QOSClass } from "../api/pod.ts";
import type { ObjectIndex } from "../model/desired-pod.ts";
import type { PodEnd, PodHashes, PodPlanOptions } from "../plan/pod-plan.ts";

/** What a worker is to keep running: one revision of one pod. */
export interface PodRevision {
  pod: Pod;
  objects: ObjectIndex;
  hashes: PodHashes;
  qosClass: QOSClass;
  options: PodPlanOptions;
  /** Changes when something changes that makes a finished pod run again. */
  runRevision: string;
  /** Changes when files made from ConfigMaps, Secrets or metadata may have to be written again. */
  objectsRevision: string;
  extraConditions?: readonly { type: string; status: "True" | "False"; reason?: string; message?: string }[];
}

/** How a pod came to its end, to be remembered across our restarts. */
export interface Completion {
  runRevision: string;
  end: PodEnd;
  status: PodStatus;
}
