import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
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
export function parseTarget(target: string): Pick<RouteRequest, "path" | "query"> | null {
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
