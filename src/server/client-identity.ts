import { createHash } from "node:crypto";
import { SingleFlight } from "../base/concurrency/single-flight.ts";
import type { Clock } from "../base/model/clock.ts";
import type { AccessAttributes, AccessReviewer, User } from "../base/model/cluster-connection.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { KubeletOptions } from "../config/option-table.ts";

/** A certificate a client showed, as the TLS layer saw it. */
export interface ShownCertificate {
  /** Signed by an authority of `--client-ca-file`, good for clients, valid when the connection was made. */
  isVerified: boolean;
  /** Last common name of the subject; "" without one. */
  commonName: string;
  organizations: readonly string[];
  notAfter: Date;
}

export interface AccessRules {
  /** There is a `--client-ca-file`; without one a certificate identifies no one. */
  trustsCertificates: boolean;
  /** Bearer tokens are reviewed by the API server. */
  trustsTokens: boolean;
  anonymousAuth: boolean;
  authorizationMode: "AlwaysAllow" | "AlwaysDeny" | "Webhook";
  /** The API server that decides; absent: no token is valid, and Webhook allows nothing. */
  delegated: DelegatedAccess | undefined;
}

/** The part of a request by which its sender is known. */
interface Credentials {
  shown: ShownCertificate | undefined;
  header(name: string): string | null;
  signal: AbortSignal;
}

/**
 * Members read metrics and statistics, and nothing else, also where all other clients may do everything. Source: the group of
 * apiserver's ClusterRole `system:monitoring`.
 */
export const MONITORING_GROUP = "system:monitoring";

/** Source: apiserver's anonymous authenticator. */
export const ANONYMOUS: User = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/**
 * The user behind a request; undefined is answered with 401. A request whose credentials are not valid is refused, not taken
 * for an anonymous one. Source: apiserver's x509 authenticator (user = CN, groups = O), its bearer token authenticator, and their union
 * with the anonymous one.
 * @param onError called when the API server cannot be asked; the request is refused
 */
export async function authenticate(
  { shown, header, signal }: Credentials,
  rules: AccessRules,
  now: Date,
  onError: (message: string) => void = () => {},
): Promise<User | undefined> {
  const byCertificate = shown && rules.trustsCertificates ? userOfCertificate(shown, now) : undefined;
  if (byCertificate && byCertificate !== "invalid") return byCertificate;
  const token = rules.trustsTokens ? bearerTokenOf(header("Authorization")) : undefined;
  if (token !== undefined) {
    try {
      return await rules.delegated?.authenticate(token, signal);
    } catch (error) {
      signal.throwIfAborted();
      onError(messageOf(error));
      return undefined;
    }
  }
  return rules.anonymousAuth && byCertificate !== "invalid" ? ANONYMOUS : undefined;
}

/** undefined: it names no user. Checked for each request: a connection may live longer than its certificate. */
function userOfCertificate(shown: ShownCertificate, now: Date): User | "invalid" | undefined {
  if (!shown.isVerified || shown.notAfter.getTime() < now.getTime()) return "invalid";
  if (!shown.commonName) return undefined;
  return { name: shown.commonName, groups: [...shown.organizations, "system:authenticated"] };
}

/** Source: apiserver's `bearertoken`. */
function bearerTokenOf(authorization: string | null): string | undefined {
  const [scheme = "", token = ""] = (authorization ?? "").trim().split(" ");
  return scheme.toLowerCase() === "bearer" && token !== "" ? token : undefined;
}

/** undefined: allowed. Source: kubelet's `InstallAuthFilter` and `NodeRequestAttributesGetter`. */
export async function authorize(
  user: User,
  request: { method: string; path: string; signal: AbortSignal },
  { authorizationMode, delegated }: AccessRules,
  onError: (message: string) => void = () => {},
): Promise<{ status: 403 | 500; message: string } | undefined> {
  const attributes: AccessAttributes = {
    verb: VERBS[request.method] ?? "get",
    subresource: SUBRESOURCES[request.path.split("/", 2)[1] ?? ""] ?? "proxy",
  };
  if (authorizationMode === "AlwaysAllow") {
    const reads = attributes.verb === "get" && measurementsOf(request.path) !== undefined;
    if (reads || !user.groups.includes(MONITORING_GROUP) || user.groups.includes("system:masters")) return undefined;
  }
  const what = `(user=${user.name}, verb=${attributes.verb}, resource=nodes, subresource=${attributes.subresource})`;
  try {
    if (authorizationMode === "Webhook" && (await delegated?.authorize(user, attributes, request.signal)))
      return undefined;
  } catch (error) {
    request.signal.throwIfAborted();
    onError(messageOf(error));
    return { status: 500, message: `Authorization error ${what}` };
  }
  return { status: 403, message: `Forbidden ${what}` };
}

const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };
const SUBRESOURCES: Readonly<Record<string, string>> = {
  stats: "stats",
  metrics: "metrics",
  logs: "log",
  spec: "spec",
};

/** The measurements at a path of the kubelet; undefined: another path, or one that leads elsewhere. */
export function measurementsOf(path: string): "metrics" | "stats" | undefined {
  const [, root, ...rest] = path.split("/");
  return (root === "metrics" || root === "stats") && !rest.includes("..") ? root : undefined;
}

type DelegatedAccessOptions = Pick<
  KubeletOptions,
  | "authenticationTokenWebhookCacheTtlMs"
  | "authorizationWebhookCacheAuthorizedTtlMs"
  | "authorizationWebhookCacheUnauthorizedTtlMs"
>;

/** The oldest results are dropped beyond this. Source: the size of client-go's caches. */
const MAX_RESULTS = 4096;

/**
 * Decisions of an API server about clients, kept for a while. A failed request is an error and is not kept. Source:
 * apiserver's webhook token authenticator and webhook authorizer.
 */
export class DelegatedAccess {
  readonly #reviewer: AccessReviewer;
  readonly #options: DelegatedAccessOptions;
  readonly #tokens: ResultCache<User | undefined>;
  readonly #accesses: ResultCache<boolean>;

  constructor(reviewer: AccessReviewer, options: DelegatedAccessOptions, clock: Clock) {
    this.#reviewer = reviewer;
    this.#options = options;
    this.#tokens = new ResultCache(clock);
    this.#accesses = new ResultCache(clock);
  }

  /** @returns undefined: the token is not valid. @throws Error when the API server cannot be asked */
  authenticate(token: string, signal: AbortSignal): Promise<User | undefined> {
    // The token itself is not kept.
    const key = createHash("sha256").update(token).digest("base64");
    const ask = (stop: AbortSignal) => this.#reviewer.reviewToken(token, stop);
    return this.#tokens.get(key, ask, () => this.#options.authenticationTokenWebhookCacheTtlMs, signal);
  }

  /** @throws Error when the API server cannot be asked */
  authorize(user: User, attributes: AccessAttributes, signal: AbortSignal): Promise<boolean> {
    const options = this.#options;
    const ttlMs = (allowed: boolean) =>
      allowed ? options.authorizationWebhookCacheAuthorizedTtlMs : options.authorizationWebhookCacheUnauthorizedTtlMs;
    const key = JSON.stringify([user.name, user.uid, user.groups, user.extra, attributes.verb, attributes.subresource]);
    const ask = (stop: AbortSignal) => this.#reviewer.reviewAccess(user, attributes, stop);
    return this.#accesses.get(key, ask, ttlMs, signal);
  }
}

class ResultCache<T> {
  readonly #clock: Clock;
  readonly #flights = new SingleFlight<T>();
  readonly #results = new Map<string, { value: T; untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get(
    key: string,
    ask: (stop: AbortSignal) => Promise<T>,
    ttlMsOf: (value: T) => number,
    signal: AbortSignal,
  ): Promise<T> {
    const known = this.#results.get(key);
    if (known && known.untilMs > this.#clock.monotonicMs()) return known.value;
    const value = await this.#flights.do(key, ask, signal);
    this.#results.delete(key);
    const ttlMs = ttlMsOf(value);
    if (ttlMs > 0) this.#results.set(key, { value, untilMs: this.#clock.monotonicMs() + ttlMs });
    if (this.#results.size > MAX_RESULTS) this.#results.delete(this.#results.keys().next().value!);
    return value;
  }
}
