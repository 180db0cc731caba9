import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import type { Pod } from "../../base/api/pod.ts";
import type { Service } from "../../base/api/service.ts";
import { findContainer } from "../../base/model/pod.ts";
import { findRunningContainer } from "../../plan/status/log-container.ts";
import { listOf } from "../../server/channel-protocol.ts";
import { type PodStreams, parseLogQuery, type StreamRefusal } from "../../server/pod-streams.ts";
import type { WebSocketConnection } from "../../server/websocket.ts";
import { ApiError, badRequest, internalError } from "../api-error.ts";
import type { ApiRequest, ApiResponse, RequestInfo } from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import type { ApiObject } from "../object-store.ts";
import type { LocalApi } from "./local-api.ts";

const CONTAINER_ANNOTATION = "kubectl.kubernetes.io/default-container";

/** `log`, `exec`, `attach` and `portforward` of pods. */
export function podRoutes(api: Pick<LocalApi, "find">, streams: PodStreams): ExtraRoute[] {
  const route = (
    subresource: string,
    kind: string,
    verbs: readonly string[],
    handle: (request: ApiRequest, pod: Pod) => ApiResponse | Promise<ApiResponse>,
  ): ExtraRoute => ({
    group: "",
    version: "v1",
    name: `pods/${subresource}`,
    kind,
    namespaced: true,
    verbs,
    handle: async (request, info) => handle(request, (await api.find("pods", info)) as unknown as Pod),
  });
  const command = (what: "exec" | "attach") => (request: ApiRequest, pod: Pod) => {
    const container = containerOf(pod, request.query);
    if (what === "exec" && !request.query.has("command")) throw badRequest("you must specify at least one command");
    if (!findRunningContainer(pod, container)) {
      const why = pod.status?.message ? `: the pod ${pod.status.message}` : "";
      throw badRequest(`container ${container} of pod ${pod.metadata.name} is not running${why}`);
    }
    return orRefuse(streams.command(what, pod, container, request, request.user));
  };
  const streaming = ["create", "get"];
  return [
    route("log", "Pod", ["get"], (request, pod) => log(request, pod, streams)),
    route("exec", "PodExecOptions", streaming, command("exec")),
    route("attach", "PodAttachOptions", streaming, command("attach")),
    route("portforward", "PodPortForwardOptions", streaming, (request, pod) =>
      orRefuse(streams.portForward(pod, request, request.user)),
    ),
  ];
}

/** The container a request means. Source: kubelet's and apiserver's `LogLocation`. */
function containerOf({ metadata, spec }: Pod, query: URLSearchParams): string {
  const name = query.get("container") || metadata.annotations?.[CONTAINER_ANNOTATION] || "";
  if (name === "") {
    if (spec.containers.length === 1) return spec.containers[0]!.name;
    const names = spec.containers.map((container) => container.name).join(" ");
    throw badRequest(`a container name must be specified for pod ${metadata.name}, choose one of: [${names}]`);
  }
  if (findContainer(spec, name)) return name;
  throw badRequest(`container ${name} is not valid for pod ${metadata.name}`);
}

const BASE64 = "base64.binary.k8s.io";

async function log(request: ApiRequest, pod: Pod, streams: PodStreams): Promise<ApiResponse> {
  const query = parseLogQuery(request.query);
  if ("problem" in query) throw badRequest("the query of the log is not valid");
  const container = containerOf(pod, request.query);
  const open = async (signal: AbortSignal) => {
    const found = await streams.log(pod, container, query, signal).catch((error: Error) => {
      throw internalError(error.message);
    });
    return orRefuse(found).chunks;
  };
  if (request.upgrade !== "websocket")
    return { status: 200, headers: { "Content-Type": "text/plain" }, chunks: await open(request.signal) };
  // Its pieces are messages. Source: apimachinery's `wsstream.Reader`.
  const offered = listOf(request.header("Sec-WebSocket-Protocol"));
  const protocol = offered.find((name) => name === "binary.k8s.io" || name === BASE64);
  const run = async (socket: WebSocketConnection) => {
    try {
      for await (const chunk of await open(socket.gone)) {
        const data = Buffer.from(chunk);
        await (protocol === BASE64 ? socket.send(Buffer.from(data.toString("base64")), "text") : socket.send(data));
      }
    } catch (error) {
      if (!socket.gone.aborted) throw error;
    }
    socket.close();
  };
  return { protocol, run };
}

function orRefuse<T extends object>(response: T | StreamRefusal): T {
  if ("problem" in response) throw badRequest(response.problem);
  return response;
}

interface ProxyRoutesDeps {
  api: Pick<LocalApi, "find">;
  /** In [0, 1). */
  random: () => number;
}

/** Headers of a request that the pod gets; never the credentials of the API. */
const FORWARDED =
  "Accept Accept-Language Content-Type Cookie If-Modified-Since If-None-Match Origin Range Referer User-Agent";
/** Headers of a response that are those of its connection. */
const OF_CONNECTION = new Set(["connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"]);

/**
 * `proxy` of pods and Services: a request goes on to a port of a pod. Upgrades are not passed on. Source: the registry's
 * `ResourceLocation` of pods and Services.
 */
export function proxyRoutes({ api, random }: ProxyRoutesDeps): ExtraRoute[] {
  const route = (
    plural: string,
    kind: string,
    find: (info: RequestInfo, port: string) => Promise<http.RequestOptions>,
  ): ExtraRoute => ({
    group: "",
    version: "v1",
    name: `${plural}/proxy`,
    kind,
    namespaced: true,
    verbs: ["create", "delete", "get", "patch", "update"],
    handle: async (request, info) => {
      const { scheme, name, port } = parseProxied(plural, info.name);
      return await passOn(request, info, scheme === "https", await find({ ...info, name }, port));
    },
  });
  return [
    route("pods", "PodProxyOptions", async (info, port) => {
      const { spec, status } = (await api.find("pods", info)) as unknown as Pod;
      const first = spec.containers.flatMap(({ ports = [] }) => ports)[0]?.containerPort ?? 80;
      if (!status?.podIP) throw unavailable(`pod "${info.name}" has no address yet`);
      return { host: status.podIP, port: port === "" ? first : toPort(port) };
    }),
    route("services", "ServiceProxyOptions", async (info, port) => {
      const { ports = [] } = (await api.find("services", info)).spec as Service["spec"];
      const wanted =
        port === "" && ports.length === 1 ? ports[0] : ports.find((it) => it.name === port || String(it.port) === port);
      if (!wanted) throw unavailable(`no service port "${port}" found for service "${info.name}"`);
      const { subsets = [] } = (await api.find("endpoints", info)) as ApiObject & { subsets?: Subset[] };
      const targets = subsets.flatMap(({ addresses = [], ports: open = [] }) =>
        open
          .filter((it) => (it.name ?? "") === (wanted.name ?? ""))
          .flatMap((it) => addresses.map(({ ip }) => [ip, it])),
      ) as [ip: string, port: { port: number }][];
      const target = targets[Math.floor(random() * targets.length)];
      if (!target) throw unavailable(`no endpoints available for service "${info.name}"`);
      return { host: target[0], port: target[1].port };
    }),
  ];
}

/** The parts of `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`. @throws ApiError 400 */
export function parseProxied(plural: string, text: string): Record<"scheme" | "name" | "port", string> {
  const parts = text.split(":");
  const [scheme = "", name = "", port = ""] = parts.length > 2 ? parts : ["", ...parts];
  if (parts.length > 3 || !["", "http", "https"].includes(scheme)) {
    throw badRequest(`invalid ${plural} request "${text}": write NAME, NAME:PORT or SCHEME:NAME:PORT`);
  }
  return { scheme, name, port };
}

/** Source: core/v1 `EndpointSubset`. */
interface Subset {
  addresses?: { ip: string }[];
  ports?: { name?: string; port: number }[];
}

const unavailable = (message: string) => new ApiError(503, "ServiceUnavailable", message);

/** @throws ApiError 400 */
function toPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65535) throw badRequest(`the port "${text}" of a pod must be a number from 1 to 65535`);
  return port;
}

/** @throws ApiError 503 when the pod does not answer */
async function passOn(
  request: ApiRequest,
  { rest }: RequestInfo,
  isSecure: boolean,
  target: http.RequestOptions,
): Promise<ApiResponse> {
  const { method, path, query, signal, header } = request;
  // Relative links of a page count from its last slash.
  if (rest === "" && !path.endsWith("/")) return { status: 301, headers: { Location: `${encode(path)}/` }, body: "" };
  const search = query.size === 0 ? "" : `?${query.toString()}`;
  const inner = `/${rest}${rest !== "" && path.endsWith("/") ? "/" : ""}`;
  const headers = Object.fromEntries(
    FORWARDED.split(" ").flatMap((name) => (header(name) === null ? [] : [[name, header(name)!]])),
  );
  const body = await request.body();
  const options = { ...target, method, path: `${encode(inner)}${search}`, headers, signal, agent: false };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const client = isSecure ? https.request({ ...options, rejectUnauthorized: false }) : http.request(options);
    client.on("response", resolve).on("error", reject).end(body);
  }).catch((error: Error) => {
    throw unavailable(`error trying to reach ${target.host}:${target.port}: ${error.message}`);
  });
  const prefix = encode(path.slice(0, path.length - (rest === "" ? 1 : inner.length)));
  const shown = Object.entries(response.headers).flatMap(([name, value]) => {
    if (value === undefined || OF_CONNECTION.has(name)) return [];
    return [[name, name === "location" ? linkBelow(prefix, String(value)) : String(value)] as const];
  });
  const isPage = response.headers["content-type"]?.split(";")[0]?.trim() === "text/html";
  const chunks = isPage && !response.headers["content-encoding"] ? pageBelow(prefix, response) : response;
  return { status: response.statusCode ?? 502, headers: Object.fromEntries(shown), chunks };
}

/** A link within the pod stays below the path of the proxy. */
const linkBelow = (prefix: string, link: string) =>
  /^\/(?!\/)/.test(link) && !link.startsWith(`${prefix}/`) ? `${prefix}${link}` : link;

/** Bytes of a page that wait for the end of a tag. */
const MAX_HELD_BYTES = 1024 * 1024;
/** Attributes that are links. Source: apimachinery's `atomsToAttrs`. */
const LINKS =
  "action background cite classid codebase data formaction href icon longdesc manifest poster profile src usemap";

/** A page of a pod, as it comes; links to its root lead below the path of the proxy. @throws Error for a tag that does not end */
async function* pageBelow(prefix: string, page: IncomingMessage): AsyncGenerator<Uint8Array> {
  const rewriter = new HTMLRewriter();
  for (const name of LINKS.split(" ")) {
    rewriter.on(`[${name}^="/"]`, {
      element: (element) => void element.setAttribute(name, linkBelow(prefix, element.getAttribute(name) ?? "")),
    });
  }
  let heldBytes = 0;
  async function* bounded(): AsyncGenerator<Uint8Array> {
    for await (const chunk of page as AsyncIterable<Uint8Array>) {
      heldBytes += chunk.length;
      if (heldBytes > MAX_HELD_BYTES) throw new Error("a tag of the page is longer than 1 MiB");
      yield chunk;
    }
  }
  try {
    for await (const part of rewriter.transform(new Response(bounded())).body ?? []) {
      heldBytes = Math.max(0, heldBytes - part.length);
      yield part;
    }
  } finally {
    page.destroy();
  }
}

/** Percent-encodes a path that was decoded. */
const encode = (path: string): string => encodeURI(path).replace(/[?#]/g, encodeURIComponent);
