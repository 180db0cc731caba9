import { didYouMean } from "../../base/text/nearest-name.ts";
import { CIPHER_SUITE_NAMES } from "../cipher-suites.ts";
import { listOf, metricNames } from "../kinds/list-kinds.ts";
import { boolean, cgroupPath, directory, duration, file, ipAddress, oneOf, port } from "../kinds/scalar-kinds.ts";
import { inapplicable, OURS, option, options, UPSTREAM } from "../option-row.ts";

export const SERVER_OPTIONS = {
  ...options("Servers", {
    kubeletCgroups: option("kubelet-cgroups", UPSTREAM, cgroupPath, "", {
      description: "Cgroup that /stats/summary shows as systemContainers kubelet; processes are not moved.",
    }),
    runtimeCgroups: option("runtime-cgroups", OURS, cgroupPath, "", {
      description: "Cgroup that /stats/summary shows as systemContainers runtime, e.g. /system.slice/docker.service.",
    }),
    systemCgroups: option("system-cgroups", UPSTREAM, cgroupPath, "", {
      description: "Cgroup that /stats/summary shows as systemContainers misc; processes are not moved.",
    }),
    enableServer: option("enable-server", UPSTREAM, boolean, true, {
      description: "Serve the HTTP ports; /healthz is always served.",
    }),
    disabledMetrics: option("disabled-metrics", OURS, metricNames, [], {
      description:
        "Metrics that /metrics/resource leaves out. A client that knows only those of 1.20 needs container_start_time_seconds, node_swap_usage_bytes, pod_swap_usage_bytes and container_swap_usage_bytes out of the way.",
    }),
    readOnlyPort: option("read-only-port", UPSTREAM, port, 10255, {
      description:
        "Port of pods, stats and metrics without authentication; 0 is off. Off with a configuration file that does not name it.",
      zeroCounts: true,
    }),
    readOnlyAddress: option("read-only-bind-address", "kubeletTs.readOnlyBindAddress", ipAddress, "127.0.0.1", {
      description: "Address of the read-only port.",
      defaultText: "--address if given, else 127.0.0.1",
    }),
    readOnlyFull: option("read-only-full", OURS, boolean, false, {
      description: "Show the values of environment variables on the read-only port.",
    }),
    localApiPort: option("local-api-port", OURS, port, 6443, {
      description:
        "Port of the local Kubernetes API for kubectl (TLS, <root-dir>/admin.conf); 0 is off. <root-dir>/api.sock answers in any case. Off in a cluster, with the socket.",
    }),
    localApiAddress: option("local-api-address", OURS, ipAddress, "127.0.0.1", {
      description: "Address of the local Kubernetes API.",
    }),
    tokenAuthFile: option("token-auth-file", OURS, file, "", {
      description:
        'Bearer tokens of the local Kubernetes API, one token,user,uid,"group1,group2" a line; system:masters may do everything, others may read.',
    }),
    healthzPort: option("healthz-port", UPSTREAM, port, 10248, {
      description: "Port of /healthz; 0 is off.",
      zeroCounts: true,
    }),
    healthzBindAddress: option("healthz-bind-address", UPSTREAM, ipAddress, "127.0.0.1", {
      description: "Address of /healthz; 0.0.0.0 for all.",
    }),
    cadvisorPort: option("cadvisor-port", OURS, port, 4194, {
      description: "Port of the page and of cAdvisor's API; 0 is off.",
    }),
    cadvisorBindAddress: option("cadvisor-bind-address", OURS, ipAddress, "127.0.0.1", {
      description: "Address of cAdvisor's API; on a network the page needs TLS and a session.",
    }),
  }),
  ...options("Authenticated server", {
    address: option("address", UPSTREAM, ipAddress, "0.0.0.0", {
      description: "Address of the authenticated port; when given, of the read-only port too.",
      defaultText: "0.0.0.0; 127.0.0.1 with --anonymous-auth",
    }),
    port: option("port", UPSTREAM, port, 10250, {
      description: "Port of the authenticated API (TLS); 0 is off.",
      defaultText: "10250 if --client-ca-file or --anonymous-auth is set, else 0",
    }),
    certDir: option("cert-dir", OURS, directory, "/var/lib/kubelet/pki", {
      description: "Directory of the self-signed certificate, made when none is given.",
      defaultText: "<root-dir>/pki",
    }),
    tlsCertFile: option("tls-cert-file", UPSTREAM, file, "", {
      description: "PEM file with the server's certificate and its intermediates; reloaded when it changes.",
      defaultText: "self-signed, in --cert-dir",
    }),
    tlsPrivateKeyFile: option("tls-private-key-file", UPSTREAM, file, "", {
      description: "PEM file with its private key.",
    }),
    tlsMinVersion: option("tls-min-version", UPSTREAM, oneOf("VersionTLS12", "VersionTLS13"), "VersionTLS12", {
      description: "Oldest TLS version accepted.",
    }),
    tlsCipherSuites: option("tls-cipher-suites", UPSTREAM, listOf("name,…", checkCipherSuite), [], {
      description: "Cipher suites of TLS 1.2 accepted, by their IANA names; those of TLS 1.3 are always on.",
      defaultText: "ECDHE with AES-GCM or ChaCha20-Poly1305",
    }),
    clientCaFile: option("client-ca-file", "authentication.x509.clientCAFile", file, "", {
      description: "PEM file with the authorities whose client certificates are accepted.",
    }),
    anonymousAuth: option("anonymous-auth", "authentication.anonymous.enabled", boolean, false, {
      description: "Accept requests without credentials; they may run commands in every container.",
    }),
    authenticationTokenWebhook: option(
      "authentication-token-webhook",
      "authentication.webhook.enabled",
      boolean,
      false,
      {
        description: "Accept bearer tokens that the API server of --kubeconfig reviews as valid.",
        defaultText: "false; true with --kubeconfig and a configuration file",
      },
    ),
    authenticationTokenWebhookCacheTtlMs: option(
      "authentication-token-webhook-cache-ttl",
      "authentication.webhook.cacheTTL",
      duration(),
      120_000,
      { description: "How long the answer about a token counts; 0s asks each time." },
    ),
    authorizationMode: option(
      "authorization-mode",
      "authorization.mode",
      oneOf("AlwaysAllow", "AlwaysDeny", "Webhook"),
      "AlwaysAllow",
      {
        description:
          "Authorization of authenticated clients: all requests, none, or those that the API server of --kubeconfig allows.",
        defaultText: "AlwaysAllow; Webhook with --kubeconfig and a configuration file",
      },
    ),
    authorizationWebhookCacheAuthorizedTtlMs: option(
      "authorization-webhook-cache-authorized-ttl",
      "authorization.webhook.cacheAuthorizedTTL",
      duration(),
      300_000,
      { description: "How long a request that the API server allowed is allowed." },
    ),
    authorizationWebhookCacheUnauthorizedTtlMs: option(
      "authorization-webhook-cache-unauthorized-ttl",
      "authorization.webhook.cacheUnauthorizedTTL",
      duration(),
      30_000,
      { description: "How long a request that the API server denied is denied." },
    ),
    enableDebuggingHandlers: option("enable-debugging-handlers", UPSTREAM, boolean, true, {
      description: "Serve logs of containers, run, exec, attach, port-forward and /configz there.",
    }),
    enableSystemLogHandler: option(undefined, UPSTREAM, boolean, true, {
      description: "Serve the files of /var/log below /logs/ there.",
    }),
    streamingConnectionIdleTimeoutMs: option("streaming-connection-idle-timeout", UPSTREAM, duration(), 4 * 3_600_000, {
      description: "Idle exec, attach and port-forward connections are closed after this; 0s never.",
    }),
  }),
};

export const SERVER_OTHERS = [
  ...inapplicable(
    "kubelet-ts always serves cAdvisor's API on --cadvisor-port",
    "enable-cadvisor-json-endpoints? enable-custom-metrics?",
  ),
  ...inapplicable(
    "kubelet-ts has no Go profiler",
    "contention-profiling?|enableContentionProfiling |enableProfilingHandler profiling? |enableDebugFlagsHandler",
  ),
  ...inapplicable("no metrics are hidden", "show-hidden-metrics-for-version|showHiddenMetricsForVersion"),
  ...inapplicable("kubelet-ts records no traces", "|tracing"),
  ...inapplicable("TLS chooses its curves", "|tlsCurvePreferences"),
  ...inapplicable("the logs of services are not served: ask journalctl", "|enableSystemLogQuery", ["false"]),
  ...inapplicable(
    "kubelet-ts has its own collector of statistics",
    `
      application-metrics-count-limit boot-id-file machine-id-file container-hints containerd containerd-namespace
      enable-load-reader? event-storage-age-limit event-storage-event-limit global-housekeeping-interval
      housekeeping-interval disable-root-cgroup-stats? storage-driver-buffer-duration storage-driver-db
      storage-driver-host storage-driver-password storage-driver-secure? storage-driver-table storage-driver-user
      log-cadvisor-usage?`,
  ),
];

function checkCipherSuite(name: string): string | undefined {
  if (CIPHER_SUITE_NAMES.includes(name)) return undefined;
  return `${JSON.stringify(name)} is not a supported cipher suite${didYouMean(name, CIPHER_SUITE_NAMES)}`;
}
