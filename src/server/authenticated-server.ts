import type { AccessReviewer } from "../base/model/access-review.ts";
import type { ContainerAccess } from "../base/model/container-access.ts";
import type { KubeletOptions } from "../base/model/kubelet-options.ts";
import type { LogDirectory } from "../base/model/log-directory.ts";
import type { Logger } from "../base/model/logger.ts";
import type { DialPod } from "../base/model/pod-dialer.ts";
import { toTlsVersions } from "../config/cipher-suites.ts";
import { routeAuthenticated } from "./authenticated-routes.ts";
import { DelegatedAccess, type DelegatedAccessOptions } from "./delegated-access.ts";
import { isLocalHost, isLoopback } from "./host-header.ts";
import { instrumentHandler, type RequestCounters } from "./instrument-handler.ts";
import { Listener } from "./listener.ts";
import type { ReadOnlyContext } from "./read-only-routes.ts";
import { type CertificateStore, readTlsMaterial, type ServedNames } from "./serving-certificate.ts";

/** How the authenticated port is served; `port` is never 0. */
type AuthenticatedOptions = Pick<
  KubeletOptions,
  | "address"
  | "port"
  | "certDir"
  | "rotateServerCertificates"
  | "tlsCertFile"
  | "tlsPrivateKeyFile"
  | "tlsMinVersion"
  | "tlsCipherSuites"
  | "clientCaFile"
  | "anonymousAuth"
  | "authorizationMode"
  | "authenticationTokenWebhook"
  | "authenticationTokenWebhookCacheTtlMs"
  | "authorizationWebhookCacheAuthorizedTtlMs"
  | "authorizationWebhookCacheUnauthorizedTtlMs"
  | "enableDebuggingHandlers"
  | "streamingConnectionIdleTimeoutMs"
>;

/** Parts that only the authenticated port needs. */
export interface AuthenticatedServerParts {
  options: AuthenticatedOptions;
  containers: ContainerAccess;
  dialPod: DialPod;
  /** Absent: `/logs/` is not served. */
  logDirectory: LogDirectory | undefined;
  names: ServedNames;
  certificates: CertificateStore;
  /** The API server of a cluster; absent when standalone. */
  reviewer?: AccessReviewer | undefined;
}

/** Starts the authenticated port. Returns at once and never throws. */
export function startAuthenticatedServer(
  { options, containers, dialPod, names, certificates, logDirectory, reviewer }: AuthenticatedServerParts,
  readOnly: ReadOnlyContext,
  dependencies: RequestCounters & { logger: Logger; onListening?: () => void },
): Listener {
  const { clock, logger } = dependencies;
  const context = {
    readOnly,
    view: readOnly.view,
    containers,
    dialPod,
    logDirectory,
    clock,
    logger,
    streamingIdleTimeoutMs: options.streamingConnectionIdleTimeoutMs,
    debuggingHandlers: options.enableDebuggingHandlers,
    rules: {
      trustsCertificates: options.clientCaFile !== "",
      trustsTokens: options.authenticationTokenWebhook,
      anonymousAuth: options.anonymousAuth,
      authorizationMode: options.authorizationMode,
      delegated: reviewer && new DelegatedAccess(reviewer, toDelegatedAccessOptions(options), clock),
    },
  };
  const { address: hostname, port } = options;
  const listener = new Listener(
    {
      name: "authenticated port",
      place: { hostname, port },
      onListening: dependencies.onListening,
      route: instrumentHandler((request) => routeAuthenticated(request, context), "readwrite", dependencies),
      acceptsHost: (host) => !isLoopback(hostname) || isLocalHost(host, names.nodeName),
      transport: "node:http",
      tls: {
        versions: toTlsVersions(options.tlsMinVersion, options.tlsCipherSuites),
        readMaterial: () => readTlsMaterial(certificates, options, names, clock.now()),
      },
    },
    clock,
    logger,
  );
  listener.start();
  return listener;
}

const toDelegatedAccessOptions = (options: AuthenticatedOptions): DelegatedAccessOptions => ({
  tokenTtlMs: options.authenticationTokenWebhookCacheTtlMs,
  authorizedTtlMs: options.authorizationWebhookCacheAuthorizedTtlMs,
  unauthorizedTtlMs: options.authorizationWebhookCacheUnauthorizedTtlMs,
});
