import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type CoreEventList, EVENT_FIELDS } from "../base/api/event.ts";
import { parseFieldSelector } from "../base/api/meta.ts";
import type { HealthCheck } from "../base/model/health-check.ts";
import { formatDuration } from "../base/text/duration.ts";
import type { CadvisorApi, StatsQuery } from "../stats/cadvisor/cadvisor-api.ts";
import type { ContainerInfo } from "../stats/cadvisor/container-info.ts";
import {
  type Metric,
  metricsText,
  negotiateTextFormat,
  TEXT_CONTENT_TYPE,
  type TextFormat,
} from "../stats/metrics/metric.ts";
import type { NodeStats } from "../stats/node-stats.ts";
import { type PodListRenderer, parsePodSelectors, runningPodListText } from "./pod-list.ts";
import {
  acceptsGzip,
  acceptsJson,
  cleanPath,
  debugDisabled,
  type HttpResponse,
  indentedJsonResponse,
  isReading,
  jsonResponse,
  matchesEtag,
  methodNotAllowed,
  movedPermanently,
  NOSNIFF,
  notAcceptable,
  notFound,
  type RouteRequest,
  resourceNotFound,
  rootOf,
  textResponse,
} from "./request-handler.ts";
import type { SharedResponses } from "./shared-responses.ts";
import type { KubeletView } from "./view.ts";

/** How long measured responses are shared by all clients. */
export const SHARED_MS = 1_000;

export interface ReadOnlyContext {
  view: KubeletView;
  podList: PodListRenderer;
  stats: NodeStats;
  /** Shared by concurrent requests. */
  shared: SharedResponses;
  /** Ports for links: of the read-only server, and the one that serves the page over TLS; 0 = none. */
  ports: { readOnly: number; securePage: number };
  /** `/stats/…` without the summary, and the cAdvisor port. */
  cadvisor: CadvisorApi;
  node: () => Promise<object>;
  /** `shown`: `/metrics`, in any order. `probes`: `/metrics/probes`. */
  metrics: { shown(): readonly Metric[]; probes(): readonly Metric[] };
}

/** A request that has found its route. */
interface Call {
  request: RouteRequest;
  context: ReadOnlyContext;
  path: string;
  /** Parameters of the path. */
  parts: readonly string[];
}

type Handler = (call: Call) => HttpResponse | Promise<HttpResponse>;

const byName = (a: Metric, b: Metric) => (a.name < b.name ? -1 : 1);

/** The routes of the read-only port; parameters in braces. `docs/openapi.yaml` describes each. */
const ROUTES: Readonly<Record<string, Handler>> = {
  "/healthz": ({ request, context }) => healthzResponse(request, context.view.healthChecks()),
  "/healthz/{check}": ({ request, context }) => healthzResponse(request, context.view.healthChecks()),
  "/pods": podList,
  "/runningpods/": (call) => inTurn(call, 0, () => jsonResponse(runningPodListText(call.context.view.podFacts()))),
  "/api/v1/events": eventList,
  "/api/v1/namespaces/{namespace}/events": eventList,
  "/configz": ({ context }) => jsonResponse(JSON.stringify({ kubeletconfig: context.view.config() }), NOSNIFF),
  "/flagz": ({ context, path }) => textPage(path, context.view.flags()),
  "/statusz": ({ context, path }) =>
    textPage(path, [
      `Started: ${new Date(performance.timeOrigin).toUTCString()}`,
      `Up: ${formatDuration(Math.round(performance.now()))}`,
      `Binary version: ${context.view.version()}`,
    ]),
  "/node": ({ request, context, path }) =>
    context.shared.get(path, 0, request.signal, async () => jsonResponse(JSON.stringify(await context.node()))),
  "/spec/": (call) => inTurn(call, SHARED_MS, () => indentedJsonResponse(call.context.cadvisor.facts.machineInfo())),
  "/stats/": ofContainer((cadvisor, query) => cadvisor.container("/", query)),
  "/stats/summary": ({ request, context: { shared, stats } }) => {
    const onlyCpuAndMemory = isTrue(request.query.get("only_cpu_and_memory"));
    return shared.get(`summary ${onlyCpuAndMemory}`, SHARED_MS, request.signal, async () =>
      indentedJsonResponse(await stats.summary(onlyCpuAndMemory)),
    );
  },
  "/stats/container": containerQuery,
  "/stats/{pod}/{container}": ofContainer((cadvisor, query, [pod = "", container = ""]) =>
    cadvisor.kubeletContainer({ namespace: "default", pod, container }, query),
  ),
  "/stats/{namespace}/{pod}/{uid}/{container}": ofContainer(
    (cadvisor, query, [namespace = "", pod = "", , container = ""]) =>
      cadvisor.kubeletContainer({ namespace, pod, container }, query),
  ),
  "/metrics": metrics("/metrics", 0, ({ metrics: { shown } }, format) => metricsText(shown().toSorted(byName), format)),
  "/metrics/cadvisor": cadvisorMetrics,
  "/metrics/resource": metrics("/metrics/resource", SHARED_MS, ({ stats }, format) => [stats.resourceMetrics(format)]),
  "/metrics/probes": metrics("/metrics/probes", 0, (context, format) => metricsText(context.metrics.probes(), format)),
};

export const READ_ONLY_PATHS: readonly string[] = Object.keys(ROUTES);

/** Roots that go-restful serves upstream: JSON only, with error texts of their own, with a slash at the end or without. */
const RESOURCE_ROOTS = new Set(["pods", "node", "spec", "stats", "configz", "runningpods"]);
const TEXT_ROOTS = new Set(["metrics", "healthz", "flagz", "statusz"]);
/** Upstream answers these on the authenticated port only. */
const DEBUG_ROOTS = new Set(["run", "exec", "attach", "portForward", "containerLogs", "logs", "debug"]);

const PATTERNS = Object.entries(ROUTES).map(([path, handler]) => {
  const pattern = path.replace(/\/$/, "").replace(/\{\w+\}/g, "([^/]+)");
  return { pattern: new RegExp(`^${pattern}${RESOURCE_ROOTS.has(rootOf(path)) ? "/?" : ""}$`), handler };
});

/** A page for people. Source: newer kubelets' zpages. */
const textPage = (path: string, lines: readonly string[]): HttpResponse => {
  const title = `kubelet ${path.slice(1)}\nWarning: this page is for people, and its format may change.`;
  return textResponse(200, `\n${title}\n\n${lines.join("\n")}\n`, NOSNIFF);
};

const isEvents = (path: string) => /^\/api\/v1\/(namespaces\/[^/]+\/)?events$/.test(path);

/**
 * The read-only port, 10255. Without side effects: GET and HEAD are answered, everything else is 404 or 405. Paths,
 * codes, texts and content types are those of kubelet 1.20, but HEAD is answered and `/runningpods/`
 * and `/configz` are there too.
 */
export function routeReadOnly(request: RouteRequest, context: ReadOnlyContext): HttpResponse | Promise<HttpResponse> {
  const path = cleanPath(request.path);
  if (path !== request.path) return movedPermanently(path, request.query);
  const root = rootOf(path);
  if (DEBUG_ROOTS.has(root)) {
    if (path === `/${root}`) return movedPermanently(`${path}/`, request.query);
    return root === "debug" && !path.startsWith("/debug/pprof/") ? notFound() : debugDisabled();
  }
  // Served with a slash only.
  if (`${path}/` in ROUTES) return movedPermanently(`${path}/`, request.query);
  const isResource = RESOURCE_ROOTS.has(root);
  for (const { pattern, handler } of PATTERNS) {
    const found = pattern.exec(path);
    if (!found) continue;
    if (!isReading(request)) return methodNotAllowed();
    const isJson = isResource || root === "api";
    if (isJson && !acceptsJson(request.header("Accept"))) return notAcceptable();
    return handler({ request, context, path, parts: found.slice(1) });
  }
  return isResource ? resourceNotFound() : notFound();
}

/** Whether anything below this path's root is served, on the authenticated port at least. */
export function isKnownPath(path: string): boolean {
  const root = rootOf(path);
  if (root === "debug") return path.startsWith("/debug/pprof/");
  return RESOURCE_ROOTS.has(root) || DEBUG_ROOTS.has(root) || TEXT_ROOTS.has(root) || isEvents(path);
}

/** Makes a response that all clients of its path share, as one piece of work. */
const inTurn = ({ request, context: { shared }, path }: Call, ageMs: number, make: () => HttpResponse) =>
  shared.get(path, ageMs, request.signal, () => shared.lane.run(make));

/** A body with an ETag; 304 without it for a client that has it. */
function taggedResponse(request: RouteRequest, body: string | Uint8Array, etag: string): HttpResponse {
  if (matchesEtag(request.header("If-None-Match"), etag)) return { status: 304, headers: { ETag: etag }, body: "" };
  return jsonResponse(body, { ETag: etag });
}

function podList({ request, context: { view, podList, shared } }: Call): HttpResponse | Promise<HttpResponse> {
  const matches = parsePodSelectors(request.query);
  if (!matches) {
    const { body, etag } = podList.render(view.pods());
    return taggedResponse(request, body, etag);
  }
  if ("problem" in matches) return textResponse(400, `${matches.problem}\n`);
  const selectors = ["labelSelector", "fieldSelector"].map((name) => request.query.get(name));
  const question = JSON.stringify(["/pods", podList.isFull, ...selectors, request.header("If-None-Match")]);
  return shared.get(question, 0, request.signal, () =>
    shared.lane.run(() => {
      const { body, etag } = podList.render(view.pods().filter(matches));
      return taggedResponse(request, body, etag);
    }),
  );
}

/** An EventList, of one namespace or of all: the oldest last occurrence first. */
function eventList({ request, context: { view, shared }, path, parts: [namespace] }: Call): Promise<HttpResponse> {
  const question = `${path} ${request.query} ${request.header("If-None-Match")}`;
  return shared.get(question, 0, request.signal, () =>
    shared.lane.run(() => {
      const filter = parseFieldSelector(request.query.get("fieldSelector") ?? "", EVENT_FIELDS);
      if ("problem" in filter) {
        return textResponse(400, `${filter.problem}; known: ${Object.keys(EVENT_FIELDS).join(", ")}\n`);
      }
      const { revision, items } = view.events();
      const body = JSON.stringify({
        kind: "EventList",
        apiVersion: "v1",
        metadata: { resourceVersion: String(revision) },
        items: items.filter(
          (event) => (namespace ?? event.metadata.namespace) === event.metadata.namespace && filter(event),
        ),
      } satisfies CoreEventList);
      return taggedResponse(request, body, `"${Bun.hash(body).toString(16)}"`);
    }),
  );
}

/**
 * `/healthz` and `/healthz/<check>`: 200 `ok`, or 500 and the reason. `?verbose` lists every check, `?exclude=<check>`
 * skips one. Source: apiserver's healthz package.
 */
export function healthzResponse(request: RouteRequest, checks: readonly HealthCheck[]): HttpResponse {
  if (request.path !== "/healthz") {
    const check = checks.find(({ name }) => request.path === `/healthz/${name}`);
    if (!check) return notFound();
    return check.ok ? textResponse(200, "ok") : textResponse(500, `internal server error: ${check.message}\n`, NOSNIFF);
  }
  const names = request.query.getAll("exclude").flatMap((text) => text.split(","));
  const excluded = new Set(names.filter((name) => name !== ""));
  const failed = checks.some(({ name, ok }) => !ok && !excluded.has(name));
  if (!failed && !request.query.has("verbose")) return textResponse(200, "ok", NOSNIFF);
  const lines = checks.map(({ name, ok, message }) => {
    if (excluded.has(name)) return `[+]${name} excluded: ok\n`;
    return ok ? `[+]${name} ok\n` : `[-]${name} failed: ${message}\n`;
  });
  const unknown = [...excluded].filter((name) => !checks.some((check) => check.name === name));
  if (unknown.length > 0) {
    const quoted = unknown.map((name) => JSON.stringify(name)).join(",");
    lines.push(`warn: some health checks cannot be excluded: no matches for ${quoted}\n`);
  }
  return textResponse(failed ? 500 : 200, `${lines.join("")}healthz check ${failed ? "failed" : "passed"}\n`, NOSNIFF);
}

/** Parameters of cAdvisor's version 1 resources. Source: cAdvisor's `ContainerInfoRequest`, kubelet's `StatsRequest`. */
interface ContainerQuery extends StatsQuery {
  containerName: string;
  /** Includes all cgroups below it. */
  subcontainers: boolean;
}

/** A GET has in its query what clients post: `num_stats`, `containerName`, `subcontainers`. */
export function parseQuery(query: URLSearchParams): ContainerQuery {
  return {
    numStats: Number(query.get("num_stats") ?? query.get("count") ?? 0) || 0,
    containerName: query.get("containerName") || "/",
    subcontainers: query.get("subcontainers") === "true",
  };
}

/** The parameters that change the response, as the key under which it is shared. */
export function questionOf(path: string, query: ContainerQuery): string {
  const numStats = Math.max(0, Math.min(query.numStats, 2));
  return JSON.stringify([path, query.containerName, query.subcontainers, numStats]);
}

const found = (info: object | undefined) =>
  info ? indentedJsonResponse(info) : textResponse(404, "no matching container");

function ofContainer(
  find: (cadvisor: CadvisorApi, query: ContainerQuery, parts: readonly string[]) => object | undefined,
): Handler {
  return ({ request, context: { shared, stats, cadvisor }, path, parts }) => {
    const query = parseQuery(request.query);
    return shared.get(questionOf(path, query), SHARED_MS, request.signal, async () => {
      await stats.refreshOthers();
      return shared.lane.run(() => found(find(cadvisor, query, parts)));
    });
  };
}

/** `/stats/container`: one cgroup under its name, or with all below it. */
function containerQuery(call: Call): HttpResponse | Promise<HttpResponse> {
  const { request, context, path } = call;
  const { shared, stats, cadvisor } = context;
  const query = parseQuery(request.query);
  const one = ofContainer(() => {
    const info = cadvisor.container(query.containerName, query);
    return info && { [info.name]: info };
  });
  if (!query.subcontainers) return one(call);
  return shared.get(questionOf(path, query), SHARED_MS, request.signal, async (stop) => {
    await stats.refreshOthers();
    const entries = await shared.lane.collect(jsonEntries(cadvisor.containers(query.containerName, query)), stop);
    return entries.length === 0 ? found(undefined) : jsonResponse(`{\n${entries.join(",\n")}\n}`);
  });
}

/** Members of an object by name, indented by one space as `JSON.stringify(…, null, 1)` does it. */
function* jsonEntries(infos: Iterable<ContainerInfo>): Generator<string, void> {
  for (const info of infos) {
    yield ` ${JSON.stringify(info.name)}: ${JSON.stringify(info, null, 1).replaceAll("\n", "\n ")}`;
  }
}

// Compression runs on a thread of the pool.
const compress = promisify(gzip);

/** The lowest level: half the cost of the others for more than half of their gain. */
const COMPRESSION = { level: 1, chunkSize: 256 * 1024 };

/**
 * Metrics in the format and encoding that the scraper accepts.
 * @param name identifies the text among all that are shared
 * @param ageMs how long it is good
 * @param refresh awaited before the text is computed
 */
function metrics(
  name: string,
  ageMs: number,
  parts: (context: ReadOnlyContext, format: TextFormat) => Iterable<string>,
  refresh?: (context: ReadOnlyContext) => Promise<void>,
): (call: Pick<Call, "request" | "context">) => Promise<HttpResponse> {
  return ({ request, context }) => {
    const { shared } = context;
    const format = negotiateTextFormat(request.header("Accept"));
    const headers = { "Content-Type": TEXT_CONTENT_TYPE[format], Vary: "Accept, Accept-Encoding" };
    const plain = (signal: AbortSignal) =>
      shared.get(`${name} ${format}`, ageMs, signal, async (stop) => {
        await refresh?.(context);
        const text = await shared.lane.collect(parts(context, format), stop);
        return { status: 200, headers, body: Buffer.from(text.join("")) };
      });
    if (!acceptsGzip(request.header("Accept-Encoding"))) return plain(request.signal);
    return shared.get(`${name} ${format} gzip`, ageMs, request.signal, async (stop) => {
      const response = await plain(stop);
      if (response.status !== 200) return response;
      const body = await compress(response.body as Uint8Array, COMPRESSION);
      return { status: 200, headers: { ...headers, "Content-Encoding": "gzip" }, body };
    });
  };
}

/** `/metrics/cadvisor`, and `/metrics` of the cAdvisor port. */
export function cadvisorMetrics(call: Pick<Call, "request" | "context">): Promise<HttpResponse> {
  return metrics(
    "/metrics/cadvisor",
    SHARED_MS,
    ({ cadvisor }, format) => cadvisor.metrics(format),
    ({ stats }) => stats.refreshOthers(),
  )(call);
}

/** Go's `strconv.ParseBool`; what it does not know is false, as upstream. */
const isTrue = (text: string | null) => text !== null && /^(1|t|T|TRUE|true|True)$/.test(text);
