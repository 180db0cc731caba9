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

/** The sender of a request. */
export interface User {
  name: string;
  uid?: string;
  groups: readonly string[];
  extra?: Readonly<Record<string, readonly string[]>>;
}

/** A request to this node, in the terms of authorizers. */
export interface AccessAttributes {
  /** `get`, `create`, … */
  verb: string;
  /** Subresource of `nodes`: `proxy`, `stats`, `metrics`, `log`, `spec`. */
  subresource: string;
}

/** The API server that decides about clients of the authenticated port. */
export interface AccessReviewer {
  /** @returns undefined: the token is not valid. @throws Error when the server cannot be asked */
  reviewToken(token: string, signal: AbortSignal): Promise<User | undefined>;
  /** @throws Error when the server cannot be asked */
  reviewAccess(user: User, attributes: AccessAttributes, signal: AbortSignal): Promise<boolean>;
}

/** A token of a service account, as a projected volume requests it. */
export interface TokenSpec {
  /** "" = the API server's own. */
  audience: string;
  expirationSeconds: number;
}
