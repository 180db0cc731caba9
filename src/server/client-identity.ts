/** The sender of a request. */
export interface User {
  name: string;
  groups: readonly string[];
}

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
  anonymousAuth: boolean;
  authorizationMode: "AlwaysAllow" | "AlwaysDeny";
}

const ANONYMOUS: User = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/**
 * The user behind a request; undefined is answered with 401. A certificate that does not hold is no anonymous request: it
 * is refused. Source: apiserver's x509 authenticator (user = CN, groups = O) and its union with the anonymous one.
 */
export function authenticate(
  shown: ShownCertificate | undefined,
  { trustsCertificates, anonymousAuth }: AccessRules,
  now: Date,
): User | undefined {
  if (shown && trustsCertificates) {
    // Looked at again for each request: a connection may live longer than its certificate.
    if (!shown.isVerified || shown.notAfter.getTime() < now.getTime()) return undefined;
    if (shown.commonName) {
      return { name: shown.commonName, groups: [...shown.organizations, "system:authenticated"] };
    }
  }
  return anonymousAuth ? ANONYMOUS : undefined;
}

/** undefined: allowed; else what 403 says. Source: kubelet's `AuthFilter` and `NodeRequestAttributesGetter`. */
export function forbid(
  user: User,
  { method, path }: { method: string; path: string },
  { authorizationMode }: AccessRules,
): string | undefined {
  if (authorizationMode === "AlwaysAllow") return undefined;
  const verb = VERBS[method] ?? "get";
  const subresource = SUBRESOURCES[path.split("/", 2)[1] ?? ""] ?? "proxy";
  return `Forbidden (user=${user.name}, verb=${verb}, resource=nodes, subresource=${subresource})`;
}

const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };
const SUBRESOURCES: Readonly<Record<string, string>> = {
  stats: "stats",
  metrics: "metrics",
  logs: "log",
  spec: "spec",
};
