import { timed } from "../base/concurrency/timed.ts";
import type { LogDirectory } from "../base/host/log-directory.ts";
import type { AccessReviewer } from "../base/model/cluster-connection.ts";
import type { ContainerAccess } from "../base/model/container-access.ts";
import { toTlsVersions } from "../config/cipher-suites.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { CadvisorApi } from "../stats/cadvisor/cadvisor-api.ts";
import type { KubeletMetrics } from "../stats/metrics/kubelet-metrics.ts";
import type { Metric } from "../stats/metrics/metric.ts";
import { processStartMetric } from "../stats/metrics/process-metrics.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import { type AuthenticatedContext, routeAuthenticated, routeLogDirectory } from "./authenticated-routes.ts";
import { pageHint, routeCadvisor } from "./cadvisor-routes.ts";
import { DelegatedAccess } from "./client-identity.ts";
import { CONTAINER_PATHS } from "./container-routes.ts";
import { Listener, type ListenerEnvironment, type ListenerOptions } from "./listener.ts";
import { type ReadNodeFacts, toNodeObject } from "./node-object.ts";
import type { ListenerTls } from "./node-transport.ts";
import { PodListRenderer } from "./pod-list.ts";
import type { PodStreams } from "./pod-streams.ts";
import { healthzResponse, READ_ONLY_PATHS, type ReadOnlyContext, routeReadOnly } from "./read-only-routes.ts";
import {
  type HttpResponse,
  isLocalHost,
  isLoopback,
  isReading,
  type ListenAddress,
  methodNotAllowed,
  notFound,
  type RouteRequest,
  type RouteResponse,
  type ServerRequest,
} from "./request-handler.ts";
import { type CertificateStore, readTlsMaterial } from "./serving-certificate.ts";
import { SharedResponses } from "./shared-responses.ts";
import type { KubeletView } from "./view.ts";

export interface ServerParts {
  options: KubeletOptions;
  environment: ListenerEnvironment;
  stats: NodeStats;
  metrics: ServerMetrics;
  /** For `/node`; asked at each request. */
  nodeFacts: ReadNodeFacts;
  /** Path of a Unix socket that answers like the read-only port, for the own user only; absent: none. */
  socketPath?: string | undefined;
  /** Absent: the cAdvisor port has no page. */
  page?: Page | undefined;
  /** Absent: the authenticated port is off. */
  authenticated?: AuthenticatedParts | undefined;
}

interface ServerMetrics {
  requests: Pick<KubeletMetrics, "httpRequests" | "httpRequestsDuration" | "httpInflightRequests">;
  /** Shown on `/metrics`, with those of the disks; asked at each scrape. */
  shown: () => readonly Metric[];
  /** Shown on `/metrics/probes`. */
  probes: readonly Metric[];
}

interface AuthenticatedParts {
  containers: ContainerAccess;
  streams: PodStreams;
  /** Absent: `/logs/` is not served. */
  logDirectory: LogDirectory | undefined;
  /** "" while unknown. */
  nodeIp: string;
  certificates: CertificateStore;
  /** The API server of a cluster; absent when standalone. */
  reviewer: AccessReviewer | undefined;
}

/** Routes in front of those of the cAdvisor port. */
export interface Page {
  /** @returns undefined for a path that is not the page's */
  route(request: ServerRequest): RouteResponse | Promise<RouteResponse> | undefined;
  /** The port serves TLS too, which the page needs on a network; absent on a loopback address. */
  tls: ListenerTls | undefined;
  stop(): void;
}

/** The ports 10248, 10255, 4194 and 10250, and the socket of the commands: each listens, or will when its address is free. */
export class Servers {
  readonly #parts: ServerParts;
  readonly #view: KubeletView;
  readonly #context: ReadOnlyContext;
  /** For authenticated clients: literal environment values are shown. Values of Secrets are in no pod object. */
  readonly #fullContext: ReadOnlyContext;
  readonly #listeners: Record<"healthz" | "readOnly" | "cadvisor" | "authenticated" | "socket", Listener | undefined>;

  /** Starts them. Never throws for a port that is taken. */
  constructor(view: KubeletView, parts: ServerParts) {
    const { environment, options, stats, metrics, page, socketPath, authenticated } = parts;
    const { clock } = environment;
    const podList = new PodListRenderer(options.readOnlyFull);
    const cadvisor = new CadvisorApi(stats);
    this.#parts = parts;
    this.#view = view;
    this.#context = {
      view,
      stats,
      ports: { readOnly: options.readOnlyPort, securePage: page?.tls ? options.cadvisorPort : 0 },
      shared: new SharedResponses(clock),
      cadvisor,
      podList,
      node: async () => toNodeObject(await parts.nodeFacts(), cadvisor.facts.forNodeObject(), clock.now()),
      metrics: {
        shown: () => [...metrics.shown(), ...stats.diskMetrics()],
        probes: () => [...metrics.probes, processStartMetric()],
      },
    };
    this.#fullContext = { ...this.#context, podList: options.readOnlyFull ? podList : new PodListRenderer(true) };
    const pageAddress = { address: options.cadvisorBindAddress, port: page ? options.cadvisorPort : 0 };
    const hint = (request: RouteRequest) =>
      request.path === "/" ? pageHint(request, { ...pageAddress, nodeName: view.nodeName() }) : undefined;
    const readOnly = this.#counted("readonly", (request: RouteRequest) => {
      return hint(request) ?? routeReadOnly(request, this.#context);
    });
    this.#listeners = {
      healthz: this.#listen(
        "healthz port",
        { hostname: options.healthzBindAddress, port: options.healthzPort },
        (request) => hint(request) ?? routeHealthzPort(request, view),
      ),
      readOnly: this.#listen(
        "read-only port",
        { hostname: options.readOnlyAddress, port: options.readOnlyPort },
        readOnly,
      ),
      socket: socketPath === undefined ? undefined : this.#listen("socket of the commands", { socketPath }, readOnly),
      cadvisor: this.#listen(
        page ? "page and cAdvisor port" : "cAdvisor port",
        { hostname: options.cadvisorBindAddress, port: options.cadvisorPort },
        (request) => page?.route(request) ?? routeCadvisor(request, this.#context),
        page?.tls,
      ),
      authenticated: authenticated && this.#listenAuthenticated(authenticated),
    };
  }

  /** Ports in use; undefined while one is off or taken. */
  ports(): Record<"healthz" | "readOnly" | "cadvisor" | "authenticated", number | undefined> {
    const { healthz, readOnly, cadvisor, authenticated } = this.#listeners;
    return {
      healthz: healthz?.port,
      readOnly: readOnly?.port,
      cadvisor: cadvisor?.port,
      authenticated: authenticated?.port,
    };
  }

  /** Path of the Unix socket in use; undefined while there is none. */
  socketPath(): string | undefined {
    return this.#listeners.socket?.socketPath;
  }

  node(): Promise<object> {
    return this.#context.node();
  }

  /** The response of the read-only port, and of `/logs/`, for users with all permissions: the local API passes requests on. */
  respond(request: RouteRequest): RouteResponse | Promise<RouteResponse> {
    const { logDirectory } = this.#parts.authenticated ?? {};
    const isOfLogs = request.path.startsWith("/logs/") && this.#parts.options.enableDebuggingHandlers;
    return logDirectory && isOfLogs
      ? routeLogDirectory(request, logDirectory)
      : routeReadOnly(request, this.#fullContext);
  }

  async stop(): Promise<void> {
    this.#parts.page?.stop();
    await Promise.all(Object.values(this.#listeners).map((listener) => listener?.stop()));
  }

  /** @returns undefined for port 0 */
  #listen(
    name: string,
    address: ListenAddress,
    route: ListenerOptions["route"],
    tls?: ListenerTls,
  ): Listener | undefined {
    if ("port" in address && address.port === 0) return undefined;
    const isLocal = "hostname" in address && isLoopback(address.hostname);
    const acceptsHost = (host: string | null) => !isLocal || isLocalHost(host, this.#view.nodeName());
    const transport = tls ? "node:http" : "Bun.serve";
    const listener = new Listener({ name, address, route, acceptsHost, transport, tls }, this.#parts.environment);
    listener.start();
    return listener;
  }

  #listenAuthenticated(parts: AuthenticatedParts): Listener | undefined {
    const { options, environment } = this.#parts;
    const { clock, logger } = environment;
    const { reviewer, certificates, nodeIp } = parts;
    const context: AuthenticatedContext = {
      ...parts,
      clock,
      logger,
      readOnly: this.#fullContext,
      view: this.#view,
      debuggingHandlers: options.enableDebuggingHandlers,
      rules: {
        trustsCertificates: options.clientCaFile !== "",
        trustsTokens: options.authenticationTokenWebhook,
        anonymousAuth: options.anonymousAuth,
        authorizationMode: options.authorizationMode,
        delegated: reviewer && new DelegatedAccess(reviewer, options, clock),
      },
    };
    const names = { nodeName: this.#view.nodeName(), nodeIp };
    return this.#listen(
      "authenticated port",
      { hostname: options.address, port: options.port },
      this.#counted("readwrite", (request) => routeAuthenticated(request, context)),
      {
        versions: toTlsVersions(options.tlsMinVersion, options.tlsCipherSuites),
        readMaterial: () => readTlsMaterial(certificates, options, names, clock.now()),
      },
    );
  }

  /** The route, with every request counted in `kubelet_http_requests_*`. @param server the kubelet's name of it */
  #counted<R extends { method: string; path: string }, A>(
    server: "readonly" | "readwrite",
    route: (request: R) => A | Promise<A>,
  ): (request: R) => Promise<A> {
    const { environment, metrics } = this.#parts;
    const { clock } = environment;
    const { httpRequests, httpRequestsDuration, httpInflightRequests } = metrics.requests;
    return async (request) => {
      const path = metricPath(request.path);
      const labels = [LONG_RUNNING.has(path) ? "true" : "false", request.method, path, server];
      httpRequests.inc(labels);
      httpInflightRequests.add(1, labels);
      return await timed(
        clock,
        async () => await route(request),
        (durationMs) => {
          httpInflightRequests.add(-1, labels);
          httpRequestsDuration.observe(durationMs / 1000, labels);
        },
      );
    };
  }
}

/** 10248: `/healthz` and nothing else. */
export function routeHealthzPort(request: RouteRequest, view: KubeletView): HttpResponse {
  const response = request.path.startsWith("/healthz") ? healthzResponse(request, view.healthChecks()) : notFound();
  return response.status === 404 || isReading(request) ? response : methodNotAllowed();
}

const LONG_RUNNING = new Set(["attach", "exec", "portForward"]);

/** First part of the path, two for metrics, as upstream. Unknown paths share one label: clients must not create labels. */
function metricPath(path: string): string {
  const label = labelOf(path);
  return METRIC_PATHS.has(label) ? label : "other";
}

const labelOf = (path: string) => /^\/(metrics\/[^/]+|[^/]*)/.exec(path)?.[1] ?? "";

const METRIC_PATHS = new Set([...READ_ONLY_PATHS, ...CONTAINER_PATHS].map(labelOf));
