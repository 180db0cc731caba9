/** A failure that lasts. */
export interface Outage {
  reason: string;
  /** Time of the first failure. */
  since: Date;
}

/** The connection of a node to the API server of its cluster. */
export interface ClusterConnection {
  /** URL. */
  server: string;
  /** The API server does not respond; undefined while it does. */
  outage: Outage | undefined;
  /** It answers, but this node does not get its pods, for example with credentials that expired; undefined while it does. */
  refusal: Outage | undefined;
}
