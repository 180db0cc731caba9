import type { ContainerStatus, Pod } from "../api/pod.ts";
import type { PodRow } from "../page/wire.ts";

/** Columns of `kubelet-ts get pods` for a pod. */
export interface PodColumns {
  status: string;
  ready: number;
  total: number;
  restarts: number;
  lastRestart: Date | undefined;
  /** RFC 3339; undefined = unknown. */
  createdAt: string | undefined;
}

/**
 * A row of the overview. Pure.
 * @param source where the manifest is: `file:line`, URL, `submitted`
 */
export function toPodRow(pod: Pod, columns: PodColumns, source: string): PodRow {
  const { metadata, status } = pod;
  const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
  return {
    uid: metadata.uid ?? "",
    namespace: metadata.namespace ?? "default",
    name: metadata.name ?? "",
    status: columns.status,
    ready: columns.ready,
    total: columns.total,
    isReady,
    restarts: columns.restarts,
    lastRestart: columns.lastRestart?.getTime() ?? 0,
    createdAt: columns.createdAt ? Date.parse(columns.createdAt) || 0 : 0,
    source,
    why: isReady ? "" : (whyNotReady(pod)[0] ?? ""),
    ip: status?.podIP ?? "",
  };
}

/** One sentence for each container, probe or volume that keeps a pod from being Ready, the most telling first. */
export function whyNotReady({ status }: Pod): string[] {
  if (status?.phase === "Succeeded") return [];
  const sentences = status?.message ? [status.message] : [];
  for (const container of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
    const sentence = containerSentence(container);
    if (sentence) sentences.push(sentence);
  }
  for (const { type, status: is, message } of status?.conditions ?? []) {
    const isNegative = type === "DisruptionTarget" || type === "PodResizePending";
    if ((is === "False" && !isNegative && !DERIVED.has(type)) || (is === "True" && isNegative)) {
      sentences.push(message ? `${type}: ${message}` : type);
    }
  }
  return sentences;
}

/** Conditions that only sum up what containers say. */
const DERIVED: ReadonlySet<string> = new Set(["Ready", "ContainersReady", "Initialized"]);

function containerSentence({ name, state, lastState, ready, started }: ContainerStatus): string | undefined {
  const { waiting, running, terminated } = state;
  if (waiting) {
    const last = lastState?.terminated;
    const ended = last ? `; it last ended with ${describeEnd(last)}` : "";
    if (waiting.reason === "PodInitializing" || waiting.reason === "ContainerCreating") return undefined;
    // The message of a back-off ends with names that the row shows already.
    const message = waiting.message?.replace(/ container=\S+ pod=\S+\)$/, "");
    return `${name} waits: ${[waiting.reason, message].filter(Boolean).join(": ")}${ended}`;
  }
  if (running && !ready) {
    return started === false
      ? `${name} runs; its startup probe has not succeeded`
      : `${name} runs; its readiness probe fails`;
  }
  if (terminated && terminated.exitCode !== 0) return `${name} ended with ${describeEnd(terminated)}`;
  return undefined;
}

const describeEnd = ({ reason, exitCode }: { reason?: string | undefined; exitCode: number }) =>
  `exit code ${exitCode}${reason && reason !== "Error" ? ` (${reason})` : ""}`;
