import * as v from "valibot";
import { type Rate, TokenBucket } from "../../base/concurrency/token-bucket.ts";
import { linesOf, partsOfList, readBoundedStream } from "../../base/files/bounded-stream.ts";
import { httpFetch } from "../../base/host/http-fetch.ts";
import { ChangeLogger } from "../../base/logging/change-logger.ts";
import { backOffMs } from "../../base/model/back-off.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
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
  logger: Logger;
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
/** One object and its wrapping: etcd's limit of 1.5 MB, written generously. */
const MAX_OBJECT_CHARS = 4 * 1024 * 1024;
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
  readonly #facts: ChangeLogger;

  constructor(deps: ClusterClientDeps) {
    this.#deps = deps;
    this.#facts = new ChangeLogger(deps.logger);
    this.#tokens = new TokenBucket(deps.rate, deps.clock);
    this.reachability = deps.reachability ?? new Reachability(deps.clock, deps.random ?? Math.random);
  }

  /** @throws ApiStatusError, ApiUnreachableError, or the reason of the signal */
  async request<T = unknown>(request: ApiRequest): Promise<T> {
    const read: ReadBody<T> = async (body) => {
      const text = await readBoundedStream(body, MAX_OBJECT_CHARS);
      return text === "" ? undefined : JSON.parse(text);
    };
    return this.#repeat(request, read);
  }

  /**
   * Reads a list while it comes. @param onItem gets each of its items, unchecked
   * @returns its resourceVersion
   * @throws ApiStatusError, ApiUnreachableError, or the reason of the signal
   */
  list(request: ApiRequest, onItem: (item: unknown) => void): Promise<string | undefined> {
    return this.#repeat(request, async (body) => {
      let version: string | undefined;
      for await (const part of partsOfList(body, LIST, MAX_LIST_BYTES)) {
        const { metadata, items } = v.parse(ListSchema, JSON.parse(part));
        version ??= metadata?.resourceVersion;
        for (const item of items ?? []) onItem(item);
      }
      return version;
    });
  }

  /** An object that the server sent; undefined, and a warning, for one that its schema refuses. @param path of its list */
  read<T>(schema: v.GenericSchema<unknown, T>, value: unknown, path: string): T | undefined {
    const { success, output, issues } = v.safeParse(schema, value, { abortEarly: true });
    if (success) return output;
    const object = ((value as { object?: unknown } | null)?.object ?? value) as {
      metadata?: { name?: unknown };
    } | null;
    const name = object?.metadata?.name;
    const what = typeof name === "string" ? `an object "${name.slice(0, 253)}"` : "an object without a name";
    // The message of the issue may have the value of a Secret.
    const why = `${v.getDotPath(issues[0]) ?? "the whole"} is missing or has no such value`;
    const message = `GET ${path}: ${what} is left out: ${why}`;
    this.#facts.log(message, "warn", message);
    return undefined;
  }

  async #repeat<T>(request: ApiRequest, readBody: ReadBody<T>): Promise<T> {
    const { clock, random = Math.random } = this.#deps;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#attempt(request, readBody);
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
    const { tls, proxy } = settings;
    const reset = this.#reset.signal;
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(new Error("no response in time")), RESPONSE_TIMEOUT_MS);
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silenceMs());
    };
    let isOpen = false;
    try {
      const response = await httpFetch(toUrl(settings, path, query), {
        headers: this.#headers(settings),
        tls,
        proxy,
        keepalive: false,
        // Bun's own limit would end a silent watch after five minutes.
        timeout: false,
        signal: AbortSignal.any([signal, reset, silence.signal]),
      } as BunFetchRequestInit);
      isOpen = response.status === 200;
      if (!isOpen) throw await readRefusal(`GET ${path}`, response);
      heard();
      this.reachability.noteResponse();
      onOpen?.();
      for await (const line of linesOf(response.body, MAX_OBJECT_CHARS)) {
        heard();
        if (line !== "") onEvent(JSON.parse(line));
      }
      return false;
    } catch (error) {
      signal.throwIfAborted();
      // The watch begins again from where it was.
      if (reset.aborted) return true;
      if (isOpen && silence.signal.aborted) return false;
      const why = isOpen ? describeBreak(error) : describeFailure(error, settings.server);
      // A response of the server, as in an ERROR event, stays what it is.
      const isAnswer = error instanceof ApiStatusError;
      const failure = isAnswer ? error : new ApiUnreachableError(`GET ${path}: ${why}`, { cause: error });
      if (isAway(failure)) this.reachability.noteFailure(messageOf(failure));
      throw failure;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends all watches, which begin again: their connections may have died with others. */
  resetWatches(): void {
    this.#reset.abort(new Error("watches are opened again"));
    this.#reset = new AbortController();
  }

  async #attempt<T>(request: ApiRequest, readBody: ReadBody<T>): Promise<T> {
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
      const result = await (response.ok ? readBody(response.body) : readRefusal(what, response));
      this.#mayReuse = true;
      if (response.status === 401) this.#deps.credentials.invalidate();
      if (isAway(result)) this.reachability.noteFailure(messageOf(result));
      else this.reachability.noteResponse();
      if (result instanceof ApiStatusError) throw result;
      return result;
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

type ReadBody<T> = (body: ReadableStream<Uint8Array> | null) => Promise<T>;

/** As Go writes a list. */
const LIST = ['{"items":[', '},{"metadata":', "]}"];
/** All pods of a node, or all Services of a cluster. */
const MAX_LIST_BYTES = 256 * 1024 * 1024;
const ListSchema = v.object({
  metadata: v.optional(v.object({ resourceVersion: v.exactOptional(v.string()) })),
  items: v.nullable(v.array(v.unknown())),
});

async function readRefusal(what: string, { status, headers, body }: Response): Promise<ApiStatusError> {
  const text = await readBoundedStream(body, MAX_REFUSAL_BYTES).catch(() => "");
  return toApiError(what, status, text, headers.get("Retry-After"));
}

const isWorthRepeating = (error: unknown): error is ApiStatusError =>
  error instanceof ApiStatusError && (error.code === 429 || (error.code >= 500 && error.retryAfterMs !== undefined));

function toUrl({ server }: ConnectionSettings, path: string, query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString();
  return `${server}${path}${text === "" ? "" : `?${text}`}`;
}

/** A watch is answered at once, before its first event. */
const RESPONSE_TIMEOUT_MS = 30_000;

/** Why a watch ended that was open. */
const describeBreak = (error: unknown): string =>
  codeOf(error) === "ECONNRESET" ? "the API server closed the connection" : messageOf(error);
