import type { KubeletOptions } from "../base/model/kubelet-options.ts";
import type { Logger } from "../base/model/logger.ts";
import { CadvisorApi } from "../stats/cadvisor/cadvisor-api.ts";
import type { Metric } from "../stats/metrics/metric.ts";
import { processStartMetric } from "../stats/metrics/process-metrics.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import { type AuthenticatedServerParts, startAuthenticatedServer } from "./authenticated-server.ts";
import { routeCadvisor } from "./cadvisor-routes.ts";
import { healthzResponse } from "./healthz.ts";
import { isLocalHost, isLoopback } from "./host-header.ts";
import {
  type HttpResponse,
  methodNotAllowed,
  notFound,
  type RouteRequest,
  type RouteResponse,
  type ServerRequest,
} from "./http-response.ts";
import { instrumentHandler, type RequestCounters } from "./instrument-handler.ts";
import { Listener, type ListenerOptions } from "./listener.ts";
import { type ReadNodeFacts, toNodeObject } from "./node-object.ts";
import type { ListenerTls } from "./node-transport.ts";
import { pageHint } from "./page-hint.ts";
import { PodListRenderer } from "./pod-list.ts";
import { isReading, type ReadOnlyContext, routeReadOnly } from "./read-only-routes.ts";
import type { ListenerPlace } from "./request-handler.ts";
import { SharedResponses } from "./shared-responses.ts";
import type { KubeletView } from "./view.ts";

/** Which ports, and where. A port of 0 is off. */
export type ServerOptions = Pick<
  KubeletOptions,
  | "healthzBindAddress"
  | "healthzPort"
  | "readOnlyAddress"
  | "readOnlyPort"
  | "readOnlyFull"
  | "cadvisorBindAddress"
  | "cadvisorPort"
>;

export interface ServerDependencies extends RequestCounters {
  logger: Logger;
  stats: NodeStats;
  /** Shown on `/metrics`, with those of the disks; asked at each scrape. */
  metrics: () => readonly Metric[];
  /** Shown on `/metrics/probes`. */
  probeMetrics: readonly Metric[];
  /** For `/node`; asked at each request. */
  nodeFacts: ReadNodeFacts;
  /** Path of a Unix socket that answers like the read-only port, for the own user only; absent: none. */
  socketPath?: string;
  /** Absent: the cAdvisor port has no page. */
  page?: Page;
  /** Names the process that listens on a port, e.g. `nginx (pid 812)`. */
  portHolder?: (port: number) => Promise<string | undefined>;
  /** Called with each port or socket that opens, which may be later than the start. */
  onListening?: () => void;
  /** Absent: the authenticated port is off. */
  authenticated?: AuthenticatedServerParts;
}

/** Routes in front of those of the cAdvisor port. */
export interface Page {
  /** @returns undefined for a path that is not the page's */
  route(request: ServerRequest): RouteResponse | Promise<RouteResponse> | undefined;
  /** The port serves TLS too, which the page needs on a network; absent on a loopback address. */
  tls: ListenerTls | undefined;
  stop(): void;
}

/** Servers that listen, or will when their port is free. */
export interface RunningServers {
  /** Ports that answer now; undefined while one is off or taken. */
  ports(): Record<"healthz" | "readOnly" | "cadvisor" | "authenticated", number | undefined>;
  /** Path of the Unix socket that answers; undefined while there is none. */
  socketPath(): string | undefined;
  /** The node as the API shows it; measured now. */
  node(): Promise<object>;
  /** Answers for users with all permissions; the local API passes requests on to them. */
  answer(request: RouteRequest): HttpResponse | Promise<HttpResponse>;
  /** Closes all; open connections are cut. */
  stop(): Promise<void>;
}

/** Starts 10248, 10255, 4194 and 10250. Returns at once and never throws for a port that is taken. */
export function startServers(
  options: ServerOptions,
  view: KubeletView,
  dependencies: ServerDependencies,
): RunningServers {
  const { clock, logger, stats, metrics, probeMetrics, nodeFacts, page } = dependencies;
  const podList = new PodListRenderer(options.readOnlyFull);
  // Authenticated clients see literal environment values; values of Secrets are in no pod object.
  const fullPodList = options.readOnlyFull ? podList : new PodListRenderer(true);
  const cadvisor = new CadvisorApi(stats);
  const context: ReadOnlyContext = {
    view,
    stats,
    readOnlyPort: options.readOnlyPort,
    securePagePort: page?.tls ? options.cadvisorPort : 0,
    shared: new SharedResponses(clock),
    cadvisor,
    podList,
    node: async () => toNodeObject(await nodeFacts(), cadvisor.facts.forNodeObject(), clock.now()),
    metrics: () => [...metrics(), ...stats.diskMetrics()],
    probeMetrics: () => [...probeMetrics, processStartMetric()],
  };
  const listenAt = (name: string, place: ListenerPlace, route: ListenerOptions["route"], tls?: ListenerTls) => {
    const isLocal = "hostname" in place && isLoopback(place.hostname);
    const acceptsHost = (host: string | null) => !isLocal || isLocalHost(host, view.nodeName());
    const listener = new Listener(
      {
        name,
        place,
        route,
        acceptsHost,
        onListening: dependencies.onListening,
        portHolder: dependencies.portHolder,
        transport: tls ? "node:http" : "Bun.serve",
        tls,
      },
      clock,
      logger,
    );
    listener.start();
    return listener;
  };
  const listen = (name: string, hostname: string, port: number, route: ListenerOptions["route"], tls?: ListenerTls) =>
    port === 0 ? undefined : listenAt(`${name} port`, { hostname, port }, route, tls);
  const place = {
    address: options.cadvisorBindAddress,
    port: page ? options.cadvisorPort : 0,
    nodeName: view.nodeName(),
  };
  const readOnly = instrumentHandler(
    (request: RouteRequest) => pageHint(request, place) ?? routeReadOnly(request, context),
    "readonly",
    dependencies,
  );
  const cadvisorRoute = (request: ServerRequest) => page?.route(request) ?? routeCadvisor(request, context);
  const { socketPath } = dependencies;
  const listeners = {
    healthz: listen(
      "healthz",
      options.healthzBindAddress,
      options.healthzPort,
      (request) => pageHint(request, place) ?? routeHealthzPort(request, view),
    ),
    readOnly: listen("read-only", options.readOnlyAddress, options.readOnlyPort, readOnly),
    socket: socketPath === undefined ? undefined : listenAt("socket of the commands", { socketPath }, readOnly),
    cadvisor: listen(
      page ? "page and cAdvisor" : "cAdvisor",
      options.cadvisorBindAddress,
      options.cadvisorPort,
      cadvisorRoute,
      page?.tls,
    ),
    authenticated:
      dependencies.authenticated &&
      startAuthenticatedServer(dependencies.authenticated, { ...context, podList: fullPodList }, dependencies),
  };
  return {
    ports: () => ({
      healthz: listeners.healthz?.port,
      readOnly: listeners.readOnly?.port,
      cadvisor: listeners.cadvisor?.port,
      authenticated: listeners.authenticated?.port,
    }),
    socketPath: () => listeners.socket?.socketPath,
    node: context.node,
    answer: (request) => routeReadOnly(request, { ...context, podList: fullPodList }),
    stop: async () => {
      page?.stop();
      await Promise.all(Object.values(listeners).map((listener) => listener?.stop()));
    },
  };
}

/** 10248: `/healthz` and nothing else. */
export function routeHealthzPort(request: RouteRequest, view: KubeletView): HttpResponse {
  const answer = request.path.startsWith("/healthz") ? healthzResponse(request, view.healthChecks()) : notFound();
  return answer.status === 404 || isReading(request) ? answer : methodNotAllowed();
}
