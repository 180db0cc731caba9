import type { IncomingHttpHeaders } from "node:http";

/** How long one call may take and who may end it early. */
export interface CallOptions {
  /** Ends the call; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** From sending to the last byte of the answer; of a stream: to its headers. 0 = no deadline. */
  timeoutMs?: number | undefined;
}

export type QueryValue = string | number | boolean | undefined;

export interface DockerRequest extends CallOptions {
  /** Largest answer that is read whole; default: the transport's. */
  maxResponseBytes?: number;
  method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  /** With its version, as sent: `/v1.41/containers/json`. Segments are already encoded. */
  path: string;
  /** `false`, `undefined` and "" are left out. */
  query?: Readonly<Record<string, QueryValue>> | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as is (a tar archive). */
  body?: Bun.BodyInit | undefined;
}

export interface DockerResponse {
  status: number;
  /** Lower-case names. */
  header(name: string): string | undefined;
  text: string;
}

export interface DockerStream {
  status: number;
  header(name: string): string | undefined;
  /** May be read once. Leaving the loop closes the connection. Throws like a call when the connection is lost. */
  chunks: AsyncIterable<Uint8Array>;
  close(): void;
}

/** `POST /containers/create` of `/v1.41/containers/create`. */
export function operationOf(request: DockerRequest): string {
  return `${request.method} ${decodeURIComponent(request.path.replace(/^\/v\d+\.\d+(?=\/)/, ""))}`;
}

/** Headers of the request, without those of the connection. */
export function requestHeaders(request: DockerRequest): Record<string, string> {
  return {
    "User-Agent": "kubelet-ts",
    ...(request.json !== undefined ? { "Content-Type": "application/json" } : {}),
    // An empty POST to 20.10 with no type is answered 400 by some proxies of the socket; the docker command sends this.
    ...(request.method === "POST" && request.json === undefined && request.body === undefined
      ? { "Content-Type": "text/plain" }
      : {}),
    ...(request.body !== undefined ? { "Content-Type": "application/x-tar" } : {}),
    ...request.headers,
  };
}

/** `?name=value&…`, or "". */
export function queryText(query: DockerRequest["query"]): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === false || value === "") continue;
    parts.push(`${name}=${value === true ? "1" : encodeURIComponent(value)}`);
  }
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}

/** A header of node:http as one text. */
export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name.toLowerCase()];
  return Array.isArray(value) ? value.join(", ") : value;
}
