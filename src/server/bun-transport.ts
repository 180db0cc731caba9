import { readdirSync, statSync } from "node:fs";
import { TurnPace } from "../base/concurrency/turn-pace.ts";
import { loadLibc } from "../base/host/libc.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { memoized } from "../base/model/memoized.ts";
import { messageOf } from "../base/text/error-message.ts";
import { countKeptFiles, ownOpenFilesLimit } from "../stats/cgroups/kernel-files.ts";
import {
  type HttpResponse,
  IDLE_MS,
  type ListenAddress,
  type ListenerResponse,
  onPrivateSocket,
  type RequestHandler,
  type StreamedResponse,
  type Transport,
  textResponse,
} from "./request-handler.ts";
import { BunWebSocket, MAX_MESSAGE_BYTES, MAX_UNSENT_BYTES } from "./websocket.ts";

const IDLE_SECONDS = IDLE_MS / 1000;
/** No route reads more: the page's manifests are the largest. Beyond it Bun answers 413 before the body. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Above this, all connections are cut. So many that end together, at `idleTimeout`, take 50 ms. */
const MAX_OPEN_FILES = Math.min(2_048, ownOpenFilesLimit() / 2);
/** Responses that are made, sent or streamed; most of them then belong to clients that read nothing. */
const MAX_PENDING = 1_024;
const CHECK_MS = 10_000;

type BunServer = ReturnType<typeof Bun.serve<BunSession>>;
type BunRequest = Parameters<BunServer["requestIP"]>[0];

interface BunSession {
  socket: BunWebSocket;
  run(socket: BunWebSocket): Promise<void>;
}

/**
 * HTTP by Bun.serve: for ports without TLS. What Bun guards alone, measured with 1.4.5: header blocks above 16 KiB
 * and more than 250 headers are 431, `maxRequestBodySize` is 413 before the body arrives; silent clients, and headers or
 * bodies that trickle a byte a second, end at `idleTimeout` (with 6 s after 8 to 13 s), and so do clients that read
 * nothing (8 s); a pipelined request behind one in work ends its connection. 100 clients that do not read 5 MB take 500 MB
 * when the body is a Buffer, which is copied for each, and nothing when it is one Blob: {@link blobOf}.
 *
 * A limit for connections is missing: 8,000 silent ones took hardly any memory, but as many descriptors, without which no
 * process can be started; `closeIdleConnections` left 7,980 of them. So the descriptors of the process are counted every
 * 10 s, and too many of them, or too many unread responses, cut all connections of the port. `stop(true)` would do that at
 * once: it closes 4,000 in one turn of the loop, which takes 90 ms; shut down by system calls, they end over many turns.
 */
export class BunTransport implements Transport {
  readonly #handler: RequestHandler;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #maxOpenFiles: number;
  readonly #running = new Set<Promise<unknown>>();
  #server: BunServer | undefined;
  /** With the port that the system chose; unused for a socket. */
  #address = { hostname: "", port: 0 };
  #cancelCheck: (() => void) | undefined;
  #isCutting = false;

  constructor(handler: RequestHandler, clock: Clock, logger: Logger, maxOpenFiles = MAX_OPEN_FILES) {
    this.#handler = handler;
    this.#clock = clock;
    this.#logger = logger;
    this.#maxOpenFiles = maxOpenFiles;
  }

  get port(): number | undefined {
    return this.#server?.port;
  }

  async listen(address: ListenAddress): Promise<void> {
    if ("socketPath" in address) {
      this.#server = onPrivateSocket(address.socketPath, (unix) => this.#serve({ unix }));
      return;
    }
    this.#server = this.#serve(address);
    this.#address = { ...address, port: this.#server.port ?? address.port };
    this.#checkLater();
  }

  /** Cuts all connections. Resolves when the work for them has ended. */
  async stop(): Promise<void> {
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
    // Its promise waits for handlers, which learn from their signals that the client is gone.
    void this.#server?.stop(true);
    this.#server = undefined;
    await Promise.allSettled(this.#running);
  }

  #serve(address: { hostname: string; port: number } | { unix: string }): BunServer {
    return Bun.serve<BunSession>({
      ...(address as { hostname: string; port: number }),
      // Without it two kubelets can share a port: the documented default, false, does not hold.
      reusePort: false,
      development: false,
      idleTimeout: IDLE_SECONDS,
      maxRequestBodySize: MAX_BODY_BYTES,
      fetch: (request, server) => this.#track(this.#fetch(request, server)),
      // Reached by a fault of our own only: `respond` never rejects.
      error: () => new Response("500 internal server error\n", { status: 500 }),
      websocket: {
        maxPayloadLength: MAX_MESSAGE_BYTES,
        // Senders wait before this is reached; pongs do not.
        backpressureLimit: MAX_UNSENT_BYTES * 4,
        closeOnBackpressureLimit: true,
        perMessageDeflate: false,
        // A session ends its connection itself.
        idleTimeout: 0,
        sendPings: false,
        open: (ws) => {
          ws.data.socket.opened(ws);
          void this.#track(this.#run(ws.data));
        },
        message: ({ data }, message) => data.socket.received(Buffer.from(message as Buffer)),
        ping: ({ data }) => data.socket.onActivity(),
        pong: ({ data }) => data.socket.onActivity(),
        drain: ({ data }) => data.socket.drained(),
        close: ({ data }) => data.socket.ended(),
      },
    });
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work)).catch(() => {});
    return work;
  }

  async #fetch(request: BunRequest, server: BunServer): Promise<Response | undefined> {
    const gone = new AbortController();
    const end = () => gone.abort(new DOMException("the client is gone", "AbortError"));
    request.signal.addEventListener("abort", end, { once: true });
    // A route may take its time.
    server.timeout(request, 0);
    const client = server.requestIP(request);
    const wantsUpgrade = /\bupgrade\b/i.test(request.headers.get("Connection") ?? "");
    const response = await this.#handler.respond({
      head: {
        method: request.method,
        header: (name) => request.headers.get(name),
        shown: undefined,
        isSecure: false,
        ports: client && server.port ? { client: client.port, server: server.port } : undefined,
        upgrade: wantsUpgrade ? (request.headers.get("Upgrade") ?? "").toLowerCase() : "",
        sessions: server.pendingWebSockets + 1,
        signal: gone.signal,
      },
      target: targetOf(request.url),
      address: client?.address ?? "",
      chunks: () => (request.body ?? []) as AsyncIterable<Uint8Array>,
      awaitsBody: (isAwaited) => server.timeout(request, isAwaited ? IDLE_SECONDS : 0),
    });
    if (server.pendingRequests > MAX_PENDING) void this.#cutAll("unread responses", server.pendingRequests);
    return this.#toResponse(request, server, response, end);
  }

  #toResponse(
    request: BunRequest,
    server: BunServer,
    response: ListenerResponse,
    end: () => void,
  ): Response | undefined {
    if ("takeOver" in response) return toBunResponse(textResponse(400, "This cannot be upgraded.\n"));
    if ("chunks" in response) return new Response(this.#stream(response, request.signal, end), response);
    if ("run" in response) {
      const { protocol, run } = response;
      const headers = protocol === undefined ? {} : { "Sec-WebSocket-Protocol": protocol };
      if (server.upgrade(request, { headers, data: { socket: new BunWebSocket(), run } })) return undefined;
      return toBunResponse(textResponse(400, "This is no handshake of a WebSocket.\n"));
    }
    server.timeout(request, IDLE_SECONDS);
    return toBunResponse(response);
  }

  #stream({ chunks }: StreamedResponse, gone: AbortSignal, end: () => void): ReadableStream {
    const send = async (controller: ReadableStreamDirectController) => {
      try {
        // Bun sends headers with the first chunk, which may come hours later where a log is followed.
        await controller.flush(true);
        for await (const chunk of chunks) {
          if (gone.aborted) return;
          controller.write(chunk);
          await controller.flush(true);
        }
        controller.close();
      } catch (error) {
        if (!gone.aborted) this.#logger.debug("A request was not answered completely", { error: messageOf(error) });
        // Otherwise the client would take a part of the response for all of it.
        controller.close(error as Error);
      } finally {
        end();
      }
    };
    return new ReadableStream({ type: "direct", pull: (controller) => this.#track(send(controller)) });
  }

  async #run({ socket, run }: BunSession): Promise<void> {
    try {
      await run(socket);
    } catch (error) {
      // A client that leaves ends its session in the middle.
      this.#logger[socket.gone.aborted ? "debug" : "error"]("A session failed", { error: messageOf(error) });
      socket.destroy();
    }
  }

  #checkLater(): void {
    this.#cancelCheck = this.#clock.schedule(CHECK_MS, () => {
      const files = countOpenFiles();
      if (files > this.#maxOpenFiles) void this.#cutAll("open files", files);
      else if (!this.#server) this.#open();
      this.#checkLater();
    });
  }

  async #cutAll(what: string, count: number): Promise<void> {
    if (!this.#server || !this.#cancelCheck || this.#isCutting) return;
    this.#isCutting = true;
    this.#logger.warn(`Too many ${what}: all connections of a port are cut`, { port: this.port, count });
    try {
      await endConnections(this.#address.port);
    } catch {
      void this.#server?.stop(true);
      this.#open();
    }
    this.#isCutting = false;
  }

  /** Tried again at the next check when it fails. */
  #open(): void {
    try {
      this.#server = this.#serve(this.#address);
    } catch (error) {
      this.#server = undefined;
      this.#logger.error("A port cannot be opened again, trying again", { ...this.#address, error: messageOf(error) });
    }
  }
}

const SHUT_RDWR = 2;
/** AF_INET and AF_INET6. */
const FAMILIES_WITH_PORT = [2, 10];
/** Bytes of `struct sockaddr_in6`; the port is at 2, as in `struct sockaddr_in`, after the family. */
const ADDRESS_BYTES = 28;
/** In the next turn Bun closes what was shut down, at up to 30 us each. */
const DESCRIPTORS_PER_TURN = 250;

/** Ends the connections that were accepted on a port, a few in each turn. @throws Error where Bun may not make code executable */
async function endConnections(port: number): Promise<void> {
  const libc = await loadLibc();
  const address = Buffer.alloc(ADDRESS_BYTES);
  const pace = new TurnPace(DESCRIPTORS_PER_TURN);
  for (const descriptor of readdirSync("/proc/self/fd").map(Number)) {
    await pace.enter(1);
    // The socket that listens has no peer.
    const isConnection = libc.getpeername(descriptor, address, Int32Array.of(ADDRESS_BYTES)) === 0;
    if (!isConnection || libc.getsockname(descriptor, address, Int32Array.of(ADDRESS_BYTES)) !== 0) continue;
    // The family alone is written for a pair of sockets.
    const hasPort = FAMILIES_WITH_PORT.includes(address.readUInt16LE(0));
    if (hasPort && address.readUInt16BE(2) === port) libc.shutdown(descriptor, SHUT_RDWR);
  }
}

/** Descriptors of the process but those of cgroups. Before Linux 6.2 a directory of them has no size. */
const countOpenFiles = () => (statSync("/proc/self/fd").size || readdirSync("/proc/self/fd").length) - countKeptFiles();

/** @param url absolute, or path and query where the Host header is none. Its dot segments are resolved. */
function targetOf(url: string): string {
  if (url.startsWith("/")) return url;
  const path = url.indexOf("/", "http://".length);
  return path < 0 ? "/" : url.slice(path);
}

/** Bodies by what holds them: a response that many clients share is copied once. */
const blobOf = memoized(
  (holder: HttpResponse | Uint8Array) =>
    new Blob(["body" in holder ? (holder.body as string) : (holder as Uint8Array<ArrayBuffer>)]),
);

const toBunResponse = (response: HttpResponse): Response => {
  const { status, body } = response;
  return new Response(status === 304 ? null : blobOf(typeof body === "string" ? response : body), response);
};
