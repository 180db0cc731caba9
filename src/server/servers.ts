import type { Clock } from "../model/clock.ts";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { Logger } from "../model/logger.ts";
import { CadvisorApi } from "../stats/cadvisor-api.ts";
import type { KubeletMetrics } from "../stats/kubelet-metrics.ts";
import type { MetricsRegistry } from "../stats/metrics-registry.ts";
import { type NodeObjectFacts, toNodeObject } from "../stats/node-object.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import { processStartFamily } from "../stats/process-metrics.ts";
import { type Answer, methodNotAllowed, notFound, type RouteRequest } from "./answer.ts";
import { routeCadvisor } from "./cadvisor-routes.ts";
import { healthzAnswer } from "./healthz.ts";
import { Listener } from "./listener.ts";
import { PodListRenderer } from "./pod-list.ts";
import { isReading, type ReadOnlyContext, routeReadOnly } from "./read-only-routes.ts";
import type { KubeletView } from "./view.ts";

/** Which ports, and where. A port of 0 is off. [U28] */
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

export interface ServerDependencies {
  clock: Clock;
  logger: Logger;
  /** Measures while somebody asks. */
  stats: NodeStats;
  /** Where requests are counted. */
  kubeletMetrics: Pick<KubeletMetrics, "httpRequests" | "httpRequestsDuration" | "httpInflightRequests">;
  /** Shown on `/metrics`. */
  registry: Pick<MetricsRegistry, "collect">;
  /** Measured at each scrape of `/metrics`: `process_*`. */
  processMetrics: Pick<MetricsRegistry, "collect">;
  /** Shown on `/metrics/probes`. */
  probeRegistry: Pick<MetricsRegistry, "collect">;
  /** For `/node`; asked at each request. */
  nodeFacts: () => Promise<NodeObjectFacts>;
}

/** Servers that are up, or will be once their port is free. */
export interface RunningServers {
  /** Ports that answer now; undefined while one is off or taken. */
  ports(): { healthz: number | undefined; readOnly: number | undefined; cadvisor: number | undefined };
  /** Closes all; open connections are cut. */
  stop(): Promise<void>;
}

/** Starts 10248, 10255 and 4194. Returns at once and never throws for a port that is taken. [S071 S072 S073 S074] */
export function startServers(
  options: ServerOptions,
  view: KubeletView,
  dependencies: ServerDependencies,
): RunningServers {
  const { clock, logger, stats, registry, processMetrics, probeRegistry, nodeFacts } = dependencies;
  const context: ReadOnlyContext = {
    view,
    stats,
    readOnlyPort: options.readOnlyPort,
    cadvisor: new CadvisorApi(stats, clock),
    podList: new PodListRenderer(options.readOnlyFull),
    node: async () => toNodeObject(await nodeFacts(), stats.cadvisorFacts(), clock.now()),
    metrics: [registry, processMetrics, { collect: () => stats.diskFamilies() }],
    probeMetrics: { collect: () => [...probeRegistry.collect(), ...processStartFamily()] },
  };
  const listen = (
    name: string,
    hostname: string,
    port: number,
    route: (request: RouteRequest) => Answer | Promise<Answer>,
  ) => {
    if (port === 0) return undefined;
    const listener = new Listener({ name, hostname, port, route }, clock, logger);
    listener.start();
    return listener;
  };
  const readOnly = (request: RouteRequest) => routeReadOnly(request, context);
  const listeners = {
    healthz: listen("healthz", options.healthzBindAddress, options.healthzPort, (request) =>
      routeHealthzPort(request, view),
    ),
    readOnly: listen("read-only", options.readOnlyAddress, options.readOnlyPort, counted(readOnly, dependencies)),
    cadvisor: listen("cAdvisor", options.cadvisorBindAddress, options.cadvisorPort, (request) =>
      routeCadvisor(request, context),
    ),
  };
  return {
    ports: () => ({
      healthz: listeners.healthz?.port,
      readOnly: listeners.readOnly?.port,
      cadvisor: listeners.cadvisor?.port,
    }),
    stop: async () => {
      await Promise.all(Object.values(listeners).map((listener) => listener?.stop()));
    },
  };
}

/** 10248: `/healthz` and nothing else. [S071] */
export function routeHealthzPort(request: RouteRequest, view: KubeletView): Answer {
  const answer = request.path.startsWith("/healthz") ? healthzAnswer(request, view.healthChecks()) : notFound();
  return answer.status === 404 || isReading(request) ? answer : methodNotAllowed();
}

type Route = (request: RouteRequest) => Answer | Promise<Answer>;

/** The route, with every request counted in `kubelet_http_requests_*`. */
function counted(route: Route, { clock, kubeletMetrics }: ServerDependencies): Route {
  const { httpRequests, httpRequestsDuration, httpInflightRequests } = kubeletMetrics;
  return async (request) => {
    const labels = ["false", request.method, metricPath(request.path), "readonly"];
    const startedMs = clock.monotonicMs();
    httpRequests.inc(labels);
    httpInflightRequests.add(1, labels);
    try {
      return await route(request);
    } finally {
      httpInflightRequests.add(-1, labels);
      httpRequestsDuration.observe((clock.monotonicMs() - startedMs) / 1000, labels);
    }
  };
}

const METRIC_PATHS = new Set([
  "api",
  "configz",
  "healthz",
  "metrics",
  "metrics/cadvisor",
  "metrics/probes",
  "metrics/resource",
  "node",
  "pods",
  "runningpods",
  "spec",
  "stats",
]);

/** First part of the path, two for metrics, as upstream; unlike there, unknown ones share a name, so that nobody can fill our memory with labels. */
function metricPath(path: string): string {
  const [first = "", second] = path.slice(1).split("/", 2);
  const label = first === "metrics" && second ? `${first}/${second}` : first;
  return METRIC_PATHS.has(label) ? label : "other";
}
