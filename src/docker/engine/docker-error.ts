import { EngineError, type UnreachableKind } from "../../base/model/engine-error.ts";
import { isRecord, jsonIfValid } from "../../base/text/json.ts";

/** The engine refused a request. Branch on `status`, never on the text. */
export class DockerError extends EngineError {
  constructor(
    /** HTTP status; 500 where the engine reported the error inside a stream that had begun with 200. */
    readonly status: number,
    /** Method and path without version and query, e.g. `POST /containers/create`. */
    readonly operation: string,
    /** The engine's message, unchanged, e.g. `No such image: x:1`. */
    readonly daemonMessage: string,
  ) {
    super(status === 404 ? "not-found" : "rejected", `Docker ${operation} answered ${status}: ${daemonMessage}`);
  }
}

/** The engine's response did not have the shape the Engine API promises. `message` names the field. */
export class DockerProtocolError extends EngineError {
  constructor(
    readonly operation: string,
    problem: string,
    options?: ErrorOptions,
  ) {
    super("malformed", `Docker ${operation} answered something unexpected: ${problem}`, options);
  }
}

/** The engine did not respond. `message` says what was tried and what to do about it. */
export class DockerUnreachableError extends EngineError {
  constructor(
    kind: UnreachableKind,
    /** Method and path without version and query; "" when no call was made. */
    readonly operation: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(kind, message, options);
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
