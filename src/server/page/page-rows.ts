import type { Ingress } from "../../base/api/ingress.ts";
import type { Service } from "../../base/api/service.ts";
import type { ClusterConnection } from "../../base/model/cluster-connection.ts";
import type { ClusterState, ServiceRow, WorkloadRow } from "../../page/wire.ts";
import type { ObjectExplanation } from "../../plan/status/explain-object.ts";

interface WorkloadFacts extends Pick<WorkloadRow, "kind" | "namespace" | "name" | "source"> {
  spec: object;
  /** As the local API shows it; undefined until the workload is reconciled. */
  status: object | undefined;
  /** Next time of a CronJob; undefined where there is none. */
  nextRun: Date | undefined;
  explanation: ObjectExplanation | undefined;
}

type Counts = Partial<Record<string, number>>;
type WorkloadCondition = { type: string; status: string };

/**
 * A line of the overview about a Service. Pure.
 * @param given fields of the spec that it was given
 * @param pods those that it selects
 */
export function toServiceRow(
  { metadata: { namespace = "default", name = "" }, spec }: Service,
  given: Partial<Service["spec"]>,
  pods: ServiceRow["pods"],
  explanation: ObjectExplanation | undefined,
): ServiceRow {
  const { type, selector, externalName = "", clusterIP = "", ports = [] } = { ...spec, ...given };
  const ready = pods.filter(({ isReady }) => isReady);
  const isSelecting = type !== "ExternalName" && Object.keys(selector ?? {}).length > 0;
  return {
    namespace,
    name,
    type,
    address: type === "ExternalName" ? externalName : clusterIP === "None" ? "headless" : clusterIP,
    ports: ports.map(({ port, nodePort, protocol }) => `${port}${nodePort ? `:${nodePort}` : ""}/${protocol}`),
    status: isSelecting ? `${ready.length}/${pods.length} ready` : "-",
    isGood: explanation?.isReady ?? true,
    explanation: explanation?.causes ?? [],
    pods: pods.toSorted((a, b) => Number(b.isReady) - Number(a.isReady) || a.name.localeCompare(b.name)),
  };
}

/** A line of the overview about an Ingress: it leads to the pods of its Services. Pure. */
export function toIngressRow(
  { metadata: { namespace = "default", name = "" }, spec: { rules = [], tls = [], defaultBackend } }: Ingress,
  services: readonly ServiceRow[],
  explanation: ObjectExplanation | undefined,
): ServiceRow {
  const paths = rules.flatMap(({ http }) => http?.paths ?? []);
  const backends = new Set([defaultBackend, ...paths.map(({ backend }) => backend)].map((it) => it?.service?.name));
  const pods = services.filter((it) => it.namespace === namespace && backends.has(it.name)).flatMap((it) => it.pods);
  return {
    namespace,
    name,
    type: "Ingress",
    address: [...new Set(rules.map(({ host }) => host || "*"))].join(", ") || "*",
    ports: tls.length > 0 ? ["TLS"] : [],
    status: explanation?.state.replace(/^it is /, "") ?? "-",
    isGood: explanation?.isReady ?? true,
    explanation: explanation?.causes ?? [],
    pods: [...new Map(pods.map((pod) => [pod.name, pod])).values()],
  };
}

/** A line of the overview about a workload. Pure. */
export function toWorkloadRow(facts: WorkloadFacts): WorkloadRow {
  const { kind, namespace, name, source, spec, status, nextRun, explanation } = facts;
  const { schedule = "", suspend = false } = spec as { schedule?: string; suspend?: boolean };
  const row = { kind, namespace, name, source, explanation: explanation?.causes ?? [], lastRun: 0, nextRun: 0 };
  if (!status) return { ...row, status: "Pending", isGood: false };
  const isReady = explanation?.isReady ?? true;
  switch (kind) {
    case "CronJob": {
      const { lastScheduleTime } = status as { lastScheduleTime?: string };
      const lastRun = lastScheduleTime ? Date.parse(lastScheduleTime) || 0 : 0;
      if (suspend) return { ...row, status: "Suspended", isGood: true, lastRun };
      return { ...row, status: schedule, isGood: isReady, lastRun, nextRun: nextRun?.getTime() ?? 0 };
    }
    case "Job":
      return { ...row, status: jobStatus(status), isGood: isReady || suspend };
    case "DaemonSet": {
      const { numberReady = 0, desiredNumberScheduled = 0 } = status as Counts;
      return { ...row, ...readyStatus(numberReady, desiredNumberScheduled, isReady) };
    }
    default: {
      const { readyReplicas = 0, replicas = 0 } = status as Counts;
      const wanted = (spec as Counts).replicas ?? 1;
      const updated = (status as Counts).updatedReplicas ?? (kind === "Deployment" ? 0 : replicas);
      const shown = readyStatus(readyReplicas, wanted, isReady);
      return {
        ...row,
        ...shown,
        status: updated < Math.min(wanted, replicas) ? `${shown.status}, ${updated} updated` : shown.status,
      };
    }
  }
}

/** Where no pods are wanted, none is missed. */
const readyStatus = (ready: number, wanted: number, isReady: boolean) => ({
  status: `${ready}/${wanted} ready`,
  isGood: isReady || wanted === 0,
});

function jobStatus(status: object): string {
  const { conditions = [] } = status as { conditions?: WorkloadCondition[] };
  const ended = conditions.find((it) => it.status === "True");
  const { active = 0 } = status as Counts;
  return ended?.type ?? (active > 0 ? "Running" : "Pending");
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
