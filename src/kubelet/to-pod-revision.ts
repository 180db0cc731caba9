import { createHash } from "node:crypto";
import { parseDuration } from "../api/duration.ts";
import type { Pod } from "../api/pod.ts";
import type { DesiredPod, DesiredState } from "../model/desired-pod.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { NodeInfo } from "../model/node.ts";
import { containersOf } from "../model/pod-containers.ts";
import { computeSourceRevision, podReferences } from "../plan/object-references.ts";
import { computeQosClass } from "../plan/qos-class.ts";
import { computeContainerHash, computeSandboxHash } from "../runtime/hashes.ts";
import { computeContainerLimits } from "../runtime/resources.ts";
import type { PodRevision } from "./pod-revision.ts";

/** Annotation: the longest crash-loop back-off of this pod, a Go duration from 1s to 5m [U03]. */
export const MAX_RESTART_PERIOD_ANNOTATION = "kubelet-ts.io/max-container-restart-period";

/**
 * What a worker has to live up to for one pod: hashes that say what an edit touches, and revisions that say when files
 * are written again and when a finished pod runs again. Pure.
 */
export function toPodRevision(
  desired: DesiredPod,
  state: DesiredState,
  options: KubeletOptions,
  node: NodeInfo,
): PodRevision {
  const { pod } = desired;
  const containers = containersOf(pod.spec);
  const hashes = {
    sandbox: computeSandboxHash(pod),
    containers: new Map(
      containers.map((container) => [
        container.name,
        computeContainerHash(pod, container, computeSourceRevision(pod, container, state)),
      ]),
    ),
    limits: new Map(
      containers.map((container) => [
        container.name,
        computeContainerLimits({ pod, container, node, settings: options }),
      ]),
    ),
  };
  const notices = state.notices?.get(pod.metadata.uid ?? "") ?? [];
  return {
    pod,
    objects: state,
    hashes,
    qosClass: computeQosClass(pod),
    options: {
      maxBackOffMs: maxBackOffMs(pod, options.crashLoopBackOffMaxMs),
      maxDeadPerContainer: options.maximumDeadContainersPerContainer,
      minDeadTtlMs: options.minimumContainerTtlMs,
    },
    runRevision: digest([
      hashes.sandbox,
      ...hashes.containers.values(),
      // What a pod ended by: with another deadline or policy it is another matter.
      String(pod.spec.activeDeadlineSeconds),
      pod.spec.restartPolicy ?? "Always",
    ]),
    objectsRevision: digest([desired.revision, ...objectsUsed(pod, state)]),
    // `ManifestLive` says whether what runs is what the newest text says.
    extraConditions: notices.map(({ reason, message }) => ({ type: "ManifestLive", status: "False", reason, message })),
  };
}

function maxBackOffMs(pod: Pod, nodeMs: number): number {
  const text = pod.metadata.annotations?.[MAX_RESTART_PERIOD_ANNOTATION];
  const ms = text === undefined ? undefined : parseDuration(text);
  return ms === undefined || !(ms >= 1000 && ms <= 300_000) ? nodeMs : ms;
}

/** Contents of every ConfigMap and Secret the pod refers to; only their digest leaves this function's caller. */
function objectsUsed(pod: Pod, state: DesiredState): string[] {
  return podReferences(pod).map(({ kind, fullName }) => {
    const object = kind === "ConfigMap" ? state.configMaps.get(fullName) : state.secrets.get(fullName);
    return `${kind} ${fullName} ${object ? JSON.stringify(object) : "-"}`;
  });
}

const digest = (parts: readonly string[]) =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16);
