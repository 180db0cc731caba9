import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import type { Pod } from "../api/pod.ts";
import type { ContainerAccess } from "../model/container-access.ts";
import type { ActionResult, History, HistoryRange, NodeDetail, PodDetail } from "../page/wire.ts";
import { type Answer, parseTarget, type RouteRequest } from "../server/answer.ts";
import { bytesOf } from "../server/send-answer.ts";
import { findLogContainer, findRunningContainer } from "../status/log-container.ts";
import { loadAssets } from "./assets.ts";
import type { PageFeed } from "./page-feed.ts";
import type { PageHandler } from "./page-server.ts";
import { type PageSessions, SESSION_COOKIE, SESSION_LIFETIME_MS } from "./page-session.ts";
import { serveShell } from "./shell.ts";

/** Dependencies of the page's routes. */
export interface PageHandlerDeps {
  feed: PageFeed;
  sessions: PageSessions;
  /** Whether the listener speaks TLS. */
  isTls: boolean;
  /** Hosts in the `Host` header that reach a loopback listener; undefined: the port is on the network, where there is no page. */
  allowedHosts: ReadonlySet<string> | undefined;
  pods: () => readonly Pod[];
  podDetail: (uid: string, privileged: boolean) => Promise<PodDetail | undefined>;
  nodeDetail: () => Promise<NodeDetail>;
  /** @param uid "" = the node */
  history: (uid: string, range: HistoryRange) => History;
  containers: ContainerAccess;
  /** Absent while nothing can be submitted to this node. */
  actions: PageActions | undefined;
  /** Every other path of the port. */
  cadvisor: (request: RouteRequest) => Answer | Promise<Answer>;
}

/** Changes that a session may make. */
export interface PageActions {
  restart(uid: string): Promise<ActionResult>;
  remove(uid: string): Promise<ActionResult>;
  apply(manifest: string, dryRun: boolean): Promise<ActionResult>;
}

const SECURITY_HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

const MAX_BODY_BYTES = 4 << 20;
/** Below the silence after which a page reconnects. */
const PING_MS = 10_000;
const MAX_STREAMS = 32;
const MAX_SHELLS = 16;

/** Routes of the page: below `/page/`, and `/` itself. */
export class PageRoutes implements PageHandler {
  readonly #deps: PageHandlerDeps;
  readonly #assets = loadAssets();
  #streams = 0;
  #shells = 0;

  constructor(deps: PageHandlerDeps) {
    this.#deps = deps;
  }

  async onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = parseTarget(request.url?.startsWith("/") ? request.url : "/");
    if (!target) return sendText(response, 400, "400 Bad Request\n");
    if (!this.#isHostAllowed(request)) {
      return sendText(response, 421, "421 Misdirected Request: this address is served for local hosts only\n");
    }
    const { path, query } = target;
    if (path !== "/" && path !== "/page" && !path.startsWith("/page/")) {
      return this.#passOn(request, response, path, query);
    }
    if (!this.#deps.allowedHosts) return sendText(response, 403, LOOPBACK_ONLY);
    const asset = this.#assets.get(path);
    if (asset) return sendAsset(request, response, asset);
    const isWrite = request.method === "POST";
    if (!isWrite && request.method !== "GET") return sendText(response, 405, "405 Method Not Allowed\n");
    if (isWrite && !isSameOrigin(request, this.#deps.isTls)) return sendText(response, 403, "Foreign origin\n");
    const privileged = this.#deps.sessions.isValid(request.headers.cookie);
    if (path === "/page/login")
      return isWrite ? this.#logIn(request, response) : sendText(response, 405, "POST only\n");
    if (isWrite && !privileged) return sendText(response, 401, UNAUTHORIZED);
    if (path === "/page/stream") return this.#stream(response, privileged);
    if (path === "/page/api/apply" && isWrite) return this.#apply(request, response);
    return this.#routeApi(path, query, isWrite, privileged, response);
  }

  onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const target = parseTarget(request.url ?? "/");
    const uid = /^\/page\/api\/pods\/([^/]+)\/shell$/.exec(target?.path ?? "")?.[1];
    const refuse = (status: string) =>
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    if (!target || uid === undefined || !this.#deps.allowedHosts) return void refuse("404 Not Found");
    if (!this.#isHostAllowed(request)) return void refuse("421 Misdirected Request");
    if (!isSameOrigin(request, this.#deps.isTls)) return void refuse("403 Forbidden");
    if (!this.#deps.sessions.isValid(request.headers.cookie)) return void refuse("401 Unauthorized");
    if (this.#shells >= MAX_SHELLS) return void refuse("503 Service Unavailable");
    const pod = this.#deps.pods().find(({ metadata }) => metadata.uid === uid);
    const container = pod && findRunningContainer(pod, target.query.get("container") ?? "");
    if (!container) return void refuse("404 Not Found");
    this.#shells++;
    socket.once("close", () => this.#shells--);
    void serveShell(request, socket, head, container.id, this.#deps.containers);
  }

  async #routeApi(
    path: string,
    query: URLSearchParams,
    isWrite: boolean,
    privileged: boolean,
    response: ServerResponse,
  ): Promise<void> {
    const { actions, history, nodeDetail, podDetail } = this.#deps;
    const range = RANGES.find((known) => known === query.get("range")) ?? "10m";
    if (path === "/page/api/node" && !isWrite) return sendJson(response, await nodeDetail());
    if (path === "/page/api/node/history" && !isWrite) return sendJson(response, history("", range));
    const [, uid = "", part = ""] = /^\/page\/api\/pods\/([^/]+)(?:\/([a-z]+))?$/.exec(path) ?? [];
    const pod = this.#deps.pods().find(({ metadata }) => metadata.uid === uid);
    if (!pod) return sendText(response, 404, "No such pod on this node\n");
    switch (`${isWrite ? "POST" : "GET"} ${part}`) {
      case "GET ": {
        const detail = await podDetail(uid, privileged);
        return detail ? sendJson(response, detail) : sendText(response, 404, "No such pod on this node\n");
      }
      case "GET history":
        return sendJson(response, history(uid, range));
      case "GET logs":
        return privileged ? this.#logs(pod, query, response) : sendText(response, 401, UNAUTHORIZED);
      case "POST restart":
        return actions ? sendJson(response, await actions.restart(uid)) : sendText(response, 404, NO_ACTIONS);
      case "POST delete":
        return actions ? sendJson(response, await actions.remove(uid)) : sendText(response, 404, NO_ACTIONS);
      default:
        return sendText(response, 404, "404 page not found\n");
    }
  }

  async #logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { token } = ((await readJson(request)) ?? {}) as { token?: unknown };
    const session = typeof token === "string" ? this.#deps.sessions.logIn(token) : undefined;
    if (session === undefined) {
      return sendText(response, 401, "This link has expired or was used before: run kubelet-ts page again\n");
    }
    const secure = this.#deps.isTls ? "; Secure" : "";
    response.setHeader(
      "Set-Cookie",
      `${SESSION_COOKIE}=${session}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${SESSION_LIFETIME_MS / 1000}${secure}`,
    );
    return sendJson(response, { ok: true, message: "" } satisfies ActionResult);
  }

  async #apply(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = ((await readJson(request)) ?? {}) as { manifest?: unknown; dryRun?: unknown };
    if (typeof body.manifest !== "string") return sendText(response, 400, "The body has no manifest\n");
    const { actions } = this.#deps;
    if (!actions) return sendText(response, 404, NO_ACTIONS);
    return sendJson(response, await actions.apply(body.manifest, body.dryRun === true));
  }

  /** Server-sent events. A reader that does not keep up is sent a new snapshot when it has. */
  async #stream(response: ServerResponse, privileged: boolean): Promise<void> {
    if (this.#streams >= MAX_STREAMS) return sendText(response, 503, "Too many open pages\n");
    this.#streams++;
    response.writeHead(200, { ...SECURITY_HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    const { feed } = this.#deps;
    const subscriber = {
      access: { privileged, canAct: privileged && this.#deps.actions !== undefined },
      send: (event: string, data: string) => response.write(`event: ${event}\ndata: ${data}\n\n`),
    };
    const ping = setInterval(() => response.writableNeedDrain || response.write("event: ping\ndata:\n\n"), PING_MS);
    let unsubscribe = () => {};
    let isClosed = false;
    response.once("close", () => {
      isClosed = true;
      this.#streams--;
      clearInterval(ping);
      unsubscribe();
    });
    response.on("drain", () => feed.resume(subscriber));
    unsubscribe = await feed.subscribe(subscriber);
    if (isClosed) unsubscribe();
  }

  async #logs(pod: Pod, query: URLSearchParams, response: ServerResponse): Promise<void> {
    const found = findLogContainer(pod, query.get("container") ?? "", query.get("previous") === "true");
    if ("problem" in found) return sendText(response, 404, `${found.problem}\n`);
    const controller = new AbortController();
    response.once("close", () => controller.abort());
    const tailLines = /^\d{1,6}$/.test(query.get("tailLines") ?? "") ? Number(query.get("tailLines")) : undefined;
    const log = await this.#deps.containers.logs(
      found.id,
      {
        follow: query.get("follow") === "true",
        ...(tailLines !== undefined && { tailLines }),
        timestamps: query.get("timestamps") === "true",
        stdout: true,
        stderr: true,
      },
      controller.signal,
    );
    response.writeHead(200, {
      ...SECURITY_HEADERS,
      "Content-Type": "text/plain; charset=utf-8",
      "Cache-Control": "no-store",
    });
    response.flushHeaders();
    try {
      for await (const data of log) {
        if (!response.write(data)) await drained(response);
        if (controller.signal.aborted) return;
      }
    } catch {
      // The container or the engine is gone, or the reader: the page asks again.
    }
    response.end();
  }

  async #passOn(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    query: URLSearchParams,
  ): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new DOMException("the client is gone", "AbortError")));
    const answer = await this.#deps.cadvisor({
      method: request.method ?? "GET",
      path,
      query,
      header: (name) => request.headers[name.toLowerCase()]?.toString() ?? null,
      text: async () => (await readBody(request)) ?? "",
      signal: gone.signal,
    });
    const bytes = bytesOf(answer);
    response.writeHead(answer.status, { ...answer.headers, "Content-Length": bytes.length });
    response.end(request.method === "HEAD" ? undefined : bytes);
  }

  /** A page of another site whose name was made to point here has that name in its `Host` header. */
  #isHostAllowed({ headers }: IncomingMessage): boolean {
    const { allowedHosts } = this.#deps;
    if (!allowedHosts) return true;
    const host = (headers.host ?? "").replace(/:\d+$/, "").toLowerCase();
    return allowedHosts.has(host) || isIP(host.replace(/^\[|\]$/g, "")) !== 0;
  }
}

const RANGES: readonly HistoryRange[] = ["10m", "1h", "24h"];
const LOOPBACK_ONLY =
  "The page is served on loopback addresses only: start kubelet-ts without --cadvisor-bind-address, and use ssh -L 4194:localhost:4194\n";
const NO_ACTIONS = "The local API is off (--local-api-port=0): edit the manifests\n";
const UNAUTHORIZED = "This needs a session: run kubelet-ts page on the machine and open the link\n";

/** Browsers send `Origin` with every POST and WebSocket; other clients are not a danger to a session. */
function isSameOrigin({ headers }: IncomingMessage, isTls: boolean): boolean {
  if (headers.origin === undefined)
    return headers["sec-fetch-site"] === undefined || headers["sec-fetch-site"] === "same-origin";
  return headers.origin === `${isTls ? "https" : "http"}://${headers.host}`;
}

function sendAsset(
  request: IncomingMessage,
  response: ServerResponse,
  asset: { type: string; etag: string; body: Uint8Array; gzipped: Uint8Array },
): void {
  const headers = { ...SECURITY_HEADERS, ETag: asset.etag, "Cache-Control": "no-cache", Vary: "Accept-Encoding" };
  if (request.headers["if-none-match"] === asset.etag) return void response.writeHead(304, headers).end();
  if (request.method !== "GET" && request.method !== "HEAD") return sendText(response, 405, "405 Method Not Allowed\n");
  const isGzip = /\bgzip\b/.test(request.headers["accept-encoding"]?.toString() ?? "");
  const body = isGzip ? asset.gzipped : asset.body;
  response.writeHead(200, {
    ...headers,
    "Content-Type": asset.type,
    "Content-Length": body.length,
    ...(isGzip && { "Content-Encoding": "gzip" }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...SECURITY_HEADERS, "Content-Type": "text/plain; charset=utf-8" }).end(text);
}

function sendJson(response: ServerResponse, value: unknown): void {
  response
    .writeHead(200, { ...SECURITY_HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store" })
    .end(JSON.stringify(value));
}

/** undefined when it is longer than allowed. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request) {
    size += (piece as Buffer).length;
    if (size > MAX_BODY_BYTES) return undefined;
    pieces.push(piece as Buffer);
  }
  return Buffer.concat(pieces).toString("utf8");
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const text = await readBody(request);
  try {
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}

const drained = (response: ServerResponse) =>
  new Promise<void>((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
