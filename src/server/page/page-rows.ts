import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
import type { ClusterConnection } from "../../base/model/cluster-connection.ts";
import type { PodUID } from "../../base/model/identity.ts";
import type { ClusterState, WorkloadRow } from "../../page/wire.ts";
import type { KubeletView } from "../view.ts";

/** Input of {@link toWorkloadRow}. */
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

interface EventLog {
  /** Events whose last occurrence came after this version, in that order. */
  newerThan(version: number): readonly CoreEvent[];
}

interface Version {
  pod: Pod;
  /** Version of its newest event. */
  event: number;
  shown: Pod;
}

/**
 * The pods of the node, each as another object when it, or why it is not ready, may have changed: a pod that is not ready is
 * explained with its events, which do not change its status.
 */
export class PodVersions {
  readonly #view: Pick<KubeletView, "pods">;
  readonly #events: EventLog;
  readonly #versions = new Map<PodUID, Version>();
  readonly #newest = new Map<PodUID, number>();
  #seen = 0;

  /** @param view whose unchanged pods are the same objects as before */
  constructor(view: Pick<KubeletView, "pods">, events: EventLog) {
    this.#view = view;
    this.#events = events;
  }

  list(): readonly Pod[] {
    for (const { metadata, involvedObject } of this.#events.newerThan(this.#seen)) {
      this.#seen = Number(metadata.resourceVersion);
      this.#newest.set(involvedObject.uid, this.#seen);
    }
    const pods = this.#view.pods();
    const uids = new Set(pods.map(uidOf));
    for (const uid of this.#versions.keys()) if (!uids.has(uid)) this.#versions.delete(uid);
    for (const uid of this.#newest.keys()) if (!uids.has(uid)) this.#newest.delete(uid);
    return pods.map((pod) => this.#versionOf(pod));
  }

  #versionOf(pod: Pod): Pod {
    if (isReady(pod)) return pod;
    const uid = uidOf(pod);
    const event = this.#newest.get(uid) ?? 0;
    const known = this.#versions.get(uid);
    if (known?.pod === pod && known.event === event) return known.shown;
    const shown = known?.pod === pod ? { ...pod } : pod;
    this.#versions.set(uid, { pod, event, shown });
    return shown;
  }
}

const uidOf = ({ metadata }: Pod): PodUID => metadata.uid ?? "";

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
