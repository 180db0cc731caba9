/**
 * Why an engine did not do what it was asked. `not-found`: it does not have what was named. `rejected`: another refusal.
 * `malformed`: its response has not the shape that it promises. All others: no engine responded.
 *
 * `bad-endpoint`: the address cannot be used as written. `no-socket`: no such file. `no-permission`: the socket exists,
 * but access is denied. `refused`: no process listens. `not-trusted`: the TLS certificate is invalid. `not-docker`: the
 * response is not a Docker engine's. `too-old` / `too-new`: no API version in common. `timeout`: no response within the
 * deadline. `connection-lost`: the connection broke in the middle of a call. After these two a POST may have been done.
 */
export type EngineProblem = "not-found" | "rejected" | "malformed" | UnreachableKind;

export type UnreachableKind =
  | "bad-endpoint"
  | "no-socket"
  | "no-permission"
  | "refused"
  | "not-trusted"
  | "not-docker"
  | "too-old"
  | "too-new"
  | "timeout"
  | "connection-lost";

/** A call to an engine failed. The message is for the user: it says what was tried and, where it is known, what to do. */
export class EngineError extends Error {
  constructor(
    readonly kind: EngineProblem,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** No engine responded. */
  get isUnreachable(): boolean {
    return !["not-found", "rejected", "malformed"].includes(this.kind);
  }
}
