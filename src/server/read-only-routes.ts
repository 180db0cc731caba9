import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { CadvisorApi } from "../cadvisor/cadvisor-api.ts";
import type { MetricsRegistry } from "../metrics/metrics-registry.ts";
import { negotiateTextFormat, renderFamilies, TEXT_CONTENT_TYPE, type TextFormat } from "../metrics/prometheus-text.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import {
  type Answer,
  acceptsJson,
  cleanPath,
  debugDisabled,
  indentedJsonAnswer,
  jsonAnswer,
  matchesEtag,
  methodNotAllowed,
  movedPermanently,
  notAcceptable,
  notFound,
  type RouteRequest,
  resourceNotFound,
} from "./answer.ts";
import { eventListAnswer } from "./event-list.ts";
import { healthzAnswer } from "./healthz.ts";
import { type PodListRenderer, runningPodListText } from "./pod-list.ts";
import { isStatsResource, statsAnswer } from "./stats-routes.ts";
import type { KubeletView } from "./view.ts";

/** Everything the routes of the read-only port answer from. */
export interface ReadOnlyContext {
  view: KubeletView;
  podList: PodListRenderer;
  stats: NodeStats;
  /** Where the read-only port listens, for links to it; 0 = nowhere. */
  readOnlyPort: number;
  /** `/stats/…` beside the summary, and the cAdvisor port. */
  cadvisor: CadvisorApi;
  /** `/node`. */
  node: () => Promise<object>;
  /** `/metrics`; each is asked in turn, families sorted over all. */
  metrics: readonly Pick<MetricsRegistry, "collect">[];
  /** `/metrics/probes`. */
  probeMetrics: Pick<MetricsRegistry, "collect">;
}

/** Every path of the read-only port; parameters in braces. `docs/openapi.yaml` tells of each. */
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

/** Roots that go-restful serves upstream: JSON only, and texts of their own for what they do not know. */
const RESOURCE_ROOTS = new Set(["pods", "node", "spec", "stats", "configz", "runningpods"]);
/** Upstream answers these on the authenticated port only. */
const DEBUG_ROOTS = new Set(["run", "exec", "attach", "portForward", "containerLogs", "logs", "debug"]);
/** Answered with and sent to their slash form. */
const SLASH_FORM = new Set(["/spec", "/stats", "/runningpods"]);

/**
 * The read-only port, 10255. Without side effects: GET and HEAD are answered, everything else is 404 or 405. Paths,
 * codes, texts and content types as recorded from kubelet 1.20 (oracle 90), but HEAD is answered and `/runningpods/`
 * and `/configz` are there too.
 */
export function routeReadOnly(request: RouteRequest, context: ReadOnlyContext): Answer | Promise<Answer> {
  const path = cleanPath(request.path);
  if (path !== request.path) return movedPermanently(path, request.query);
  const root = path.split("/", 2)[1]!;
  if (DEBUG_ROOTS.has(root)) {
    if (path === `/${root}`) return movedPermanently(`${path}/`, request.query);
    return root === "debug" && !path.startsWith("/debug/pprof/") ? notFound() : debugDisabled();
  }
  if (root === "metrics" || root === "healthz") {
    const answer = root === "metrics" ? routeMetrics(request, context) : routeHealthz(request, context);
    return answer;
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

function resource(path: string, request: RouteRequest, context: ReadOnlyContext): Answer | Promise<Answer> {
  const { view, stats } = context;
  switch (path.split("/").slice(1, 3).join("/").replace(/\/$/, "")) {
    case "pods": {
      const { body, etag } = context.podList.render(view.podsRevision(), () => view.pods());
      if (matchesEtag(request.header("If-None-Match"), etag)) return { status: 304, headers: { ETag: etag }, body: "" };
      return jsonAnswer(body, { ETag: etag });
    }
    case "api/v1":
      return eventListAnswer(request, view, NAMESPACED_EVENTS.exec(path)?.[1]);
    case "runningpods":
      return jsonAnswer(runningPodListText(view.podFacts()));
    case "configz":
      return jsonAnswer(JSON.stringify({ kubeletconfig: view.config() }), { "X-Content-Type-Options": "nosniff" });
    case "node":
      return context.node().then((node) => jsonAnswer(JSON.stringify(node)));
    case "spec":
      return indentedJsonAnswer(stats.machineInfo());
    case "stats/summary":
      return stats.summary(isTrue(request.query.get("only_cpu_and_memory"))).then(indentedJsonAnswer);
    default:
      return statsAnswer(path, request, context.cadvisor);
  }
}

function routeHealthz(request: RouteRequest, { view }: ReadOnlyContext): Answer {
  const answer = healthzAnswer(request, view.healthChecks());
  return answer.status === 404 || isReading(request) ? answer : methodNotAllowed();
}

function routeMetrics(request: RouteRequest, context: ReadOnlyContext): Answer | Promise<Answer> {
  const render = metricsRenderer(request.path, context);
  if (!render) return notFound();
  if (!isReading(request)) return methodNotAllowed();
  return metricsAnswer(request, render);
}

/** Text, or bytes that may only be read, and only as long as they are lent. */
type MetricsPage = string | Uint8Array<ArrayBuffer>;

/** Lends a page to `use` until its promise is settled. */
type LendPage = <T>(format: TextFormat, use: (page: MetricsPage) => Promise<T>) => Promise<T>;

function metricsRenderer(path: string, { metrics, probeMetrics, stats }: ReadOnlyContext): LendPage | undefined {
  switch (path) {
    case "/metrics":
      return (format, use) => {
        const families = metrics.flatMap((registry) => registry.collect());
        const sorted = families.sort((a, b) => (a.name < b.name ? -1 : 1));
        return use(renderFamilies(sorted, format));
      };
    case "/metrics/probes":
      return (format, use) => use(renderFamilies(probeMetrics.collect(), format));
    case "/metrics/cadvisor":
      return (format, use) => stats.cadvisorMetrics(format, use);
    case "/metrics/resource":
      return async (format, use) => use(await stats.resourceMetrics(format));
    default:
      return undefined;
  }
}

// On a thread of the pool: compressing megabytes would hold up the supervision of pods.
const compress = promisify(gzip);
/** Of pages made once for several askers. */
const compressedPages = new WeakMap<Uint8Array, Promise<Buffer<ArrayBuffer>>>();

function compressed(page: MetricsPage): Promise<Buffer<ArrayBuffer>> {
  if (typeof page === "string") return compress(page, COMPRESSION);
  let made = compressedPages.get(page);
  if (!made) {
    made = compress(page, COMPRESSION);
    compressedPages.set(page, made);
  }
  return made;
}

/** The lowest level: half of the others' cost for a little more than half of their gain. */
const COMPRESSION = { level: 1, chunkSize: 256 * 1024 };

/** A listener may send it for as long as its reader takes. */
const copied = async (page: MetricsPage) => (typeof page === "string" ? page : page.slice());

/** Metrics in the format and encoding the scraper asked for. */
export async function metricsAnswer(request: RouteRequest, lend: LendPage): Promise<Answer> {
  const format = negotiateTextFormat(request.header("Accept"));
  const headers: Record<string, string> = {
    "Content-Type": TEXT_CONTENT_TYPE[format],
    Vary: "Accept, Accept-Encoding",
  };
  if (!acceptsGzip(request.header("Accept-Encoding"))) {
    return { status: 200, headers, body: await lend(format, copied) };
  }
  const body = await lend(format, compressed);
  return { status: 200, headers: { ...headers, "Content-Encoding": "gzip" }, body };
}

export function acceptsGzip(acceptEncoding: string | null): boolean {
  return (acceptEncoding ?? "").split(",").some((part) => {
    const [coding = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    return coding === "gzip" && !parameters.some((text) => /^q=0(\.0*)?$/.test(text));
  });
}

/** Go's `strconv.ParseBool`; what it does not know is false, as upstream. */
const isTrue = (text: string | null) => text !== null && /^(1|t|T|TRUE|true|True)$/.test(text);
