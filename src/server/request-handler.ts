import { rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { TurnPace } from "../base/concurrency/turn-pace.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import { parseMediaTypes } from "../base/text/media-types.ts";
import type { ShownCertificate } from "./client-identity.ts";
import type { WebSocketConnection } from "./websocket.ts";

/** The response of a route. The same for GET and HEAD. It may be sent to several clients and is not changed. */
export interface HttpResponse {
  status: number;
  headers: Record<string, string>;
  body: string | Uint8Array;
}

export interface StreamedResponse {
  status: number;
  headers: Record<string, string>;
  /** Leaving its loop must end what makes it. */
  chunks: AsyncIterable<Uint8Array | string>;
}

/** The connection becomes a WebSocket. Only for requests whose `upgrade` is `websocket`. */
export interface WebSocketResponse {
  /** Subprotocol that was chosen; undefined: the client named none. */
  protocol: string | undefined;
  /** Ends the connection itself. */
  run(socket: WebSocketConnection): Promise<void>;
}

/** The connection becomes something else than a WebSocket, which only node:http can do. Only for requests that have an `upgrade`. */
export interface UpgradeResponse {
  /** Takes the connection before anything was written to it, and ends it. `head`: what the client sent after its request. */
  takeOver(message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
}

export type RouteResponse = HttpResponse | StreamedResponse | WebSocketResponse;
export type ListenerResponse = RouteResponse | UpgradeResponse;

/** The part of a request that most routes need. */
export interface RouteRequest {
  method: string;
  /** Percent-decoded; starts with `/`. */
  path: string;
  query: URLSearchParams;
  /** Value of a request header, null when absent. */
  header(name: string): string | null;
  /** The body, of at most 64 KiB by default. @throws BodyTooLongError, TooManyBodiesError */
  text(maxBytes?: number): Promise<string>;
  /** Aborts when the client is gone. */
  signal: AbortSignal;
}

/** A request as a route gets it, whatever transport carries it. */
export interface ServerRequest extends RouteRequest {
  shown: ShownCertificate | undefined;
  isSecure: boolean;
  /** Ports of the connection; absent on a Unix socket. */
  ports?: { client: number; server: number } | undefined;
  /** Lower-case value of `Upgrade` where the connection is to become something else; else "". */
  upgrade: string;
}

/** A request as the route of a listener gets it: with its body, for routes that write. */
export interface ListenerRequest extends ServerRequest {
  /** Requests with an `upgrade` that are in progress at this listener, this one among them. */
  sessions: number;
  /** The whole body. @throws BodyTooLongError, TooManyBodiesError */
  body(maxBytes: number): Promise<Uint8Array>;
}

export const tooManyRequests = () =>
  textResponse(503, "503: too many requests at a time, try again later\n", { "Retry-After": "1" });

export const isReading = ({ method }: Pick<RouteRequest, "method">) => method === "GET" || method === "HEAD";

/** Browsers must not guess another type. */
export const NOSNIFF = { "X-Content-Type-Options": "nosniff" };

export function textResponse(status: number, body: string, headers: Record<string, string> = {}): HttpResponse {
  return { status, headers: { "Content-Type": "text/plain; charset=utf-8", ...headers }, body };
}

export function jsonResponse(body: string | Uint8Array, headers: Record<string, string> = {}): HttpResponse {
  return { status: 200, headers: { "Content-Type": "application/json", ...headers }, body };
}

/** A page without scripts. */
export function htmlResponse(status: number, body: string): HttpResponse {
  const headers = {
    "Content-Type": "text/html; charset=utf-8",
    ...NOSNIFF,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
  };
  return { status, headers, body };
}

/** 200 with `value` indented by one space, as cAdvisor's handlers print it. */
export const indentedJsonResponse = (value: unknown) => jsonResponse(JSON.stringify(value, null, 1));

/** Unknown path. Source: Go's `http.NotFound`. */
export const notFound = () => textResponse(404, "404 page not found\n", NOSNIFF);

/** Unknown path below a known root. Source: go-restful. */
export const resourceNotFound = () => textResponse(404, "404: Page Not Found");

export const methodNotAllowed = () => textResponse(405, "405: Method Not Allowed", { Allow: "GET, HEAD" });

export const notAcceptable = () => textResponse(406, "406: Not Acceptable");

/** The response of the unauthenticated port for exec, run, logs, …. */
export const debugDisabled = () => textResponse(405, "Debug endpoints are disabled.\n", { ...NOSNIFF, Allow: "" });

/** Redirects to another path of this server, with the same query, as Go's `http.Redirect`. @param path percent-decoded */
export function movedPermanently(path: string, query: URLSearchParams): HttpResponse {
  const encoded = encodeURI(path).replaceAll("?", "%3F").replaceAll("#", "%23");
  const location = query.size > 0 ? `${encoded}?${query}` : encoded;
  const headers = { "Content-Type": "text/html; charset=utf-8", Location: location };
  return { status: 301, headers, body: `<a href="${escapeHtml(location)}">Moved Permanently</a>.\n\n` };
}

export function escapeHtml(text: string): string {
  return Bun.escapeHTML(text).replaceAll("&quot;", "&#34;").replaceAll("&#x27;", "&#39;");
}

/** Whether an `Accept` header accepts JSON; without the header everything is accepted. Parameters are ignored, as in go-restful. */
export function acceptsJson(accept: string | null): boolean {
  if (!accept?.trim()) return true;
  return parseMediaTypes(accept).some(({ type }) => ["*", "*/*", "application/*", "application/json"].includes(type));
}

export const acceptsGzip = (acceptEncoding: string | null): boolean =>
  parseMediaTypes(acceptEncoding ?? "").some(({ type, parameters: { q } }) => type === "gzip" && Number(q) !== 0);

export const matchesEtag = (ifNoneMatch: string | null, etag: string): boolean =>
  (ifNoneMatch ?? "").split(",").some((part) => [etag, "*"].includes(part.trim().replace(/^W\//, "")));

/** Path and query of a request line's target, which begins with `/`; null when the path is not valid percent-encoded UTF-8. */
function parseTarget(target: string): Pick<RouteRequest, "path" | "query"> | null {
  const [, path = "", query = ""] = /^([^?]*)\??(.*)$/s.exec(target) ?? [];
  try {
    return { path: decodeURIComponent(path), query: new URLSearchParams(query) };
  } catch {
    return null;
  }
}

/** The path without doubled slashes and dot segments, the trailing slash kept. Source: Go's ServeMux. */
export function cleanPath(path: string): string {
  if (!path.includes("//") && !path.includes("/.")) return path;
  const kept: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") kept.pop();
    else if (segment !== "" && segment !== ".") kept.push(segment);
  }
  const trailing = kept.length > 0 && path.endsWith("/") ? "/" : "";
  return `/${kept.join("/")}${trailing}`;
}

/** First part of a path: that of `/pods/` is `pods`. */
export const rootOf = (path: string): string => path.split("/", 2)[1] ?? "";

/** The part of a listener's options that no transport needs. */
export interface RequestHandlerOptions {
  name: string;
  route: (request: ListenerRequest) => ListenerResponse | Promise<ListenerResponse>;
  /** Whether a request for this host is answered; others get 421. */
  acceptsHost: (host: string | null) => boolean;
}

export type ListenAddress =
  | {
      /** Address to bind, never empty. */
      hostname: string;
      /** 0: the system chooses one. */
      port: number;
    }
  /** A Unix socket that only the own user may use. A file of that path is replaced: the caller knows that it is stale. */
  | { socketPath: string };

/** Listens on a Unix socket that only the own user may use. */
export function onPrivateSocket<T>(path: string, listen: (path: string) => T): T {
  // The file of a process that was killed would make the address look taken.
  rmSync(path, { force: true });
  const umask = process.umask(0o177);
  try {
    return listen(path);
  } finally {
    process.umask(umask);
  }
}

export interface Transport {
  /** In use; undefined before, and for a Unix socket. */
  readonly port: number | undefined;
  /** Resolves when it listens. @throws Error when the address cannot be had */
  listen(address: ListenAddress): Promise<void>;
  /** Closes all connections. Work for clients is aborted and waited for. */
  stop(): Promise<void>;
}

/** A request as a transport hands it over. */
interface ReceivedRequest {
  head: Omit<ListenerRequest, "path" | "query" | "body" | "text">;
  /** Path and query as they were sent. */
  target: string;
  /** Client's IP address; "" on a Unix socket. */
  address: string;
  /** The body as it arrives; iterated at most once. */
  chunks: () => AsyncIterable<Uint8Array>;
  /** Called before the body is read and after that: the client has {@link IDLE_MS} for it. */
  awaitsBody: (isAwaited: boolean) => void;
}

/** A connection ends after this time without a request, or before the whole request. Above usual scrape intervals. */
export const IDLE_MS = 60_000;
/** Only queries are posted as text; the largest real one is a few hundred bytes. */
const MAX_TEXT_BYTES = 64 * 1024;
/** Bytes of the bodies of all requests in work. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** Requests that begin in one turn of the loop: of hundreds that come together, each takes up to half a millisecond of it. */
const REQUESTS_PER_TURN = 8;
/** Requests in work; above it, addresses that have more than their share are refused. */
const MAX_REQUESTS = 256;

/** A body longer than the caller accepts. */
export class BodyTooLongError extends Error {
  constructor(maxBytes: number) {
    super(`the body of the request is longer than ${maxBytes} bytes`);
  }
}

/** The bodies of all requests together take too much memory. */
export class TooManyBodiesError extends Error {}

/**
 * Makes the responses of one listener, for both transports: the rule of the Host header, bounded bodies, a cap of the
 * requests in work, and 500 for a route that fails.
 */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #logger: Logger;
  readonly #requests = new FairShare(MAX_REQUESTS);
  readonly #pace = new TurnPace(REQUESTS_PER_TURN);
  #bodyBytes = 0;

  constructor(options: RequestHandlerOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
  }

  /** The route's response; when the route fails it is 500, and the reason is only in the log. Never rejects. */
  async respond(received: ReceivedRequest): Promise<ListenerResponse> {
    await this.#pace.enter(1);
    const leave = this.#requests.enter(received.address);
    if (!leave) return tooManyRequests();
    const { head } = received;
    const target = parseTarget(received.target);
    const held = { bytes: 0 };
    const body = (maxBytes: number) => this.#read(received, maxBytes, held);
    try {
      if (!target?.path.startsWith("/")) return textResponse(400, "400 Bad Request");
      if (!this.#options.acceptsHost(head.header("Host"))) {
        return textResponse(421, "421: this server answers for localhost, its node and addresses only\n", NOSNIFF);
      }
      return await this.#options.route({
        ...head,
        ...target,
        body,
        text: async (maxBytes = MAX_TEXT_BYTES) => Buffer.from(await body(maxBytes)).toString(),
      });
    } catch (error) {
      return this.#responseTo(error, target?.path ?? received.target, head.signal);
    } finally {
      this.#bodyBytes -= held.bytes;
      leave();
    }
  }

  /** @param held counts what this request has of the memory for all bodies */
  async #read({ head, chunks, awaitsBody }: ReceivedRequest, maxBytes: number, held: { bytes: number }) {
    const read: Uint8Array[] = [];
    awaitsBody(true);
    try {
      if (Number(head.header("Content-Length") ?? 0) > maxBytes) throw new BodyTooLongError(maxBytes);
      for await (const chunk of chunks()) {
        if (this.#bodyBytes + chunk.length > MAX_BODY_BYTES) throw new TooManyBodiesError("too many bodies at a time");
        this.#bodyBytes += chunk.length;
        held.bytes += chunk.length;
        if (held.bytes > maxBytes) throw new BodyTooLongError(maxBytes);
        read.push(chunk);
      }
    } finally {
      awaitsBody(false);
    }
    return Buffer.concat(read);
  }

  #responseTo(error: unknown, path: string, signal: AbortSignal): HttpResponse {
    if (error instanceof BodyTooLongError) return textResponse(413, `413: ${error.message}\n`, NOSNIFF);
    if (error instanceof TooManyBodiesError) return tooManyRequests();
    if (!signal.aborted) {
      const { name } = this.#options;
      this.#logger.error("A request could not be answered", { server: name, path, error: messageOf(error) });
    }
    return textResponse(500, "500 internal server error\n", NOSNIFF);
  }
}

/** Counts what is under way, by client: an address or a user. Beyond the limit a client is refused that has more than its share. */
export class FairShare {
  readonly #limit: number;
  readonly #byClient = new Map<string, number>();
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns what ends it, to be called once or more; undefined: refused */
  enter(client: string): (() => void) | undefined {
    const own = (this.#byClient.get(client) ?? 0) + 1;
    const clients = this.#byClient.size + (own === 1 ? 1 : 0);
    if (this.#total >= this.#limit && own > Math.max(1, Math.floor(this.#limit / clients))) return undefined;
    this.#total++;
    this.#byClient.set(client, own);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      this.#total--;
      const left = this.#byClient.get(client)! - 1;
      if (left > 0) this.#byClient.set(client, left);
      else this.#byClient.delete(client);
    };
  }
}

/**
 * Whether a server that listens on the loopback serves a request for this host. A page whose name was made to resolve to
 * the loopback (DNS rebinding) asks for its own name: only addresses, `localhost` and the node's name are accepted.
 * @param host value of the Host header; null when there is none, which no browser sends
 */
export function isLocalHost(host: string | null, nodeName: string): boolean {
  if (host === null || host === "") return true;
  const name = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/
    .exec(host)
    ?.slice(1)
    .find((part) => part !== undefined);
  if (name === undefined) return false;
  const lower = name.toLowerCase().replace(/\.$/, "");
  return isIP(name) !== 0 || lower === "localhost" || lower.endsWith(".localhost") || lower === nodeName.toLowerCase();
}

/** Whether connections to this address come from this machine only. */
export function isLoopback(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address) || address === "::1" || address === "localhost";
}

/** The host and port by which a client of this machine reaches a listener on `address`, which may be all addresses. */
export function toLocalHost(address: string, port: number): string {
  const host = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
