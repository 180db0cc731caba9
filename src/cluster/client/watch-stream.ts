import http from "node:http";
import https from "node:https";
import { StringDecoder } from "node:string_decoder";
import { httpFetch } from "../../base/host/http-fetch.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { ApiStatusError, ApiUnreachableError, toApiError } from "./api-error.ts";
import type { ConnectionSettings } from "./credentials.ts";

interface WatchRequest {
  url: string;
  settings: ConnectionSettings;
  headers: Readonly<Record<string, string>>;
  /** Gets each line, parsed. */
  onEvent: (event: unknown) => void;
  /** The server has begun to answer. */
  onOpen?: (() => void) | undefined;
  signal: AbortSignal;
  /** Longest time without a byte: then the watch ends, as if the server had ended it. */
  silenceMs: () => number;
  /** The request, for users. */
  what: string;
}

/** One object and its wrapping: etcd's limit of 1.5 MB, written generously. */
const MAX_LINE_CHARS = 32 * 1024 * 1024;
/** A watch is answered at once, before its first event. */
const RESPONSE_TIMEOUT_MS = 30_000;
const MAX_ERROR_CHARS = 64 * 1024;

/**
 * Reads a watch to its end.
 * @throws ApiStatusError, ApiUnreachableError, or the reason of the signal
 */
export async function openWatch(request: WatchRequest): Promise<void> {
  const { settings, onEvent, onOpen, signal, silenceMs, what } = request;
  const silence = new AbortController();
  const stop = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(new Error("no response in time")), RESPONSE_TIMEOUT_MS);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), silenceMs());
  };
  let isOpen = false;
  try {
    const { status, retryAfter, body } = await (settings.proxy === undefined ? sendDirectly : sendByFetch)(
      request,
      stop,
    );
    heard();
    const lines = new LineReader(onEvent);
    const decoder = new StringDecoder("utf8");
    isOpen = status === 200;
    if (isOpen) onOpen?.();
    let refusal = "";
    for await (const chunk of body) {
      heard();
      const text = decoder.write(Buffer.from(chunk));
      if (isOpen) lines.add(text);
      else if (refusal.length < MAX_ERROR_CHARS) refusal += text;
    }
    if (!isOpen) throw toApiError(what, status, refusal, retryAfter);
  } catch (error) {
    signal.throwIfAborted();
    if (isOpen && silence.signal.aborted) return;
    throw toUnreachable(what, error);
  } finally {
    clearTimeout(timer);
  }
}

interface WatchResponse {
  status: number;
  retryAfter: string | null;
  body: AsyncIterable<Uint8Array> | readonly Uint8Array[];
}

/**
 * Over node:http: Bun's fetch allows 256 requests in the whole process, and there is a watch for each ConfigMap and Secret.
 */
function sendDirectly({ url, settings, headers }: WatchRequest, signal: AbortSignal): Promise<WatchResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<WatchResponse>();
  const { serverName, ...tls } = settings.tls;
  const options = { method: "GET", headers, agent: false as const, signal };
  const request = url.startsWith("https:")
    ? https.request(url, { ...options, ...tls, ...(serverName && { servername: serverName }) })
    : http.request(url, options);
  request.on("error", reject);
  request.on("response", (response) => {
    const { statusCode: status = 0, headers: found } = response;
    resolve({ status, retryAfter: found["retry-after"] ?? null, body: response });
  });
  request.end();
  return promise;
}

/** Behind a proxy, which node:http does not know. */
async function sendByFetch({ url, settings, headers }: WatchRequest, signal: AbortSignal): Promise<WatchResponse> {
  const { tls, proxy } = settings;
  const options = { headers, tls, proxy, timeout: false, signal } as BunFetchRequestInit;
  const { status, headers: found, body } = await httpFetch(url, options);
  return { status, retryAfter: found.get("Retry-After"), body: body ?? [] };
}

/** Puts lines together from chunks. */
class LineReader {
  readonly #onEvent: (event: unknown) => void;
  #rest = "";

  constructor(onEvent: (event: unknown) => void) {
    this.#onEvent = onEvent;
  }

  /** @throws Error for a line that is too long or no JSON */
  add(text: string): void {
    const parts = text.split("\n");
    parts[0] = this.#rest + parts[0];
    this.#rest = parts.pop() ?? "";
    if (this.#rest.length > MAX_LINE_CHARS) throw new Error("an event of the watch is too long");
    for (const line of parts) if (line !== "") this.#onEvent(JSON.parse(line));
  }
}

/** A response of the server, as in an ERROR event, stays what it is. */
function toUnreachable(what: string, error: unknown): Error {
  if (error instanceof ApiStatusError) return error;
  // How node:http names a connection that ends within a response.
  const why = messageOf(error) === "aborted" ? "the API server closed the connection" : messageOf(error);
  return new ApiUnreachableError(`${what}: ${why}`, { cause: error });
}
