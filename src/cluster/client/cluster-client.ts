import { type Rate, TokenBucket } from "../../base/concurrency/token-bucket.ts";
import { linesOf, readBoundedStream } from "../../base/files/bounded-stream.ts";
import { httpFetch } from "../../base/host/http-fetch.ts";
import { backOffMs } from "../../base/model/back-off.ts";
import type { Clock } from "../../base/model/clock.ts";
import { codeOf, messageOf } from "../../base/text/error-message.ts";
import { ApiStatusError, ApiUnreachableError, describeFailure, isAway, toApiError } from "./api-error.ts";
import type { ConnectionSettings, Credentials } from "./credentials.ts";
import { Reachability } from "./reachability.ts";

export interface ApiRequest {
  /** Default: GET. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** e.g. `/api/v1/nodes/a`. */
  path: string;
  query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  body?: unknown;
  /** Default: `application/json`. */
  contentType?: string;
  /** Default: 30 s. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

interface ClusterClientDeps {
  credentials: Pick<Credentials, "current" | "invalidate">;
  clock: Clock;
  /** `--kube-api-qps`, `--kube-api-burst`. */
  rate: Rate;
  userAgent: string;
  /** In [0, 1). */
  random?: () => number;
  /** Shared by the clients of one API server. Default: one of its own. */
  reachability?: Reachability;
}

export const STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json";
export const MERGE_PATCH = "application/merge-patch+json";

const DEFAULT_TIMEOUT_MS = 30_000;
/** Lists of all pods of a node, or of all Services of a cluster. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** A Status; of a longer refusal only the code counts. */
const MAX_REFUSAL_BYTES = 1024 * 1024;
const RETRY = { first: 500, longest: 10_000 };
/** Times that a response of 429, or one with Retry-After, is followed by another attempt. Source: client-go. */
const MAX_RETRIES = 10;
/** Most a Retry-After can delay one request. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Requests to the API server: JSON over HTTP/1.1 with the credentials of the kubeconfig, within `--kube-api-qps`. A
 * response of 429, and one of 5xx with Retry-After, is followed by another attempt; everything else is the caller's.
 */
export class ClusterClient {
  readonly #deps: ClusterClientDeps;
  readonly #tokens: TokenBucket;
  /** Ends the retry delays of all callers when the API server is back. */
  readonly reachability: Reachability;
  /** After a failed connection no pooled one is used: those may be dead as well. */
  #mayReuse = true;
  #reset = new AbortController();

  constructor(deps: ClusterClientDeps) {
    this.#deps = deps;
    this.#tokens = new TokenBucket(deps.rate, deps.clock);
    this.reachability = deps.reachability ?? new Reachability(deps.clock, deps.random ?? Math.random);
  }

  /** @throws ApiStatusError, ApiUnreachableError, or the reason of the signal */
  async request<T = unknown>(request: ApiRequest): Promise<T> {
    const { clock, random = Math.random } = this.#deps;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#attempt<T>(request);
      } catch (error) {
        if (!isWorthRepeating(error) || attempt >= MAX_RETRIES) throw error;
        const delayMs = Math.max(error.retryAfterMs ?? 0, backOffMs(attempt, RETRY, random()));
        await clock.sleep(Math.min(delayMs, MAX_RETRY_AFTER_MS) * (1 + random() / 4), request.signal);
      }
    }
  }

  /**
   * Follows a watch until it ends, or until {@link resetWatches}.
   * @param onEvent gets each line of the response, parsed
   * @param onOpen called when the server has begun to answer
   * @param silenceMs the watch ends when nothing arrives for this time
   * @returns whether it was reset
   * @throws ApiStatusError, ApiUnreachableError, or the reason of the signal
   */
  async watch(
    path: string,
    query: Readonly<Record<string, string>>,
    onEvent: (event: unknown) => void,
    { signal, silenceMs, onOpen }: { signal: AbortSignal; silenceMs: () => number; onOpen?: () => void },
  ): Promise<boolean> {
    await this.#wait(signal);
    const settings = await this.#settings();
    const reset = this.#reset.signal;
    const heard = () => {
      this.reachability.noteResponse();
      onOpen?.();
    };
    try {
      const stop = AbortSignal.any([signal, reset]);
      const request = { url: toUrl(settings, path, query), settings, headers: this.#headers(settings) };
      await followWatch(request, `GET ${path}`, { onEvent, onOpen: heard, silenceMs, signal: stop });
    } catch (error) {
      // The watch begins again from where it was.
      if (reset.aborted && !signal.aborted) return true;
      if (isAway(error)) this.reachability.noteFailure(messageOf(error));
      throw error;
    }
    return false;
  }

  /** Ends all watches, which begin again: their connections may have died with others. */
  resetWatches(): void {
    this.#reset.abort(new Error("watches are opened again"));
    this.#reset = new AbortController();
  }

  async #attempt<T>(request: ApiRequest): Promise<T> {
    const { method = "GET", path, query = {}, body, contentType = "application/json", timeoutMs, signal } = request;
    const what = `${method} ${path}`;
    await this.#wait(signal);
    const settings = await this.#settings();
    const deadline = AbortSignal.timeout(timeoutMs ?? DEFAULT_TIMEOUT_MS);
    try {
      const response = await httpFetch(toUrl(settings, path, query), {
        method,
        headers: { ...this.#headers(settings), ...(body !== undefined && { "Content-Type": contentType }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        tls: settings.tls,
        keepalive: this.#mayReuse,
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
        ...(settings.proxy !== undefined && { proxy: settings.proxy }),
      } as RequestInit);
      const text = await (response.ok ? readBoundedStream(response.body, MAX_BODY_BYTES) : readRefusal(response));
      this.#mayReuse = true;
      if (response.status === 401) this.#deps.credentials.invalidate();
      const refusal = response.ok
        ? undefined
        : toApiError(what, response.status, text, response.headers.get("Retry-After"));
      if (isAway(refusal)) this.reachability.noteFailure(messageOf(refusal));
      else this.reachability.noteResponse();
      if (refusal) throw refusal;
      return (text === "" ? undefined : JSON.parse(text)) as T;
    } catch (error) {
      if (error instanceof ApiStatusError) throw error;
      signal?.throwIfAborted();
      this.#mayReuse = false;
      const reason = describeFailure(error, settings.server);
      this.reachability.noteFailure(reason);
      throw new ApiUnreachableError(`${what}: ${reason}`, { cause: error });
    }
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const delayMs = this.#tokens.reserve();
    if (delayMs > 0) await this.#deps.clock.sleep(delayMs, signal);
  }

  /** @throws ApiUnreachableError when there are no credentials at this moment */
  async #settings(): Promise<ConnectionSettings> {
    try {
      return await this.#deps.credentials.current();
    } catch (error) {
      throw new ApiUnreachableError(`no credentials for the API server: ${messageOf(error)}`, { cause: error });
    }
  }

  #headers({ headers }: ConnectionSettings): Record<string, string> {
    return { ...headers, Accept: "application/json", "User-Agent": this.#deps.userAgent };
  }
}

const readRefusal = ({ body }: Response) => readBoundedStream(body, MAX_REFUSAL_BYTES).catch(() => "");

const isWorthRepeating = (error: unknown): error is ApiStatusError =>
  error instanceof ApiStatusError && (error.code === 429 || (error.code >= 500 && error.retryAfterMs !== undefined));

function toUrl({ server }: ConnectionSettings, path: string, query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString();
  return `${server}${path}${text === "" ? "" : `?${text}`}`;
}

interface WatchListener {
  onEvent: (event: unknown) => void;
  onOpen: () => void;
  silenceMs: () => number;
  signal: AbortSignal;
}

/** One object and its wrapping: etcd's limit of 1.5 MB, written generously. */
const MAX_LINE_CHARS = 4 * 1024 * 1024;
/** A watch is answered at once, before its first event. */
const RESPONSE_TIMEOUT_MS = 30_000;

/** Reads a watch to its end. @throws ApiStatusError, ApiUnreachableError, or the reason of the signal */
async function followWatch(
  request: { url: string; settings: ConnectionSettings; headers: Readonly<Record<string, string>> },
  what: string,
  { onEvent, onOpen, silenceMs, signal }: WatchListener,
): Promise<void> {
  const silence = new AbortController();
  const stop = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(new Error("no response in time")), RESPONSE_TIMEOUT_MS);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), silenceMs());
  };
  let isOpen = false;
  try {
    const { url, settings, headers } = request;
    const { tls, proxy } = settings;
    // Bun's own limit would end a silent watch after five minutes.
    const options = { headers, tls, proxy, keepalive: false, timeout: false, signal: stop } as BunFetchRequestInit;
    const response = await httpFetch(url, options);
    isOpen = response.status === 200;
    if (!isOpen) {
      throw toApiError(what, response.status, await readRefusal(response), response.headers.get("Retry-After"));
    }
    heard();
    onOpen();
    for await (const line of linesOf(heardOf(response.body, heard), MAX_LINE_CHARS)) {
      if (line !== "") onEvent(JSON.parse(line));
    }
  } catch (error) {
    signal.throwIfAborted();
    if (isOpen && silence.signal.aborted) return;
    // A response of the server, as in an ERROR event, stays what it is.
    if (error instanceof ApiStatusError) throw error;
    const why = isOpen ? describeBreak(error) : describeFailure(error, request.settings.server);
    throw new ApiUnreachableError(`${what}: ${why}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

async function* heardOf(body: ReadableStream<Uint8Array> | null, heard: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of body ?? []) {
    heard();
    yield chunk;
  }
}

/** Why a watch ended that was open. */
const describeBreak = (error: unknown): string =>
  codeOf(error) === "ECONNRESET" ? "the API server closed the connection" : messageOf(error);
