import type { Clock } from "../base/model/clock.ts";
import type { KubeletMetrics } from "../stats/metrics/kubelet-metrics.ts";

export interface RequestCounters {
  clock: Clock;
  kubeletMetrics: Pick<KubeletMetrics, "httpRequests" | "httpRequestsDuration" | "httpInflightRequests">;
}

/**
 * The route, with every request counted in `kubelet_http_requests_*`.
 * @param server the kubelet's name of it: `readonly`, `readwrite`
 */
export function instrumentHandler<R extends { method: string; path: string }, A>(
  route: (request: R) => A | Promise<A>,
  server: "readonly" | "readwrite",
  { clock, kubeletMetrics }: RequestCounters,
): (request: R) => Promise<A> {
  const { httpRequests, httpRequestsDuration, httpInflightRequests } = kubeletMetrics;
  return async (request) => {
    const path = metricPath(request.path);
    const labels = [LONG_RUNNING.has(path) ? "true" : "false", request.method, path, server];
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

const LONG_RUNNING = new Set(["attach", "exec", "portForward"]);

const METRIC_PATHS = new Set([
  "api",
  "attach",
  "configz",
  "containerLogs",
  "exec",
  "healthz",
  "metrics",
  "metrics/cadvisor",
  "metrics/probes",
  "metrics/resource",
  "node",
  "pods",
  "portForward",
  "run",
  "runningpods",
  "spec",
  "stats",
]);

/** First part of the path, two for metrics, as upstream. Unknown paths share one label: clients must not create labels. */
function metricPath(path: string): string {
  const [first = "", second] = path.slice(1).split("/", 2);
  const label = first === "metrics" && second ? `${first}/${second}` : first;
  return METRIC_PATHS.has(label) ? label : "other";
}
