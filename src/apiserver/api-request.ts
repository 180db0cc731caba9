import type { HttpResponse, ListenerResponse, ServerRequest } from "../server/http-response.ts";

/** Permissions of a user: everything, or reading everything except Secrets' data and the inside of containers. */
export type Role = "admin" | "view";

export interface ApiUser {
  name: string;
  groups: readonly string[];
  /** undefined: known, but without any right. */
  role: Role | undefined;
}

/** A request of the API, after authentication. */
export interface ApiRequest extends Pick<ServerRequest, "method" | "path" | "query" | "header" | "signal" | "upgrade"> {
  /** @throws ApiError 413 when it is longer than the limit */
  body(): Promise<Uint8Array>;
  user: ApiUser;
}

export type ApiResponse = ListenerResponse;

export const jsonText = (status: number, body: string, headers: Record<string, string> = {}): HttpResponse => ({
  status,
  headers: { "Content-Type": "application/json", ...headers },
  body,
});

export const json = (status: number, value: unknown, headers: Record<string, string> = {}): HttpResponse =>
  jsonText(status, JSON.stringify(value), headers);

/** The verb and resource of a request. Source: apiserver's `RequestInfo`. */
export interface RequestInfo {
  group: string;
  version: string;
  /** undefined: of all namespaces, or of a kind without one. */
  namespace: string | undefined;
  plural: string;
  /** "" for the whole collection. */
  name: string;
  /** "" for the object itself. */
  subresource: string;
  /** The path after the subresource `proxy`, without a leading slash. */
  rest: string;
}

/** @returns undefined for paths that name no resource */
export function parseRequestInfo(path: string): RequestInfo | undefined {
  const parts = path.replace(/\/$/, "").split("/").slice(1);
  const [root] = parts;
  let group = "";
  if (root === "apis") group = parts[1] ?? "";
  else if (root !== "api") return undefined;
  const [version, ...steps] = parts.slice(root === "api" ? 1 : 2);
  // Watches of old: /api/v1/watch/namespaces/…
  if (steps[0] === "watch") steps.shift();
  if (version === undefined || steps.length === 0 || steps.includes("")) return undefined;
  let namespace: string | undefined;
  if (steps[0] === "namespaces" && steps.length > 2 && !["status", "finalize"].includes(steps[2]!)) {
    namespace = steps[1];
    steps.splice(0, 2);
  }
  const [plural = "", name = "", subresource = "", ...rest] = steps;
  if (rest.length > 0 && subresource !== "proxy") return undefined;
  return { group, version, namespace, plural, name, subresource, rest: rest.join("/") };
}
