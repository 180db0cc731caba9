import * as v from "valibot";
import { messageOf } from "../../base/text/error-message.ts";
import { jsonIfValid } from "../../base/text/json.ts";

/** A response of the API server that is not a success: its Status object. */
export class ApiStatusError extends Error {
  constructor(
    /** HTTP status, e.g. 404. */
    readonly code: number,
    /** `metav1.StatusReason`, e.g. `NotFound`; "" where the response was no Status. */
    readonly reason: string,
    message: string,
    /** From the Retry-After header or the Status. Unit: milliseconds. */
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/** The API server was not reached, or did not answer in time. */
export class ApiUnreachableError extends Error {}

export const isNotFound = (error: unknown): boolean => error instanceof ApiStatusError && error.code === 404;
export const isConflict = (error: unknown): boolean => error instanceof ApiStatusError && error.code === 409;

/** A load balancer answers so while the API server behind it is unreachable. */
const AWAY_CODES: ReadonlySet<number> = new Set([502, 503, 504]);

/** The API server itself has not answered. */
export const isAway = (error: unknown): boolean =>
  error instanceof ApiUnreachableError || (error instanceof ApiStatusError && AWAY_CODES.has(error.code));

const MAX_MESSAGE_CHARS = 1024;

/** @param what the request, for users, e.g. `GET /api/v1/nodes/a` */
export function toApiError(what: string, code: number, body: string, retryAfter: string | null): ApiStatusError {
  const parsed = v.safeParse(StatusSchema, jsonIfValid(body));
  const { message, reason, details }: Partial<v.InferOutput<typeof StatusSchema>> = parsed.success ? parsed.output : {};
  const delaySeconds = Number(retryAfter ?? details?.retryAfterSeconds ?? Number.NaN);
  const text = (message ?? body.trim()).slice(0, MAX_MESSAGE_CHARS);
  return new ApiStatusError(
    code,
    reason ?? "",
    `${what} answered ${code}: ${text}`,
    Number.isFinite(delaySeconds) ? delaySeconds * 1000 : undefined,
  );
}

const StatusSchema = v.object({
  kind: v.literal("Status"),
  message: v.optional(v.string()),
  reason: v.optional(v.string()),
  details: v.nullish(v.object({ retryAfterSeconds: v.optional(v.number()) })),
});

const FOREIGN_CERTIFICATE: ReadonlySet<string> = new Set([
  "CERT_SIGNATURE_FAILURE",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** Why a request got no response, with the fix where the cause is known: the same text for the same cause. */
export function describeFailure(error: unknown, server: string): string {
  const { code, name } = error as { code?: unknown; name?: string };
  if (name === "TimeoutError") return `${server} did not answer in time`;
  if (typeof code !== "string") return `the response of ${server} cannot be used: ${messageOf(error)}`;
  const text = `cannot reach ${server}: ${code}`;
  if (FOREIGN_CERTIFICATE.has(code))
    return `${text}: its certificate is not signed by the certificate authority of the kubeconfig (certificate-authority)`;
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return `${text}: its certificate is not valid at the time of this machine, whose clock may be wrong`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `${text}: its certificate is for another name; the kubeconfig can give it as tls-server-name`;
  return text;
}
