import { hasCondition } from "../../base/api/meta.ts";
import type { Container, ContainerStatus, Pod, PodStatus } from "../../base/api/pod.ts";
import { memoized } from "../../base/model/memoized.ts";
import { formatSince, type PrintedColumn, parseTime } from "./age.ts";

/** One line of `kubelet-ts get pods`. */
interface PodSummaryLine {
  ready: number;
  total: number;
  /** A reason of the pod or of a container, `Running`, `Init:0/2`, … */
  status: string;
  restarts: number;
  lastRestart: Date | undefined;
}

/** Source: kubectl's `printPod`. */
export const POD_COLUMNS: readonly PrintedColumn<Pod>[] = [
  { name: "Name", cell: ({ metadata }) => metadata.name ?? "" },
  { name: "Ready", cell: (pod) => `${summarizePod(pod).ready}/${summarizePod(pod).total}` },
  { name: "Status", cell: (pod) => summarizePod(pod).status },
  { name: "Restarts", cell: (pod, now) => formatRestarts(summarizePod(pod), now) },
  { name: "Age", cell: (pod, now) => formatSince(creationTime(pod), now) },
  { name: "IP", cell: ({ status }) => status?.podIP || "<none>", isWide: true },
  { name: "Node", cell: ({ spec }) => spec.nodeName || "<none>", isWide: true },
  { name: "Nominated Node", cell: ({ status }) => status?.nominatedNodeName || "<none>", isWide: true },
  { name: "Readiness Gates", cell: formatReadinessGates, isWide: true },
];

/** `2 (5m ago)`; `0` for none. */
function formatRestarts({ restarts, lastRestart }: PodSummaryLine, now: Date): string {
  return restarts > 0 && lastRestart
    ? `${restarts} (${formatSince(lastRestart.toISOString(), now)} ago)`
    : `${restarts}`;
}

/** Static pods have no creation time: their age counts from the time the node started them. */
export const creationTime = ({ metadata, status }: Pod): string | undefined =>
  metadata.creationTimestamp ?? status?.startTime ?? metadata.annotations?.["kubernetes.io/config.seen"];

/** The cells of a pod that its status determines; computed once for each version of the pod. */
export const summarizePod = memoized(({ spec, metadata, status = {} }: Pod): PodSummaryLine => {
  const sidecars = new Set((spec.initContainers ?? []).filter(isSidecar).map(({ name }) => name));
  const phase = status.phase ?? "Unknown";
  const total = spec.containers.length + sidecars.size;
  const init = summarizeInit(status.initContainerStatuses ?? [], sidecars, spec.initContainers?.length ?? 0);
  const base = { status: status.reason || phase, total };
  const line =
    init.reason !== undefined && !hasCondition(status, "Initialized")
      ? { ...base, ready: init.ready, status: init.reason, ...restartsOf(status.initContainerStatuses ?? []) }
      : {
          ...base,
          ...summarizeMains(status, init.reason ?? base.status, init.ready),
          ...restartsOf([
            ...(status.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)),
            ...(status.containerStatuses ?? []),
          ]),
        };
  const isTerminating = metadata.deletionTimestamp && phase !== "Succeeded" && phase !== "Failed";
  return isTerminating ? { ...line, status: "Terminating" } : line;
});

const isSidecar = ({ restartPolicy }: Container) => restartPolicy === "Always";

/** The first init container that blocks the rest gives the reason; undefined: none does. */
function summarizeInit(
  statuses: readonly ContainerStatus[],
  sidecars: ReadonlySet<string>,
  count: number,
): { reason: string | undefined; ready: number } {
  let ready = 0;
  for (const [index, { name, state, started, ready: isReady }] of statuses.entries()) {
    if (state.terminated?.exitCode === 0) continue;
    if (sidecars.has(name) && started) {
      if (isReady) ready++;
      continue;
    }
    const { terminated, waiting } = state;
    if (terminated) return { reason: `Init:${terminatedReason(terminated)}`, ready };
    const isStuck = waiting?.reason && waiting.reason !== "PodInitializing";
    return { reason: isStuck ? `Init:${waiting.reason}` : `Init:${index}/${count}`, ready };
  }
  return { reason: undefined, ready };
}

/** The first of the main containers that waits or has ended gives the reason. */
function summarizeMains(status: PodStatus, reason: string, readyBefore: number): { status: string; ready: number } {
  let ready = readyBefore;
  let shown = reason;
  let hasRunning = false;
  for (const { state, ready: isReady } of (status.containerStatuses ?? []).toReversed()) {
    const { waiting, terminated, running } = state;
    if (waiting?.reason) shown = waiting.reason;
    else if (terminated) shown = terminatedReason(terminated);
    else if (isReady && running) {
      hasRunning = true;
      ready++;
    }
  }
  // One container has completed while another one runs.
  if (shown === "Completed" && hasRunning) shown = hasCondition(status, "Ready") ? "Running" : "NotReady";
  return { status: shown, ready };
}

function terminatedReason({ reason, signal, exitCode }: NonNullable<ContainerStatus["state"]["terminated"]>): string {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}

function restartsOf(statuses: readonly ContainerStatus[]): Pick<PodSummaryLine, "restarts" | "lastRestart"> {
  const ends = statuses.flatMap(({ lastState }) => parseTime(lastState?.terminated?.finishedAt) ?? []);
  return {
    restarts: statuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
    lastRestart: ends.toSorted((a, b) => b.getTime() - a.getTime())[0],
  };
}

/** `1/2` gates met; `<none>` without gates. */
function formatReadinessGates({ spec, status = {} }: Pod): string {
  const gates = spec.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  return `${gates.filter(({ conditionType }) => hasCondition(status, conditionType)).length}/${gates.length}`;
}
