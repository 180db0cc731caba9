import type { AccessAttributes, User } from "../base/model/access-review.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { DelegatedAccess } from "./delegated-access.ts";

/** A certificate a client showed, as the TLS layer saw it. */
export interface ShownCertificate {
  /** Signed by an authority of `--client-ca-file`, good for clients, valid when the connection was made. */
  isVerified: boolean;
  /** Last common name of the subject; "" without one. */
  commonName: string;
  /** Every organization of the subject. */
  organizations: readonly string[];
  notAfter: Date;
}

/** Rules of access to the port. */
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

const ANONYMOUS: User = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/**
 * The user behind a request; undefined is answered with 401. Credentials that do not hold make no anonymous request: it is
 * refused. Source: apiserver's x509 authenticator (user = CN, groups = O), its bearer token authenticator, and their union
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

interface Refusal {
  status: 403 | 500;
  message: string;
}

/** undefined: allowed. Source: kubelet's `InstallAuthFilter` and `NodeRequestAttributesGetter`. */
export async function authorize(
  user: User,
  request: { method: string; path: string; signal: AbortSignal },
  { authorizationMode, delegated }: AccessRules,
  onError: (message: string) => void = () => {},
): Promise<Refusal | undefined> {
  if (authorizationMode === "AlwaysAllow") return undefined;
  const attributes = toAttributes(request);
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

const toAttributes = ({ method, path }: { method: string; path: string }): AccessAttributes => ({
  verb: VERBS[method] ?? "get",
  subresource: SUBRESOURCES[path.split("/", 2)[1] ?? ""] ?? "proxy",
});

const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };
const SUBRESOURCES: Readonly<Record<string, string>> = {
  stats: "stats",
  metrics: "metrics",
  logs: "log",
  spec: "spec",
};
