import type { CadvisorApi } from "../cadvisor/cadvisor-api.ts";
import {
  type Answer,
  cleanPath,
  jsonAnswer,
  methodNotAllowed,
  movedPermanently,
  notFound,
  type RouteRequest,
  textAnswer,
} from "./answer.ts";
import { indexPage } from "./index-page.ts";
import { isReading, metricsAnswer, type ReadOnlyContext } from "./read-only-routes.ts";
import { parseQuery } from "./stats-routes.ts";

/** The cAdvisor port, 4194: an index page, the JSON API that cAdvisor's clients use, its metrics. [S072] */
export function routeCadvisor(request: RouteRequest, context: ReadOnlyContext): Answer | Promise<Answer> {
  const path = cleanPath(request.path);
  if (path !== request.path) return movedPermanently(path, request.query);
  if (path === "/api" || path.startsWith("/api/")) return routeApi(path, request, context.cadvisor);
  if (!PAGES.has(path)) return notFound();
  if (!isReading(request)) return methodNotAllowed();
  switch (path) {
    case "/healthz":
      return textAnswer(200, "ok");
    case "/metrics":
      return metricsAnswer(request, (format, use) => context.stats.cadvisorMetrics(format, use));
    default:
      return htmlAnswer(indexPage(context.view, readOnlyOrigin(request, context)));
  }
}

/** The host by which we were reached, at the other port. */
function readOnlyOrigin(request: RouteRequest, { readOnlyPort }: ReadOnlyContext): string | undefined {
  const host = /^(\[[\da-fA-F:.]+\]|[\w.-]+)(?::\d+)?$/.exec(request.header("Host") ?? "")?.[1];
  return host && readOnlyPort !== 0 ? `http://${host}:${readOnlyPort}` : undefined;
}

const PAGES = new Set(["/", "/index.html", "/containers/", "/healthz", "/metrics"]);

/** Resources of each version; a later one has those of the earlier ones too. Source: cAdvisor's `api` package. */
export const CADVISOR_RESOURCES: Readonly<Record<string, readonly string[]>> = {
  "v1.0": ["containers", "machine"],
  "v1.1": ["containers", "machine", "subcontainers"],
  "v1.2": ["containers", "machine", "subcontainers", "docker"],
  "v1.3": ["containers", "machine", "subcontainers", "docker"],
  "v2.0": ["version", "attributes", "machine", "spec", "stats", "summary", "storage", "ps"],
  "v2.1": ["version", "attributes", "machine", "spec", "stats", "summary", "storage", "ps"],
};

/** `/api/<version>/<resource>/<name>`. Posted bodies are queries, as cAdvisor's own client sends them: nothing is changed. */
async function routeApi(path: string, request: RouteRequest, cadvisor: CadvisorApi): Promise<Answer> {
  const [version = "", resource = "", ...rest] = path.slice("/api/".length).split("/");
  const resources = Object.hasOwn(CADVISOR_RESOURCES, version) ? CADVISOR_RESOURCES[version] : undefined;
  if (!resources) {
    const versions = Object.keys(CADVISOR_RESOURCES).join(",");
    return textAnswer(version === "" ? 200 : 404, `Supported API versions: ${versions}\n`);
  }
  if (!resources.includes(resource)) {
    return textAnswer(resource === "" ? 200 : 404, `Supported request types: "${resources.join(",")}"\n`);
  }
  const isV2 = version.startsWith("v2.");
  if (!isReading(request) && (isV2 || request.method !== "POST")) return methodNotAllowed();
  const name = `/${rest.join("/")}`.replace(/(?<=.)\/$/, "");
  return isV2 ? routeV2(resource, name, request, cadvisor) : routeV1(resource, name, request, cadvisor);
}

async function routeV1(resource: string, name: string, request: RouteRequest, cadvisor: CadvisorApi): Promise<Answer> {
  if (resource === "machine") return answer(cadvisor.machineInfo());
  const query = { ...parseQuery(request.query), ...(await postedQuery(request)) };
  switch (resource) {
    case "subcontainers": {
      const infos = cadvisor.containers(name, query);
      return infos.length > 0 ? answer(infos) : unknownContainer(name);
    }
    case "docker": {
      const infos = cadvisor.dockerContainers(name.slice(1), query);
      if (name !== "/" && infos.length === 0) return unknownContainer(name);
      return answer(Object.fromEntries(infos.map((info) => [info.name, info])));
    }
    default: {
      const info = cadvisor.container(name, query);
      return info ? answer(info) : unknownContainer(name);
    }
  }
}

async function routeV2(resource: string, name: string, request: RouteRequest, cadvisor: CadvisorApi): Promise<Answer> {
  switch (resource) {
    case "version":
      return answer("");
    case "attributes":
      return answer(cadvisor.attributesV2());
    case "machine":
      return answer(cadvisor.machineInfo());
    case "storage":
      return answer(cadvisor.storageV2());
    case "ps":
      return answer(cadvisor.processes(name));
  }
  const type = request.query.get("type") === "docker" ? "docker" : "name";
  const recursive = request.query.get("recursive") === "true";
  const wanted = type === "docker" ? name.slice(1) : name;
  const found =
    resource === "stats"
      ? cadvisor.statsV2(wanted, type, recursive, parseQuery(request.query))
      : resource === "spec"
        ? cadvisor.specV2(wanted, type, recursive)
        : cadvisor.summaryV2(wanted, type, recursive);
  return Object.keys(found).length > 0 ? answer(found) : unknownContainer(name);
}

/** What cAdvisor's client posts: `{"num_stats": 5}`. A body that is no such thing asks for everything. */
async function postedQuery(request: RouteRequest): Promise<{ numStats?: number }> {
  if (request.method !== "POST") return {};
  try {
    const body: unknown = JSON.parse(await request.text());
    const wanted = body && typeof body === "object" && "num_stats" in body ? Number(body.num_stats) : 0;
    return wanted > 0 ? { numStats: wanted } : {};
  } catch {
    return {};
  }
}

const answer = (value: unknown) => jsonAnswer(JSON.stringify(value));

const unknownContainer = (name: string) => textAnswer(404, `unknown container ${JSON.stringify(name)}\n`);

function htmlAnswer(body: string): Answer {
  const headers = {
    "Content-Type": "text/html; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
  };
  return { status: 200, headers, body };
}
