import { isRecord, jsonIfValid } from "../../base/text/json.ts";
/** The engine refused a request. Branch on `status`, never on the text. */
export class DockerError extends Error {
  override readonly name = "DockerError";

  constructor(
    /** HTTP status; 500 where the engine reported the error inside a stream that had begun with 200. */
    readonly status: number,
    /** Method and path without version and query, e.g. `POST /containers/create`. */
    readonly operation: string,
    /** The engine's message, unchanged, e.g. `No such image: x:1`. */
    readonly daemonMessage: string,
  ) {
    super(`Docker ${operation} answered ${status}: ${daemonMessage}`);
  }
}

/** The engine's response did not have the shape the Engine API promises. `message` names the field. */
export class DockerProtocolError extends Error {
  override readonly name = "DockerProtocolError";

  constructor(
    readonly operation: string,
    problem: string,
    options?: ErrorOptions,
  ) {
    super(`Docker ${operation} answered something unexpected: ${problem}`, options);
  }
}

/**
 * `bad-endpoint`: the address cannot be used as written. `no-socket`: no such file. `no-permission`: the socket exists,
 * but access is denied. `refused`: no process listens. `not-trusted`: the TLS certificate is invalid. `not-docker`: the
 * response is not a Docker engine's. `too-old` / `too-new`: no API version in common. `timeout`: no response within the
 * deadline. `connection-lost`: the connection broke in the middle of a call. After these two a POST may have been done.
 */
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

/** The engine did not respond. `message` says what was tried and what to do about it. */
export class DockerUnreachableError extends Error {
  override readonly name = "DockerUnreachableError";

  constructor(
    readonly kind: UnreachableKind,
    /** Method and path without version and query; "" when no call was made. */
    readonly operation: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The thing asked for does not exist (404). */
export const isNotFound = (error: unknown): error is DockerError =>
  error instanceof DockerError && error.status === 404;

/** undefined for what the engine does not have. */
export async function known<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** A name is taken, or the state forbids the call (409). */
export const isConflict = (error: unknown): error is DockerError =>
  error instanceof DockerError && error.status === 409;

/** The refusal of an engine; plain text of a proxy or a very old daemon is its own message. */
export function daemonError(status: number, operation: string, text: string): DockerError {
  const parsed = jsonIfValid(text);
  const message = isRecord(parsed) && "message" in parsed ? String(parsed.message) : text;
  return new DockerError(status, operation, message.trim().slice(0, 4096) || "(no message)");
}
