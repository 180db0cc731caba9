import http from "node:http";
import https from "node:https";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../../base/files/bounded-read.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { Deadline, realSchedule, type Schedule } from "./deadline.ts";
import { DockerError, DockerProtocolError, DockerUnreachableError, daemonError } from "./docker-error.ts";
import {
  type CallOptions,
  type DockerRequest,
  type DockerResponse,
  type DockerStream,
  headerText,
  operationOf,
  queryText,
  requestHeaders,
} from "./docker-request.ts";
import { type DockerEndpoint, endpointText } from "./endpoint.ts";
import { explainUnreachable } from "./explain-unreachable.ts";
import { HijackedConnection } from "./hijacked-connection.ts";

/** Largest answer that is read whole: a list of 10,000 containers has about 50 MB. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** Limit of an error answer: an engine's refusal is one sentence. */
const MAX_ERROR_BYTES = 64 * 1024;

/** Deadline of a call that sets none. */
const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * HTTP to one engine. Short calls use `fetch` (pooled, cheap); a stream uses `node:http` on its own
 * connection, because Bun counts every open fetch of the process against one cap of 256 and lets the next one wait.
 */
export class DockerTransport {
  readonly endpoint: DockerEndpoint;
  readonly #schedule: Schedule;
  readonly #timeoutMs: number;
  readonly #maxResponseBytes: number;
  #tls: { ca: string; cert: string; key: string; rejectUnauthorized: boolean } | undefined;

  constructor(
    endpoint: DockerEndpoint,
    schedule: Schedule = realSchedule,
    timeoutMs = DEFAULT_TIMEOUT_MS,
    maxResponseBytes = MAX_ANSWER_BYTES,
  ) {
    this.endpoint = endpoint;
    this.#schedule = schedule;
    this.#timeoutMs = timeoutMs;
    this.#maxResponseBytes = maxResponseBytes;
  }

  /**
   * One call, the answer read whole.
   * @throws DockerError for any status from 400; DockerProtocolError for an answer that is too large;
   *   DockerUnreachableError; the signal's reason.
   */
  async send(request: DockerRequest): Promise<DockerResponse> {
    const operation = operationOf(request);
    const deadline = this.#deadline(request);
    try {
      const response = await fetch(`${this.#origin()}${request.path}${queryText(request.query)}`, {
        method: request.method,
        headers: requestHeaders(request),
        signal: deadline.signal,
        redirect: "manual",
        // Our own deadline rules; Bun's default would end a silent call after five minutes.
        timeout: false,
        ...(request.json !== undefined ? { body: JSON.stringify(request.json) } : {}),
        ...(request.body !== undefined ? { body: request.body } : {}),
        ...(this.endpoint.kind === "unix" ? { unix: this.endpoint.path } : { tls: this.#tlsOptions() }),
      } as BunFetchRequestInit);
      const limit = response.status >= 400 ? MAX_ERROR_BYTES : (request.maxResponseBytes ?? this.#maxResponseBytes);
      const text = await collectText(response.body ?? [], limit, operation);
      const header = (name: string) => response.headers.get(name) ?? undefined;
      if (response.status >= 400) throw daemonError(response.status, operation, text);
      return { status: response.status, header, text };
    } catch (error) {
      throw this.#explain(error, operation, request, deadline);
    } finally {
      deadline.end();
    }
  }

  /**
   * A call whose answer is read while it comes, on a connection of its own. The deadline covers the way to the headers;
   * the signal ends the stream at any time.
   * @throws as `send`
   */
  async open(request: DockerRequest): Promise<DockerStream> {
    const operation = operationOf(request);
    const deadline = this.#deadline(request);
    try {
      const response = await this.#request(request, deadline.signal);
      const stream = this.#stream(response, operation, request);
      if (stream.status >= 400) {
        throw daemonError(stream.status, operation, await collectText(stream.chunks, MAX_ERROR_BYTES, operation));
      }
      return stream;
    } catch (error) {
      throw this.#explain(error, operation, request, deadline);
    } finally {
      deadline.end();
    }
  }

  /** Like `send`, on a connection of its own: for calls that may be pending for long in great number (wait, stop). */
  async sendUnpooled(request: DockerRequest): Promise<DockerResponse> {
    const operation = operationOf(request);
    const deadline = this.#deadline(request);
    try {
      const inner: DockerRequest = { ...request, signal: deadline.signal, timeoutMs: 0 };
      const response = await this.#request(inner, deadline.signal);
      const stream = this.#stream(response, operation, inner);
      const text = await collectText(stream.chunks, this.#maxResponseBytes, operation);
      if (stream.status >= 400) throw daemonError(stream.status, operation, text);
      return { status: stream.status, header: stream.header, text };
    } catch (error) {
      throw this.#explain(error, operation, request, deadline);
    } finally {
      deadline.end();
    }
  }

  /**
   * A call after which the connection carries bytes both ways, as the docker command does for attach and exec. The
   * deadline covers the way to the engine's consent; the signal ends only that, too: afterwards there is `close`.
   * @throws as `send`
   */
  async hijack(request: DockerRequest): Promise<HijackedConnection> {
    const operation = operationOf(request);
    const deadline = this.#deadline(request);
    try {
      const headers = { ...request.headers, Connection: "Upgrade", Upgrade: "tcp" };
      const answer = await this.#request({ ...request, headers }, deadline.signal, true);
      if (answer instanceof HijackedConnection) return answer;
      const { status, chunks } = this.#stream(answer, operation, request);
      if (status >= 400) throw daemonError(status, operation, await collectText(chunks, MAX_ERROR_BYTES, operation));
      throw new DockerError(500, operation, `the connection was not upgraded (status ${status})`);
    } catch (error) {
      throw this.#explain(error, operation, request, deadline);
    } finally {
      deadline.end();
    }
  }

  #request(request: DockerRequest, signal: AbortSignal): Promise<http.IncomingMessage>;
  #request(
    request: DockerRequest,
    signal: AbortSignal,
    mayUpgrade: true,
  ): Promise<http.IncomingMessage | HijackedConnection>;
  #request(
    request: DockerRequest,
    signal: AbortSignal,
    mayUpgrade = false,
  ): Promise<http.IncomingMessage | HijackedConnection> {
    const endpoint = this.endpoint;
    const body = request.json !== undefined ? JSON.stringify(request.json) : undefined;
    if (request.body !== undefined) throw new Error("a body of bytes goes by send()");
    const options: https.RequestOptions = {
      method: request.method,
      path: `${request.path}${queryText(request.query)}`,
      headers: {
        ...requestHeaders(request),
        Host: "docker",
        ...(body !== undefined ? { "Content-Length": String(Buffer.byteLength(body)) } : {}),
      },
      agent: false,
      ...(endpoint.kind === "unix" ? { socketPath: endpoint.path } : { host: endpoint.host, port: endpoint.port }),
      ...(endpoint.kind === "tcp" && endpoint.tls ? this.#tlsOptions() : {}),
    };
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const request =
        endpoint.kind === "tcp" && endpoint.tls ? https.request(options, resolve) : http.request(options, resolve);
      const stop = () => {
        request.destroy();
        reject(signal.reason);
      };
      const release = () => signal.removeEventListener("abort", stop);
      signal.addEventListener("abort", stop, { once: true });
      request.once("close", release);
      request.once("response", release);
      if (mayUpgrade) {
        request.once("upgrade", (_response, socket, head) => {
          release();
          resolve(new HijackedConnection(socket, head));
        });
      }
      request.on("error", reject);
      request.end(body);
    });
  }

  #stream(response: http.IncomingMessage, operation: string, options: CallOptions): DockerStream {
    const signal = options.signal;
    const close = () => void response.destroy();
    const explain = (error: unknown) => this.#explain(error, operation, options, undefined);
    signal?.addEventListener("abort", close, { once: true });
    response.once("close", () => signal?.removeEventListener("abort", close));
    const chunks = async function* (): AsyncGenerator<Uint8Array> {
      try {
        if (signal?.aborted) throw signal.reason;
        for await (const chunk of response) yield chunk as Uint8Array;
        if (signal?.aborted) throw signal.reason;
        // A connection that dies in the middle of a chunked answer ends the loop like a proper end does.
        if (!response.complete) throw Object.assign(new Error("the answer was cut short"), { code: "ECONNRESET" });
      } catch (error) {
        throw explain(error);
      } finally {
        close();
      }
    };
    return {
      status: response.statusCode ?? 0,
      header: (name) => headerText(response.headers, name),
      chunks: chunks(),
      close,
    };
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

  /** Turns errors of fetch and node:http into ours; the caller's own abort passes unchanged. */
  #explain(error: unknown, operation: string, options: CallOptions, deadline: Deadline | undefined): unknown {
    if (options.signal?.aborted) return options.signal.reason;
    const isOurs = error instanceof DockerError || error instanceof DockerProtocolError;
    if (isOurs || error instanceof DockerUnreachableError) return error;
    const expiredMs = deadline?.expired ? (options.timeoutMs ?? this.#timeoutMs) : undefined;
    return explainUnreachable(error, operation, this.endpoint, expiredMs);
  }
}

/** The text of a stream. Leaving the loop early closes the connection. @throws DockerProtocolError beyond `maxBytes` */
async function collectText(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
  operation: string,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new DockerProtocolError(operation, `more than ${maxBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
