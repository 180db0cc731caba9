import type { Service } from "../../base/api/service.ts";
import type { ClusterConnection } from "../../base/model/cluster-connection.ts";
import type { ClusterState, ServiceRow, WorkloadRow } from "../../page/wire.ts";

interface WorkloadFacts {
  kind: string;
  namespace: string;
  name: string;
  source: string;
  spec: object;
  /** As the local API shows it; undefined until the workload is reconciled. */
  status: object | undefined;
  /** Next time of a CronJob; undefined where there is none. */
  nextRun: Date | undefined;
}

type Counts = Partial<Record<string, number>>;
type WorkloadCondition = { type: string; status: string; reason?: string; message?: string };

/**
 * A line of the overview about a Service. Pure.
 * @param given fields of the spec that it was given
 * @param status as the local API shows it
 * @param pods those that it selects
 */
export function toServiceRow(
  { metadata: { namespace = "default", name = "" }, spec }: Service,
  given: Partial<Service["spec"]>,
  status: object,
  pods: ServiceRow["pods"],
): ServiceRow {
  const { type, selector, externalName = "", clusterIP = "", ports = [] } = { ...spec, ...given };
  const ready = pods.filter(({ isReady }) => isReady);
  const isSelecting = type !== "ExternalName" && Object.keys(selector ?? {}).length > 0;
  const problem = conditionsOf(status).find((it) => it.status === "True");
  return {
    namespace,
    name,
    type,
    address: type === "ExternalName" ? externalName : clusterIP === "None" ? "headless" : clusterIP,
    ports: ports.map(({ port, nodePort, protocol }) => `${port}${nodePort ? `:${nodePort}` : ""}/${protocol}`),
    status: isSelecting ? `${ready.length}/${pods.length} ready` : "-",
    isGood: problem === undefined && (!isSelecting || ready.length > 0),
    detail: problem ? textOf(problem) : "",
    pods: pods.toSorted((a, b) => Number(b.isReady) - Number(a.isReady) || a.name.localeCompare(b.name)),
  };
}

/** A line of the overview about a workload. Pure. */
export function toWorkloadRow({ kind, namespace, name, source, spec, status, nextRun }: WorkloadFacts): WorkloadRow {
  const none = { kind, namespace, name, source, detail: "", lastRun: 0, nextRun: 0 };
  if (!status) return { ...none, status: "Pending", isGood: false };
  switch (kind) {
    case "CronJob": {
      const { schedule = "", suspend = false } = spec as { schedule?: string; suspend?: boolean };
      const { lastScheduleTime } = status as { lastScheduleTime?: string };
      const lastRun = lastScheduleTime ? Date.parse(lastScheduleTime) || 0 : 0;
      if (suspend) return { ...none, status: "Suspended", isGood: true, lastRun };
      return { ...none, status: schedule, isGood: true, lastRun, nextRun: nextRun?.getTime() ?? 0 };
    }
    case "Job":
      return { ...none, ...jobStatus(status as Counts, conditionsOf(status)) };
    case "DaemonSet": {
      const { numberReady = 0, desiredNumberScheduled = 0 } = status as Counts;
      return { ...none, ...readyStatus(numberReady, desiredNumberScheduled) };
    }
    default: {
      const { readyReplicas = 0, replicas = 0 } = status as Counts;
      const wanted = (spec as Counts).replicas ?? 1;
      const updated = (status as Counts).updatedReplicas ?? (kind === "Deployment" ? 0 : replicas);
      const stuck = conditionsOf(status).find((it) => it.type === "Progressing" && it.status === "False");
      const shown = readyStatus(readyReplicas, wanted);
      return {
        ...none,
        ...shown,
        status: updated < Math.min(wanted, replicas) ? `${shown.status}, ${updated} updated` : shown.status,
        isGood: shown.isGood && !stuck,
        detail: stuck ? textOf(stuck) : "",
      };
    }
  }
}

const conditionsOf = (status: object): WorkloadCondition[] =>
  (status as { conditions?: WorkloadCondition[] }).conditions ?? [];

const textOf = ({ reason, message }: WorkloadCondition) => [reason, message].filter(Boolean).join(": ");

const readyStatus = (ready: number, wanted: number) => ({
  status: `${ready}/${wanted} ready`,
  isGood: ready >= wanted,
});

function jobStatus(
  { active = 0, failed = 0 }: Counts,
  conditions: readonly WorkloadCondition[],
): Pick<WorkloadRow, "status" | "isGood" | "detail"> {
  const ended = conditions.find(({ status }) => status === "True");
  if (ended) return { status: ended.type, isGood: ended.type !== "Failed", detail: textOf(ended) };
  const retries = failed === 0 ? "" : `${failed} ${failed === 1 ? "pod has" : "pods have"} failed`;
  return { status: active > 0 ? "Running" : "Pending", isGood: failed === 0, detail: retries };
}

/** A failure that ends within this time is not shown: a single request or watch that broke off is repeated by then. */
const SETTLE_MS = 5_000;

/** The connection to the API server as the page shows it. Pure. */
export function toClusterState({ server, outage, refusal }: ClusterConnection, nowMs: number): ClusterState {
  const failure = outage ?? refusal;
  if (!failure || nowMs - failure.since.getTime() < SETTLE_MS) return { server, failure: null };
  const since = failure.since.getTime();
  return { server, failure: { isAnswering: failure !== outage, reason: failure.reason, since } };
}
