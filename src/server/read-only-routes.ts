import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { CadvisorApi } from "../stats/cadvisor/cadvisor-api.ts";
import {
  type Metric,
  metricsText,
  negotiateTextFormat,
  TEXT_CONTENT_TYPE,
  type TextFormat,
} from "../stats/metrics/metric.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import { eventListResponse } from "./event-list.ts";
import { healthzResponse } from "./healthz.ts";
import {
  acceptsJson,
  cleanPath,
  debugDisabled,
  type HttpResponse,
  indentedJsonResponse,
  jsonResponse,
  matchesEtag,
  methodNotAllowed,
  movedPermanently,
  notAcceptable,
  notFound,
  type RouteRequest,
  resourceNotFound,
  textResponse,
} from "./http-response.ts";
import { type PodListRenderer, type PreparedList, parsePodSelectors, runningPodListText } from "./pod-list.ts";
import type { SharedResponses } from "./shared-responses.ts";
import { isStatsResource, parseQuery, questionOf, statsResponse } from "./stats-routes.ts";
import type { KubeletView } from "./view.ts";

/** How long measured responses are shared by all clients. */
export const SHARED_MS = 1_000;

/** Everything that the routes of the read-only port use. */
export interface ReadOnlyContext {
  view: KubeletView;
  podList: PodListRenderer;
  stats: NodeStats;
  /** Makes each response once for concurrent requests. */
  shared: SharedResponses;
  /** Port of the read-only server, for links to it; 0 = off. */
  readOnlyPort: number;
  /** Port that serves the page over TLS, for the link to it; 0 = none. */
  securePagePort: number;
  /** `/stats/…` without the summary, and the cAdvisor port. */
  cadvisor: CadvisorApi;
  /** `/node`. */
  node: () => Promise<object>;
  /** `/metrics`, in any order. */
  metrics: () => readonly Metric[];
  /** `/metrics/probes`. */
  probeMetrics: () => readonly Metric[];
}

/** Every path of the read-only port; parameters in braces. `docs/openapi.yaml` describes each. */
export const READ_ONLY_PATHS = [
  "/healthz",
  "/healthz/{check}",
  "/pods",
  "/runningpods/",
  "/api/v1/events",
  "/api/v1/namespaces/{namespace}/events",
  "/configz",
  "/node",
  "/spec/",
  "/stats/",
  "/stats/summary",
  "/stats/container",
  "/stats/{pod}/{container}",
  "/stats/{namespace}/{pod}/{uid}/{container}",
  "/metrics",
  "/metrics/cadvisor",
  "/metrics/resource",
  "/metrics/probes",
] as const;

/** Roots that go-restful serves upstream: JSON only, with error texts of their own. */
const RESOURCE_ROOTS = new Set(["pods", "node", "spec", "stats", "configz", "runningpods"]);
/** Upstream answers these on the authenticated port only. */
const DEBUG_ROOTS = new Set(["run", "exec", "attach", "portForward", "containerLogs", "logs", "debug"]);
/** Answered with and sent to their slash form. */
const SLASH_FORM = new Set(["/spec", "/stats", "/runningpods"]);

/**
 * The read-only port, 10255. Without side effects: GET and HEAD are answered, everything else is 404 or 405. Paths,
 * codes, texts and content types are those of kubelet 1.20, but HEAD is answered and `/runningpods/`
 * and `/configz` are there too.
 */
export function routeReadOnly(request: RouteRequest, context: ReadOnlyContext): HttpResponse | Promise<HttpResponse> {
  const path = cleanPath(request.path);
  if (path !== request.path) return movedPermanently(path, request.query);
  const root = path.split("/", 2)[1]!;
  if (DEBUG_ROOTS.has(root)) {
    if (path === `/${root}`) return movedPermanently(`${path}/`, request.query);
    return root === "debug" && !path.startsWith("/debug/pprof/") ? notFound() : debugDisabled();
  }
  if (root === "metrics" || root === "healthz") {
    const response = root === "metrics" ? routeMetrics(request, context) : routeHealthz(request, context);
    return response;
  }
  if (!RESOURCE_ROOTS.has(root) && !isEvents(path)) return notFound();
  if (SLASH_FORM.has(path)) return movedPermanently(`${path}/`, request.query);
  if (!isKnownResource(path)) return resourceNotFound();
  if (!isReading(request)) return methodNotAllowed();
  if (!acceptsJson(request.header("Accept"))) return notAcceptable();
  return resource(path, request, context);
}

/** Whether anything below this path's root is served, on the authenticated port at least. */
export function isKnownPath(path: string): boolean {
  const root = path.split("/", 2)[1]!;
  if (root === "debug") return path.startsWith("/debug/pprof/");
  return (
    RESOURCE_ROOTS.has(root) || DEBUG_ROOTS.has(root) || root === "metrics" || root === "healthz" || isEvents(path)
  );
}

export const isReading = ({ method }: RouteRequest) => method === "GET" || method === "HEAD";

function isKnownResource(path: string): boolean {
  return KNOWN_RESOURCES.has(path.endsWith("/") ? path.slice(0, -1) : path) || isStatsResource(path) || isEvents(path);
}

const NAMESPACED_EVENTS = /^\/api\/v1\/namespaces\/([^/]+)\/events$/;
const isEvents = (path: string) => path === "/api/v1/events" || NAMESPACED_EVENTS.test(path);

const KNOWN_RESOURCES = new Set(["/pods", "/node", "/spec", "/stats/summary", "/configz", "/runningpods"]);

function resource(path: string, request: RouteRequest, context: ReadOnlyContext): HttpResponse | Promise<HttpResponse> {
  const { view, stats, cadvisor, shared } = context;
  const { signal } = request;
  switch (path.split("/").slice(1, 3).join("/").replace(/\/$/, "")) {
    case "pods": {
      const matches = parsePodSelectors(request.query);
      if (matches && "problem" in matches) return textResponse(400, `${matches.problem}\n`);
      const { podList } = context;
      if (!matches)
        return podListResponse(
          request,
          podList.render(view.podsRevision(), () => view.pods()),
        );
      const question = JSON.stringify([
        path,
        podList.isFull,
        ...["labelSelector", "fieldSelector"].map((name) => request.query.get(name)),
        request.header("If-None-Match"),
      ]);
      return shared.get(question, 0, signal, () =>
        shared.lane.run(() => podListResponse(request, podList.renderOnly(view.pods().filter(matches)))),
      );
    }
    case "api/v1":
      return shared.get(`${path} ${request.query} ${request.header("If-None-Match")}`, 0, signal, () =>
        shared.lane.run(() => eventListResponse(request, view, NAMESPACED_EVENTS.exec(path)?.[1])),
      );
    case "runningpods":
      return shared.get(path, 0, signal, () =>
        shared.lane.run(() => jsonResponse(runningPodListText(view.podFacts()))),
      );
    case "configz":
      return jsonResponse(JSON.stringify({ kubeletconfig: view.config() }), { "X-Content-Type-Options": "nosniff" });
    case "node":
      return shared.get(path, 0, signal, async () => jsonResponse(JSON.stringify(await context.node())));
    case "spec":
      return shared.get(path, SHARED_MS, signal, () =>
        shared.lane.run(() => indentedJsonResponse(cadvisor.facts.machineInfo())),
      );
    case "stats/summary": {
      const onlyCpuAndMemory = isTrue(request.query.get("only_cpu_and_memory"));
      return shared.get(`summary ${onlyCpuAndMemory}`, SHARED_MS, signal, async () =>
        indentedJsonResponse(await stats.summary(onlyCpuAndMemory)),
      );
    }
    default:
      return shared.get(questionOf(path, parseQuery(request.query)), SHARED_MS, signal, (stop) =>
        statsResponse(path, request, cadvisor, shared.lane, stop),
      );
  }
}

function podListResponse(request: RouteRequest, { body, etag }: PreparedList): HttpResponse {
  if (matchesEtag(request.header("If-None-Match"), etag)) return { status: 304, headers: { ETag: etag }, body: "" };
  return jsonResponse(body, { ETag: etag });
}

function routeHealthz(request: RouteRequest, { view }: ReadOnlyContext): HttpResponse {
  const response = healthzResponse(request, view.healthChecks());
  return response.status === 404 || isReading(request) ? response : methodNotAllowed();
}

function routeMetrics(request: RouteRequest, context: ReadOnlyContext): HttpResponse | Promise<HttpResponse> {
  const parts = metricsParts(request.path, context);
  if (!parts) return notFound();
  if (!isReading(request)) return methodNotAllowed();
  return metricsResponse(request, parts, context.shared);
}

/** Parts of a metrics text, and how long it is good for. */
interface MetricsSource {
  /** Identifies the text among all that are shared. */
  name: string;
  ageMs: number;
  parts: (format: TextFormat) => Iterable<string>;
}

function metricsParts(path: string, context: ReadOnlyContext): MetricsSource | undefined {
  const { metrics, probeMetrics, stats } = context;
  switch (path) {
    case "/metrics":
      return {
        name: path,
        ageMs: 0,
        parts: (format) => [
          metricsText(
            metrics().toSorted((a, b) => (a.name < b.name ? -1 : 1)),
            format,
          ),
        ],
      };
    case "/metrics/probes":
      return { name: path, ageMs: 0, parts: (format) => [metricsText(probeMetrics(), format)] };
    case "/metrics/cadvisor":
      return cadvisorMetrics(context);
    case "/metrics/resource":
      return { name: path, ageMs: SHARED_MS, parts: (format) => [stats.resourceMetrics(format)] };
    default:
      return undefined;
  }
}

export const cadvisorMetrics = ({ cadvisor }: Pick<ReadOnlyContext, "cadvisor">): MetricsSource => ({
  name: "/metrics/cadvisor",
  ageMs: SHARED_MS,
  parts: (format) => cadvisor.metrics(format),
});

// Compression runs on a thread of the pool.
const compress = promisify(gzip);

/** The lowest level: half the cost of the others for more than half of their gain. */
const COMPRESSION = { level: 1, chunkSize: 256 * 1024 };

/** Metrics in the format and encoding that the scraper accepts. */
export function metricsResponse(
  request: RouteRequest,
  source: MetricsSource,
  shared: SharedResponses,
): Promise<HttpResponse> {
  const { name, ageMs } = source;
  const format = negotiateTextFormat(request.header("Accept"));
  const headers: Record<string, string> = {
    "Content-Type": TEXT_CONTENT_TYPE[format],
    Vary: "Accept, Accept-Encoding",
  };
  const plain = (signal: AbortSignal) =>
    shared.get(`${name} ${format}`, ageMs, signal, async (stop) => {
      const text = await shared.lane.collect(source.parts(format), stop);
      return { status: 200, headers, body: Buffer.from(text.join("")) };
    });
  if (!acceptsGzip(request.header("Accept-Encoding"))) return plain(request.signal);
  return shared.get(`${name} ${format} gzip`, ageMs, request.signal, async (stop) => {
    const response = await plain(stop);
    if (response.status !== 200) return response;
    const body = await compress(response.body as Uint8Array, COMPRESSION);
    return { status: 200, headers: { ...headers, "Content-Encoding": "gzip" }, body };
  });
}

export function acceptsGzip(acceptEncoding: string | null): boolean {
  return (acceptEncoding ?? "").split(",").some((part) => {
    const [coding = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    return coding === "gzip" && !parameters.some((text) => /^q=0(\.0*)?$/.test(text));
  });
}

/** Go's `strconv.ParseBool`; what it does not know is false, as upstream. */
const isTrue = (text: string | null) => text !== null && /^(1|t|T|TRUE|true|True)$/.test(text);
