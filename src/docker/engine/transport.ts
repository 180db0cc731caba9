import http from "node:http";
import https from "node:https";
import type { Duplex } from "node:stream";
import { TurnPace } from "../../base/concurrency/turn-pace.ts";
import { readBoundedStream, StreamTooLongError, writeTo } from "../../base/files/bounded-stream.ts";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../../base/files/whole-file.ts";
import { httpFetch } from "../../base/host/http-fetch.ts";
import type { UnreachableKind } from "../../base/model/engine-error.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { DockerError, DockerProtocolError, DockerUnreachableError, daemonError } from "./docker-error.ts";
import { type DockerEndpoint, endpointText } from "./endpoint.ts";

/** Runs a callback once after `ms` and hands back its cancellation: `Clock.schedule`. */
export type Schedule = (ms: number, callback: () => void) => () => void;

/** The real timer, for callers without a `Clock`. */
export const realSchedule: Schedule = (ms, callback) => {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
};

/** How long one call may take and who may end it early. */
export interface CallOptions {
  /** Ends the call; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** From sending to the last byte of the response; of a stream: to its headers. 0 = no deadline. */
  timeoutMs?: number | undefined;
}

type QueryValue = string | number | boolean | undefined;

export interface DockerRequest extends CallOptions {
  /** Largest response that is read whole. Default 64 MiB. */
  maxResponseBytes?: number;
  method: "GET" | "POST" | "DELETE";
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

/** Reads a response to its end. */
export type TakeResponse<T> = (response: Response, operation: string) => Promise<T>;

/** Largest response that is read to its end: a list of 10,000 containers has about 50 MB. */
export const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
/** Limit of an error response: an engine's refusal is one sentence. */
const MAX_ERROR_BYTES = 64 * 1024;

/** Calls at a time whose connections are kept for later calls: Bun keeps an idle one for minutes, and as many as there were. */
const MAX_POOLED = 32;

/** Streams that are opened in one turn of the event loop. */
const OPENED_PER_TURN = 4;

/** Deadline of a call that sets none. */
const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * HTTP to one engine, by `fetch` on pooled connections (measured in bench/docker-by-fetch.md). Bun lets 256 fetches be
 * open at a time, so the kubelet raises that limit (`setRuntimeVariables`). A hijacked call uses `node:http`: `fetch` can
 * read after a 101, but not write. A POST whose pooled connection closes fails as `connection-lost`; GET and DELETE are
 * sent again once.
 */
export class DockerTransport {
  readonly endpoint: DockerEndpoint;
  readonly #schedule: Schedule;
  readonly #timeoutMs: number;
  readonly #opening = new TurnPace(OPENED_PER_TURN);
  /** Calls in work that are read whole. */
  #sending = 0;
  #tls: { ca: string; cert: string; key: string; rejectUnauthorized: boolean } | undefined;

  constructor(endpoint: DockerEndpoint, schedule: Schedule = realSchedule, timeoutMs = DEFAULT_TIMEOUT_MS) {
    this.endpoint = endpoint;
    this.#schedule = schedule;
    this.#timeoutMs = timeoutMs;
  }

  /** One call, the response read whole. @throws as `read` */
  send(request: DockerRequest): Promise<{ headers: Headers; text: string }> {
    return this.read(request, async ({ headers, body }) => {
      return { headers, text: await readBoundedStream(body, request.maxResponseBytes ?? MAX_RESPONSE_BYTES) };
    });
  }

  /**
   * One call, the response read to its end by `take`.
   * @throws DockerError for any status from 400; DockerProtocolError; DockerUnreachableError
   */
  async read<T>(request: DockerRequest, take: TakeResponse<T>): Promise<T> {
    const deadline = this.#deadline(request);
    return this.#explained(request, deadline, async (operation) => {
      try {
        const isKept = ++this.#sending <= MAX_POOLED;
        return await take(await this.#fetch(request, operation, deadline.signal, isKept), operation);
      } finally {
        this.#sending--;
        deadline.end();
      }
    });
  }

  /**
   * A call whose response is read while it comes, once. The deadline covers the way to the headers. Leaving the loop of the
   * chunks closes the connection. @throws as `read`, the chunks too
   */
  async open(request: DockerRequest): Promise<{ headers: Headers; chunks: AsyncIterable<Uint8Array> }> {
    const deadline = this.#deadline(request);
    return this.#explained(request, deadline, async (operation) => {
      try {
        await this.#opening.enter(1);
        const { body, headers } = await this.#fetch(request, operation, deadline.signal, false);
        deadline.stopTimer();
        const explained = <T>(work: () => Promise<T>) => this.#explained(request, deadline, work);
        const chunks = readChunks(body, explained, () => deadline.end());
        return { headers, chunks };
      } catch (error) {
        deadline.end();
        throw error;
      }
    });
  }

  /** A call after which bytes go both ways. Deadline and signal end with the engine's consent. @throws as `send` */
  async hijack(request: DockerRequest): Promise<HijackedConnection> {
    const deadline = this.#deadline(request);
    return this.#explained(request, deadline, async (operation) => {
      try {
        const response = await this.#upgrade(request, deadline.signal);
        if (response instanceof HijackedConnection) return response;
        const { statusCode: status = 0 } = response;
        if (status >= 400) throw daemonError(status, operation, await readBoundedStream(response, MAX_ERROR_BYTES));
        throw new DockerError(500, operation, `the connection was not upgraded (status ${status})`);
      } finally {
        deadline.end();
      }
    });
  }

  /** @param keepalive keeps the connection for later calls. @throws DockerError for any status from 400 */
  async #fetch(request: DockerRequest, operation: string, signal: AbortSignal, keepalive: boolean): Promise<Response> {
    const response = await httpFetch(`${this.#origin()}${request.path}${queryText(request.query)}`, {
      method: request.method,
      headers: requestHeaders(request),
      signal,
      keepalive,
      // Our own deadline rules; Bun's default would end a silent call after five minutes.
      timeout: false,
      ...(request.json !== undefined ? { body: JSON.stringify(request.json) } : {}),
      ...(request.body !== undefined ? { body: request.body } : {}),
      ...(this.endpoint.kind === "unix" ? { unix: this.endpoint.path } : { tls: this.#tlsOptions() }),
    } as BunFetchRequestInit);
    if (response.status < 400) return response;
    throw daemonError(response.status, operation, await readBoundedStream(response.body, MAX_ERROR_BYTES));
  }

  #upgrade(request: DockerRequest, signal: AbortSignal): Promise<http.IncomingMessage | HijackedConnection> {
    const { endpoint } = this;
    const body = request.json !== undefined ? JSON.stringify(request.json) : undefined;
    const options: https.RequestOptions = {
      method: request.method,
      path: `${request.path}${queryText(request.query)}`,
      headers: {
        ...requestHeaders(request),
        Connection: "Upgrade",
        Upgrade: "tcp",
        Host: "docker",
        ...(body !== undefined ? { "Content-Length": String(Buffer.byteLength(body)) } : {}),
      },
      agent: false,
      ...(endpoint.kind === "unix" ? { socketPath: endpoint.path } : { host: endpoint.host, port: endpoint.port }),
      ...this.#tlsOptions(),
    };
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const sent = endpoint.kind === "tcp" && endpoint.tls ? https.request(options) : http.request(options);
      const stop = () => {
        sent.destroy();
        reject(signal.reason);
      };
      const settle = (result: http.IncomingMessage | HijackedConnection) => {
        signal.removeEventListener("abort", stop);
        resolve(result);
      };
      signal.addEventListener("abort", stop, { once: true });
      sent.once("close", () => signal.removeEventListener("abort", stop));
      sent.once("response", settle);
      sent.once("upgrade", (_response, socket, head) => settle(new HijackedConnection(socket, head)));
      sent.on("error", reject);
      sent.end(body);
    });
  }

  #origin(): string {
    const endpoint = this.endpoint;
    if (endpoint.kind === "unix") return "http://docker";
    const host = endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host;
    return `${endpoint.tls ? "https" : "http"}://${host}:${endpoint.port}`;
  }

  #tlsOptions() {
    if (this.endpoint.kind !== "tcp" || !this.endpoint.tls) return undefined;
    const { caFile, certFile, keyFile, verify } = this.endpoint.tls;
    try {
      this.#tls ??= {
        ca: readBoundedText(caFile, SYSTEM_FILE_BYTES),
        cert: readBoundedText(certFile, SYSTEM_FILE_BYTES),
        key: readBoundedText(keyFile, SYSTEM_FILE_BYTES),
        rejectUnauthorized: verify,
      };
    } catch (cause) {
      const why = messageOf(cause);
      throw new DockerUnreachableError(
        "bad-endpoint",
        "",
        `Docker at ${endpointText(this.endpoint)} wants TLS, but its files (DOCKER_CERT_PATH) cannot be read: ${why}`,
        { cause },
      );
    }
    return this.#tls;
  }

  #deadline(options: CallOptions): Deadline {
    return new Deadline(options.timeoutMs ?? this.#timeoutMs, options.signal, this.#schedule);
  }

  /** Runs `work`, and turns errors of fetch and node:http into ours; the caller's own abort passes unchanged. */
  async #explained<T>(request: DockerRequest, deadline: Deadline, work: (operation: string) => Promise<T>): Promise<T> {
    const operation = operationOf(request);
    try {
      return await work(operation);
    } catch (error) {
      if (request.signal?.aborted) throw request.signal.reason;
      if (error instanceof StreamTooLongError) throw new DockerProtocolError(operation, error.message);
      const isOurs = error instanceof DockerError || error instanceof DockerProtocolError;
      if (isOurs || error instanceof DockerUnreachableError) throw error;
      const expiredMs = deadline.expired ? (request.timeoutMs ?? this.#timeoutMs) : undefined;
      throw explainUnreachable(error, operation, this.endpoint, expiredMs);
    }
  }
}

async function* readChunks(
  body: ReadableStream<Uint8Array> | null,
  explained: <T>(read: () => Promise<T>) => Promise<T>,
  onEnd: () => void,
): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  try {
    for (;;) {
      const { done, value } = (await explained(async () => reader?.read())) ?? { done: true };
      if (done) return;
      yield value!;
    }
  } finally {
    // Closes the connection of a stream that has not ended.
    await reader?.cancel().catch(() => {});
    onEnd();
  }
}

/** Why a call got no response, and what to do about it. @param expiredMs the deadline, if it passed */
function explainUnreachable(
  error: unknown,
  operation: string,
  endpoint: DockerEndpoint,
  expiredMs: number | undefined,
): DockerUnreachableError {
  const where = endpointText(endpoint);
  const code = expiredMs === undefined ? String((error as { code?: unknown } | undefined)?.code) : "expired";
  const meanings: readonly [UnreachableKind, RegExp, string][] = [
    ["timeout", /^expired$/, `Docker ${operation} at ${where} did not answer within ${(expiredMs ?? 0) / 1000} s`],
    [
      "no-socket",
      /^ENOENT$/,
      `No Docker engine at ${where}: there is no such socket. Install and start Docker, or say where it listens with --docker-endpoint or DOCKER_HOST`,
    ],
    [
      "no-permission",
      /^(EACCES|EPERM)$/,
      `No permission to use the Docker engine at ${where}: run as root, or as a member of the group that owns the socket (usually "docker")`,
    ],
    [
      "refused",
      /^(ECONNREFUSED|ConnectionRefused)$/,
      endpoint.kind === "unix"
        ? `No process listens at ${where}: the socket exists, but no Docker engine answers. Is dockerd running?`
        : `No process listens at ${where}. Is dockerd running there, with that TCP port?`,
    ],
    [
      "refused",
      /^(ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|FailedToOpenSocket)$/,
      `The Docker engine at ${where} cannot be reached (${code})`,
    ],
    [
      "connection-lost",
      /^(ECONNRESET|EPIPE|ConnectionClosed|ERR_STREAM_PREMATURE_CLOSE)$/,
      `The Docker engine at ${where} closed the connection during ${operation}; it may be restarting`,
    ],
    [
      "not-trusted",
      /CERT|TLS|SELF_SIGNED|VERIFY/,
      `The certificate of the Docker engine at ${where} is not trusted (${code}): check DOCKER_CERT_PATH/ca.pem and the name in DOCKER_HOST`,
    ],
    ["not-docker", /(?:)/, `The server at ${where} is not a Docker engine: ${messageOf(error)}`],
  ];
  const [kind, , message] = meanings.find(([, codes]) => codes.test(code))!;
  return new DockerUnreachableError(kind, operation, message, { cause: error });
}

/** A signal that aborts with the caller's, or at the deadline; `end` takes all hooks back, so nothing piles up. */
class Deadline {
  readonly #controller = new AbortController();
  readonly #cancel: () => void;
  readonly #outer: AbortSignal | undefined;
  expired = false;

  constructor(timeoutMs: number, outer: AbortSignal | undefined, schedule: Schedule) {
    this.#outer = outer;
    this.#cancel =
      timeoutMs > 0
        ? schedule(timeoutMs, () => {
            this.expired = true;
            this.#controller.abort(new DOMException("the deadline passed", "TimeoutError"));
          })
        : () => {};
    if (outer?.aborted) this.#forward();
    else outer?.addEventListener("abort", this.#forward, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly #forward = () => this.#controller.abort(this.#outer?.reason);

  /** The rest may take as long as it likes; the caller's signal still ends it. */
  stopTimer(): void {
    this.#cancel();
  }

  end(): void {
    this.#cancel();
    this.#outer?.removeEventListener("abort", this.#forward);
  }
}

/** `POST /containers/create` of `/v1.41/containers/create`. */
function operationOf(request: DockerRequest): string {
  const path = request.path.replace(/^\/v\d+\.\d+(?=\/)/, "");
  return `${request.method} ${path.includes("%") ? decodeURIComponent(path) : path}`;
}

/** Headers of the request, without those of the connection. */
function requestHeaders(request: DockerRequest): Record<string, string> {
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
function queryText(query: DockerRequest["query"]): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === false || value === "") continue;
    parts.push(`${name}=${value === true ? "1" : encodeURIComponent(value)}`);
  }
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}

/** A connection to the engine that carries what a process reads and writes. */
export class HijackedConnection {
  readonly #socket: Duplex;
  readonly #head: Uint8Array;

  /** @param head bytes that followed the engine's 101 response */
  constructor(socket: Duplex, head: Uint8Array) {
    this.#socket = socket;
    this.#head = head;
    // A reader sees the end of the stream; a broken connection needs no other report.
    socket.on("error", () => {});
  }

  /** The output of the process, as the engine frames it, until its end or the connection's. May be read once. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    if (this.#head.length > 0) yield this.#head;
    try {
      for await (const chunk of this.#socket) yield chunk as Uint8Array;
    } catch {
      // The connection broke: everything that arrived has been read.
    }
  }

  /** Resolves when more may be written, also when the connection no longer takes data. */
  write(data: Uint8Array): Promise<void> {
    return writeTo(this.#socket, data);
  }

  /** The process reads the end of its input; its output still comes. */
  endInput(): void {
    if (this.#socket.writable) this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }
}
