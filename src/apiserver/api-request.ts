import type { HttpResponse, ListenerResponse } from "../server/http-response.ts";

/** Permissions of a user: everything, or reading everything except Secrets' data and the inside of containers. */
export type Role = "admin" | "view";

export interface ApiUser {
  name: string;
  groups: readonly string[];
  /** undefined: known, but without any right. */
  role: Role | undefined;
}

/** A request of the API, after authentication. */
export interface ApiRequest {
  method: string;
  /** Percent-decoded; starts with `/`. */
  path: string;
  query: URLSearchParams;
  /** Value of a request header, null when absent. */
  header(name: string): string | null;
  /** @throws ApiError 413 when it is longer than the limit */
  body(): Promise<Uint8Array>;
  user: ApiUser;
  /** Aborts when the client is gone, or we are about to leave. */
  signal: AbortSignal;
  /** Lower-case value of `Upgrade`; "" for a plain request. */
  upgrade: string;
}

export type PlainResponse = HttpResponse;
export type ApiResponse = ListenerResponse;

export const jsonText = (status: number, body: string, headers: Record<string, string> = {}): PlainResponse => ({
  status,
  headers: { "Content-Type": "application/json", ...headers },
  body,
});

export const json = (status: number, value: unknown, headers: Record<string, string> = {}): PlainResponse =>
  jsonText(status, JSON.stringify(value), headers);

export const plainText = (status: number, body: string): PlainResponse => ({
  status,
  headers: { "Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff" },
  body,
});
