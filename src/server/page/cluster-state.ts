import type { ClusterConnection } from "../../base/model/cluster-connection.ts";
import type { ClusterState } from "../../page/wire.ts";

/** A failure that ends within this time is not shown: a single request or watch that broke off is repeated by then. */
const SETTLE_MS = 5_000;

/** The connection to the API server as the page shows it. Pure. */
export function toClusterState({ server, outage, refusal }: ClusterConnection, nowMs: number): ClusterState {
  const failure = outage ?? refusal;
  if (!failure || nowMs - failure.since.getTime() < SETTLE_MS) return { server, failure: null };
  const since = failure.since.getTime();
  return { server, failure: { isAnswering: failure !== outage, reason: failure.reason, since } };
}
