import { nearestName } from "../../text/nearest-name.ts";
import { CIPHER_SUITE_NAMES } from "../cipher-suites.ts";
import { type FlagRow, inapplicable, option, refused } from "../option-row.ts";
import {
  boolean,
  directory,
  duration,
  file,
  integer,
  ipAddress,
  listOf,
  MAX_INT32,
  oneOf,
  port,
  type ValueKind,
} from "../value-kinds.ts";

const WEBHOOK = "token webhooks need an API server";

export const SERVER_ROWS: readonly FlagRow[] = [
  option({
    flag: "enable-server",
    field: "enableServer",
    option: "enableServer",
    kind: boolean,
    subject: "Servers",
    description: "Serve the HTTP ports at all; /healthz is served in any case.",
  }),
  option({
    flag: "read-only-port",
    field: "readOnlyPort",
    zeroCounts: true,
    option: "readOnlyPort",
    kind: port,
    subject: "Servers",
    description:
      "Port of pods, stats and metrics without authentication; 0 is off. Off with a configuration file that does not name it.",
  }),
  option({
    flag: "read-only-bind-address",
    field: "kubeletTs.readOnlyBindAddress",
    option: "readOnlyAddress",
    kind: ipAddress,
    subject: "Servers",
    description: "Address of the read-only port.",
    defaultText: "--address if given, else 127.0.0.1",
  }),
  option({
    flag: "read-only-full",
    field: "kubeletTs.readOnlyFull",
    option: "readOnlyFull",
    kind: boolean,
    subject: "Servers",
    description: "Show the values of environment variables on the read-only port.",
  }),
  option({
    flag: "local-api-port",
    field: "kubeletTs.localApiPort",
    option: "localApiPort",
    kind: port,
    subject: "Servers",
    description:
      "Port of the local Kubernetes API for kubectl (TLS, <root-dir>/admin.conf); 0 is off. <root-dir>/api.sock answers in any case.",
  }),
  option({
    flag: "local-api-address",
    field: "kubeletTs.localApiAddress",
    option: "localApiAddress",
    kind: ipAddress,
    subject: "Servers",
    description: "Address of the local Kubernetes API.",
  }),
  option({
    flag: "token-auth-file",
    field: "kubeletTs.tokenAuthFile",
    option: "tokenAuthFile",
    kind: file,
    subject: "Servers",
    description:
      'Bearer tokens of the local Kubernetes API, one token,user,uid,"group1,group2" a line; system:masters may do everything, others may look.',
  }),
  option({
    flag: "healthz-port",
    field: "healthzPort",
    zeroCounts: true,
    option: "healthzPort",
    kind: port,
    subject: "Servers",
    description: "Port of /healthz; 0 is off.",
  }),
  option({
    flag: "healthz-bind-address",
    field: "healthzBindAddress",
    option: "healthzBindAddress",
    kind: ipAddress,
    subject: "Servers",
    description: "Address of /healthz; 0.0.0.0 for all.",
  }),
  option({
    flag: "cadvisor-port",
    field: "kubeletTs.cadvisorPort",
    option: "cadvisorPort",
    kind: port,
    subject: "Servers",
    description: "Port of the page and of cAdvisor's API; 0 is off.",
  }),
  option({
    flag: "cadvisor-bind-address",
    field: "kubeletTs.cadvisorBindAddress",
    option: "cadvisorBindAddress",
    kind: ipAddress,
    subject: "Servers",
    description: "Address of cAdvisor's API; the page needs loopback.",
  }),
  option({
    flag: "address",
    field: "address",
    option: "address",
    kind: ipAddress,
    subject: "Authenticated server",
    description: "Address of the authenticated port; when given, of the read-only port too.",
    defaultText: "0.0.0.0; 127.0.0.1 with --anonymous-auth",
  }),
  option({
    flag: "port",
    field: "port",
    option: "port",
    kind: port,
    subject: "Authenticated server",
    description: "Port of the authenticated API (TLS); 0 is off.",
    defaultText: "10250 if --client-ca-file or --anonymous-auth is set, else 0",
  }),
  option({
    flag: "cert-dir",
    field: "kubeletTs.certDir",
    option: "certDir",
    kind: directory,
    subject: "Authenticated server",
    description: "Directory of the self-signed certificate, made when none is given.",
    defaultText: "<root-dir>/pki",
  }),
  option({
    flag: "tls-cert-file",
    field: "tlsCertFile",
    option: "tlsCertFile",
    kind: file,
    subject: "Authenticated server",
    description: "PEM file with the server's certificate and its intermediates; reloaded when it changes.",
    defaultText: "self-signed, in --cert-dir",
  }),
  option({
    flag: "tls-private-key-file",
    field: "tlsPrivateKeyFile",
    option: "tlsPrivateKeyFile",
    kind: file,
    subject: "Authenticated server",
    description: "PEM file with its private key.",
  }),
  option({
    flag: "tls-min-version",
    field: "tlsMinVersion",
    option: "tlsMinVersion",
    kind: oneOf("VersionTLS12", "VersionTLS13"),
    subject: "Authenticated server",
    description: "Oldest TLS version accepted.",
  }),
  option({
    flag: "tls-cipher-suites",
    field: "tlsCipherSuites",
    option: "tlsCipherSuites",
    kind: listOf("name,…", checkCipherSuite),
    subject: "Authenticated server",
    description: "Cipher suites of TLS 1.2 accepted, by their IANA names; those of TLS 1.3 are always on.",
    defaultText: "ECDHE with AES-GCM or ChaCha20-Poly1305",
  }),
  option({
    flag: "client-ca-file",
    field: "authentication.x509.clientCAFile",
    option: "clientCaFile",
    kind: file,
    subject: "Authenticated server",
    description: "PEM file with the authorities whose client certificates are accepted.",
  }),
  option({
    flag: "anonymous-auth",
    field: "authentication.anonymous.enabled",
    option: "anonymousAuth",
    kind: boolean,
    subject: "Authenticated server",
    description: "Accept requests without credentials; they may run commands in every container.",
  }),
  option({
    flag: "authorization-mode",
    field: "authorization.mode",
    option: "authorizationMode",
    kind: authorizationMode(),
    subject: "Authenticated server",
    description: "Authorization of authenticated clients: all requests or none.",
  }),
  option({
    flag: "enable-debugging-handlers",
    field: "enableDebuggingHandlers",
    option: "enableDebuggingHandlers",
    kind: boolean,
    subject: "Authenticated server",
    description: "Serve logs of containers, run, exec, attach, port-forward and /configz there.",
  }),
  option({
    field: "enableSystemLogHandler",
    option: "enableSystemLogHandler",
    kind: boolean,
    subject: "Authenticated server",
    description: "Serve the files of /var/log below /logs/ there.",
  }),
  option({
    flag: "streaming-connection-idle-timeout",
    field: "streamingConnectionIdleTimeout",
    option: "streamingConnectionIdleTimeoutMs",
    kind: duration(),
    subject: "Authenticated server",
    description: "Idle exec, attach and port-forward connections are closed after this; 0s never.",
  }),
  option({
    flag: "event-qps",
    field: "eventRecordQPS",
    zeroCounts: true,
    option: "eventRecordQps",
    kind: integer(0, MAX_INT32, "0 = no limit"),
    subject: "Logging",
    description: "Events of pods recorded per second, those beyond it are dropped; 0 sets no limit.",
  }),
  option({
    flag: "event-burst",
    field: "eventBurst",
    option: "eventBurst",
    kind: integer(0, MAX_INT32),
    subject: "Logging",
    description: "Events recorded at once within --event-qps.",
  }),
  ...refused(`${WEBHOOK}; use --client-ca-file`, ["authentication-token-webhook?"], ["false"]),
  ...inapplicable(WEBHOOK, ["|authentication.webhook.enabled"], ["false"]),
  ...inapplicable(WEBHOOK, [
    "authentication-token-webhook-cache-ttl|authentication.webhook.cacheTTL",
    "authorization-webhook-cache-authorized-ttl|authorization.webhook.cacheAuthorizedTTL",
    "authorization-webhook-cache-unauthorized-ttl|authorization.webhook.cacheUnauthorizedTTL",
  ]),
  ...inapplicable("kubelet-ts always serves cAdvisor's API on --cadvisor-port", [
    "enable-cadvisor-json-endpoints?",
    "enable-custom-metrics?",
  ]),
  ...inapplicable("kubelet-ts has no Go profiler", [
    "contention-profiling?|enableContentionProfiling",
    "|enableProfilingHandler",
    "profiling?",
    "|enableDebugFlagsHandler",
    "show-hidden-metrics-for-version|showHiddenMetricsForVersion",
    "|tracing",
    "|tlsCurvePreferences",
  ]),
  ...inapplicable("the logs of services are not served: ask journalctl", ["|enableSystemLogQuery"], ["false"]),
  ...inapplicable("kubelet-ts has its own collector of statistics", [
    "application-metrics-count-limit",
    "boot-id-file",
    "machine-id-file",
    "container-hints",
    "containerd",
    "containerd-namespace",
    "enable-load-reader?",
    "event-storage-age-limit",
    "event-storage-event-limit",
    "global-housekeeping-interval",
    "housekeeping-interval",
    "disable-root-cgroup-stats?",
    "storage-driver-buffer-duration",
    "storage-driver-db",
    "storage-driver-host",
    "storage-driver-password",
    "storage-driver-secure?",
    "storage-driver-table",
    "storage-driver-user",
    "log-cadvisor-usage?",
  ]),
];

function checkCipherSuite(name: string): string | undefined {
  if (CIPHER_SUITE_NAMES.includes(name)) return undefined;
  const near = nearestName(name, CIPHER_SUITE_NAMES);
  return `${JSON.stringify(name)} is not a supported cipher suite${near ? `; did you mean ${near}?` : ""}`;
}

/** Configuration files of clusters ask for Webhook: it is accepted there and denies every request. */
function authorizationMode(): ValueKind<"AlwaysAllow" | "AlwaysDeny"> {
  const kind = oneOf("AlwaysAllow", "AlwaysDeny");
  const way = "needs an API server; use AlwaysAllow (with --client-ca-file) or AlwaysDeny";
  return {
    ...kind,
    fromText: (value) => (value === "Webhook" ? { problem: `Webhook ${way}` } : kind.fromText(value)),
    fromField: (value) =>
      value === "Webhook"
        ? { value: "AlwaysDeny", warning: `Webhook ${way}; every request is denied` }
        : kind.fromField(value),
  };
}
