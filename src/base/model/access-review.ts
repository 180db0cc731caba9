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
