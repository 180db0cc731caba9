/** An answer of the API server that is not a success: its Status object. */
export class ApiStatusError extends Error {
  override readonly name = "ApiStatusError";
  /** HTTP status, e.g. 404. */
  readonly code: number;
  /** `metav1.StatusReason`, e.g. `NotFound`; "" where the answer was no Status. */
  readonly reason: string;
  /** From the Retry-After header or the Status. Unit: milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: number, reason: string, message: string, retryAfterMs?: number) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The API server was not reached, or did not answer in time. */
export class ApiUnreachableError extends Error {
  override readonly name = "ApiUnreachableError";
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiStatusError && error.code === 404;
export const isConflict = (error: unknown): boolean => error instanceof ApiStatusError && error.code === 409;

/** A load balancer answers so while the API server behind it is away. */
const AWAY_CODES: ReadonlySet<number> = new Set([502, 503, 504]);

/** The API server itself has not answered. */
export const isAway = (error: unknown): boolean =>
  error instanceof ApiUnreachableError || (error instanceof ApiStatusError && AWAY_CODES.has(error.code));

const MAX_MESSAGE_CHARS = 1024;

/** @param what the request, for people, e.g. `GET /api/v1/nodes/a` */
export function toApiError(what: string, code: number, body: string, retryAfter: string | null): ApiStatusError {
  const { message, reason, seconds } = readStatus(body);
  const delaySeconds = Number(retryAfter ?? seconds ?? Number.NaN);
  const text = (message ?? body.trim()).slice(0, MAX_MESSAGE_CHARS);
  return new ApiStatusError(
    code,
    reason ?? "",
    `${what} answered ${code}: ${text}`,
    Number.isFinite(delaySeconds) ? delaySeconds * 1000 : undefined,
  );
}

function readStatus(body: string): { message?: string; reason?: string; seconds?: number } {
  try {
    const status = JSON.parse(body) as {
      kind?: unknown;
      message?: unknown;
      reason?: unknown;
      details?: { retryAfterSeconds?: unknown };
    };
    if (status.kind !== "Status") return {};
    const { message, reason, details } = status;
    return {
      ...(typeof message === "string" && { message }),
      ...(typeof reason === "string" && { reason }),
      ...(typeof details?.retryAfterSeconds === "number" && { seconds: details.retryAfterSeconds }),
    };
  } catch {
    return {};
  }
}
