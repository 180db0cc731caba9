import http from "node:http";
import https from "node:https";
import { StringDecoder } from "node:string_decoder";
import { readOutput } from "../../base/files/bounded-stream.ts";
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
 * Reads a watch to its end. Long responses go over node:http: Bun's fetch allows 256 requests in the whole process, and
 * there is a watch for each ConfigMap and Secret. Behind a proxy fetch it is, which knows proxies.
 * @throws ApiStatusError, ApiUnreachableError, or the reason of the signal
 */
export function openWatch(request: WatchRequest): Promise<void> {
  return request.settings.proxy === undefined ? watchDirectly(request) : watchThroughProxy(request);
}

function watchDirectly({
  url,
  settings,
  headers,
  onEvent,
  onOpen,
  signal,
  silenceMs,
  what,
}: WatchRequest): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const isTls = url.startsWith("https:");
  const { serverName, ...tls } = settings.tls;
  const options = { method: "GET", headers, agent: false as const, signal };
  const request = isTls
    ? https.request(url, { ...options, ...tls, ...(serverName && { servername: serverName }) })
    : http.request(url, options);
  const lines = new LineReader(onEvent);
  const fail = (error: Error) => {
    reject(signal.aborted ? signal.reason : toUnreachable(what, error));
    request.destroy();
  };
  const end = () => {
    resolve();
    request.destroy();
  };
  let timer = setTimeout(() => fail(new Error("no response in time")), RESPONSE_TIMEOUT_MS);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(end, silenceMs());
  };
  request.on("error", fail);
  request.on("response", (response) => {
    heard();
    const decoder = new StringDecoder("utf8");
    const code = response.statusCode ?? 0;
    let refusal = "";
    if (code === 200) onOpen?.();
    response.on("data", (chunk: Buffer) => {
      heard();
      try {
        if (code === 200) lines.add(decoder.write(chunk));
        else if (refusal.length < MAX_ERROR_CHARS) refusal += decoder.write(chunk);
      } catch (error) {
        fail(error as Error);
      }
    });
    response.on("error", fail);
    response.on("close", () => fail(new Error("the connection broke")));
    response.on("end", () => {
      if (code === 200) resolve();
      else reject(toApiError(what, code, refusal, response.headers["retry-after"] ?? null));
    });
  });
  request.end();
  return promise.finally(() => clearTimeout(timer));
}

async function watchThroughProxy(request: WatchRequest): Promise<void> {
  const { url, settings, headers, onEvent, onOpen, signal, silenceMs, what } = request;
  const silence = new AbortController();
  const arm = () => setTimeout(() => silence.abort(new Error("nothing arrived in time")), silenceMs());
  let timer = arm();
  try {
    const response = await fetch(url, {
      headers,
      tls: settings.tls,
      proxy: settings.proxy,
      timeout: false,
      redirect: "manual",
      signal: AbortSignal.any([signal, silence.signal]),
    } as RequestInit);
    if (!response.ok) {
      const text = (await readOutput(response.body)).slice(0, MAX_ERROR_CHARS);
      throw toApiError(what, response.status, text, response.headers.get("Retry-After"));
    }
    onOpen?.();
    const lines = new LineReader(onEvent);
    const decoder = new StringDecoder("utf8");
    for await (const chunk of response.body ?? []) {
      clearTimeout(timer);
      timer = arm();
      lines.add(decoder.write(Buffer.from(chunk)));
    }
  } catch (error) {
    signal.throwIfAborted();
    if (silence.signal.aborted) return;
    throw toUnreachable(what, error);
  } finally {
    clearTimeout(timer);
  }
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
const toUnreachable = (what: string, error: unknown) =>
  error instanceof ApiStatusError ? error : new ApiUnreachableError(`${what}: ${messageOf(error)}`, { cause: error });
