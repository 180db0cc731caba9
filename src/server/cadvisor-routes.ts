import { isIP } from "node:net";
import { isRecord, jsonIfValid } from "../base/text/json.ts";
import type { ContainerInfo } from "../stats/cadvisor/container-info.ts";
import { cadvisorMetrics, parseQuery, questionOf, type ReadOnlyContext, SHARED_MS } from "./read-only-routes.ts";
import {
  cleanPath,
  escapeHtml,
  type HttpResponse,
  htmlResponse,
  isLoopback,
  isReading,
  jsonResponse,
  methodNotAllowed,
  movedPermanently,
  notFound,
  type RouteRequest,
  textResponse,
} from "./request-handler.ts";
import type { KubeletView } from "./view.ts";

/** The cAdvisor port, 4194: an index page, cAdvisor's JSON API 1.x, its metrics. */
export function routeCadvisor(request: RouteRequest, context: ReadOnlyContext): HttpResponse | Promise<HttpResponse> {
  const path = cleanPath(request.path);
  if (path !== request.path) return movedPermanently(path, request.query);
  if (path === "/api" || path.startsWith("/api/")) return routeApi(path, request, context);
  if (!PAGES.has(path)) return notFound();
  if (!isReading(request)) return methodNotAllowed();
  switch (path) {
    case "/healthz":
      return textResponse(200, "ok");
    case "/metrics":
      return cadvisorMetrics({ request, context });
    default: {
      const origin = (scheme: string, port: number) => {
        const host = hostName(request.header("Host"));
        return host && port !== 0 ? `${scheme}://${host}:${port}` : undefined;
      };
      const { view, ports } = context;
      return htmlResponse(200, indexPage(view, origin("http", ports.readOnly), origin("https", ports.securePage)));
    }
  }
}

/** Host of a Host header without its port; undefined when it is malformed. */
const hostName = (host: string | null): string | undefined =>
  /^(\[[\da-fA-F:.]+\]|[\w.-]+)(?::\d+)?$/.exec(host ?? "")?.[1];

const PAGES = new Set(["/", "/index.html", "/containers/", "/healthz", "/metrics"]);

/** Resources of each version. Source: cAdvisor's `api` package; versions 2.x are not served. */
export const CADVISOR_RESOURCES: Readonly<Record<string, readonly string[]>> = {
  "v1.0": ["containers", "machine"],
  "v1.1": ["containers", "machine", "subcontainers"],
  "v1.2": ["containers", "machine", "subcontainers", "docker"],
  "v1.3": ["containers", "machine", "subcontainers", "docker"],
};

/** `/api/<version>/<resource>/<name>`. A posted body is a query, as cAdvisor's own client sends it; it modifies nothing. */
async function routeApi(
  path: string,
  request: RouteRequest,
  { cadvisor, shared, stats }: ReadOnlyContext,
): Promise<HttpResponse> {
  const [version = "", resource = "", ...rest] = path.slice("/api/".length).split("/");
  const resources = Object.hasOwn(CADVISOR_RESOURCES, version) ? CADVISOR_RESOURCES[version] : undefined;
  if (!resources) {
    const versions = Object.keys(CADVISOR_RESOURCES).join(",");
    return textResponse(version === "" ? 200 : 404, `Supported API versions: ${versions}\n`);
  }
  if (!resources.includes(resource)) {
    return textResponse(resource === "" ? 200 : 404, `Supported request types: "${resources.join(",")}"\n`);
  }
  if (!isReading(request) && request.method !== "POST") return methodNotAllowed();
  const name = `/${rest.join("/")}`.replace(/(?<=.)\/$/, "");
  const query = { ...parseQuery(request.query), ...(await postedQuery(request)), containerName: name };
  return shared.get(questionOf(`${version}/${resource}`, query), SHARED_MS, request.signal, async (stop) => {
    await stats.refreshOthers();
    const { lane } = shared;
    switch (resource) {
      case "machine":
        return lane.run(() => jsonResponse(JSON.stringify(cadvisor.facts.machineInfo())));
      case "subcontainers": {
        const infos = await lane.collect(jsonTexts(cadvisor.containers(name, query), false), stop);
        return infos.length > 0 ? jsonResponse(`[${infos.join(",")}]`) : unknownContainer(name);
      }
      case "docker": {
        const entries = await lane.collect(jsonTexts(cadvisor.dockerContainers(name.slice(1), query), true), stop);
        return name !== "/" && entries.length === 0 ? unknownContainer(name) : jsonResponse(`{${entries.join(",")}}`);
      }
      default:
        return lane.run(() => {
          const info = cadvisor.container(name, query);
          return info ? jsonResponse(JSON.stringify(info)) : unknownContainer(name);
        });
    }
  });
}

function* jsonTexts(infos: Iterable<ContainerInfo>, isNamed: boolean): Generator<string, void> {
  for (const info of infos) yield `${isNamed ? `${JSON.stringify(info.name)}:` : ""}${JSON.stringify(info)}`;
}

/** The query that cAdvisor's client posts: `{"num_stats": 5}`. Another body asks for all instants. */
async function postedQuery(request: RouteRequest): Promise<{ numStats?: number }> {
  const body = request.method === "POST" ? jsonIfValid(await request.text()) : undefined;
  const wanted = isRecord(body) ? Number(body.num_stats) : 0;
  return wanted > 0 ? { numStats: wanted } : {};
}

const unknownContainer = (name: string) => textResponse(404, `unknown container ${JSON.stringify(name)}\n`);

const LINKS = [
  ["/api/v1.3/machine", "machine: processors, memory, disks, network devices"],
  ["/api/v1.3/containers/", "node total and its control groups"],
  ["/api/v1.3/subcontainers/", "every control group"],
  ["/api/v1.3/docker/", "every container of the engine"],
  ["/metrics", "metrics for Prometheus"],
  ["/healthz", "health of this port"],
] as const;

const READ_ONLY_LINKS = [
  ["/node", "the node: capacity, allocatable resources, pressure"],
  ["/pods", "pods with their status"],
  ["/stats/summary", "usage of node, pods and volumes"],
] as const;

/** Links to the paths of the cAdvisor port, and the running pods. Origins: as the client would reach them; undefined for a port that is off. */
function indexPage(view: KubeletView, readOnlyOrigin: string | undefined, pageOrigin?: string): string {
  const node = escapeHtml(view.nodeName());
  const links = [
    ...(pageOrigin
      ? [link(pageOrigin, "/", "the page of this node; <code>kubelet-ts page</code> prints a link that logs in")]
      : []),
    ...LINKS.map(([path, text]) => link("", path, text)),
    ...(readOnlyOrigin ? READ_ONLY_LINKS.map(([path, text]) => link(readOnlyOrigin, path, text)) : []),
  ];
  const pods = view
    .podFacts()
    .map((pod) => ({ title: `${pod.namespace}/${pod.name}`, containers: pod.containers }))
    .toSorted((a, b) => (a.title < b.title ? -1 : 1))
    .map(({ title, containers }) => `<li>${escapeHtml(title)}<ul>${containers.map(containerItem).join("")}</ul></li>`);
  return toHtml(
    `${node} - kubelet-ts`,
    `<h1>${node}</h1>
<h2>What to ask for</h2>
<ul>${links.join("")}</ul>
<h2>Pods</h2>
${pods.length > 0 ? `<ul>${pods.join("")}</ul>` : "<p>No pod runs.</p>"}`,
  );
}

const toHtml = (title: string, content: string) => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style>:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem}</style></head>
<body>
${content}
</body>
</html>
`;

const link = (origin: string, path: string, text: string) =>
  `<li><a href="${escapeHtml(origin + path)}">${escapeHtml(path)}</a> ${text}</li>`;

const containerItem = ({ name, dockerName }: { name: string; dockerName: string }) =>
  `<li><a href="/api/v1.3/docker/${escapeHtml(encodeURIComponent(dockerName))}">${escapeHtml(name)}</a></li>`;

interface PagePort {
  address: string;
  /** 0 = off. */
  port: number;
  /** Name by which other machines may know this one. */
  nodeName: string;
}

/** Address of the page as the client of another port would reach it, by its Host header; undefined when there is none. */
export function pageAddress(host: string | null, { address, port }: Omit<PagePort, "nodeName">): string | undefined {
  const name = hostName(host);
  if (port === 0 || name === undefined) return undefined;
  return isLoopback(address) ? `http://localhost:${port}/` : `https://${name}:${port}/`;
}

/** The response to a browser that opens the root of a port without a page; undefined for other clients. */
export function pageHint({ method, header }: RouteRequest, page: PagePort): HttpResponse | undefined {
  if (method !== "GET" || !/\btext\/html\b/.test(header("Accept") ?? "")) return undefined;
  const link = pageAddress(header("Host"), page);
  if (link === undefined) return undefined;
  const host = hostName(header("Host")) ?? "";
  const machine = host === "localhost" || isIP(host.replace(/[[\]]/g, "")) ? page.nodeName : host;
  const tunnel = isLoopback(page.address)
    ? `<p>From another machine: <code>ssh -L ${page.port}:localhost:${page.port} ${escapeHtml(machine)}</code></p>`
    : "";
  const content = `<h1>This port answers programs</h1>
<p>The page of this node: <a href="${escapeHtml(link)}">${escapeHtml(link)}</a></p>
${tunnel}`;
  return htmlResponse(404, toHtml("kubelet-ts", content));
}
