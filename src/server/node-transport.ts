import http, { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import tls, { type TLSSocket } from "node:tls";
import { nextTurn, TurnPace } from "../base/concurrency/turn-pace.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { memoized } from "../base/model/memoized.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { TlsVersions } from "../config/cipher-suites.ts";
import type { ShownCertificate } from "./client-identity.ts";
import { type ConnectionLimits, ConnectionTable } from "./connection-table.ts";
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
  tooManyRequests,
} from "./request-handler.ts";
import type { TlsMaterial } from "./serving-certificate.ts";
import { acceptWebSocket } from "./websocket.ts";

export interface ListenerTls {
  versions: TlsVersions;
  /** Connections without TLS are served too, and the port opens before the files can be used. Default: neither. */
  isOptional?: boolean;
  /** Reads the files. @throws Error whose message is for the operator */
  readMaterial: () => TlsMaterial | Promise<TlsMaterial>;
}

interface NodeTransportOptions {
  name: string;
  tls?: ListenerTls | undefined;
  limits?: ConnectionLimits;
}

/** How often certificates and keys are checked for changes. */
const RELOAD_MS = 10_000;
const HANDSHAKE_MS = 10_000;
/** Content type of the first TLS record of a client. Source: RFC 8446, 5.1. */
const TLS_HANDSHAKE = 0x16;
/** Connections that begin their handshake in one turn of the loop; each takes up to a millisecond of it. */
const HANDSHAKES_PER_TURN = 4;
/** The request line counts; Node's default of 16 KiB refuses longer scripts in the query of an exec. */
const HEADER_BYTES = 64 * 1024;
const TOO_LONG = textResponse(431, `The URL and the headers are longer than ${HEADER_BYTES} bytes.\n`);
const LIMITS: ConnectionLimits = { connections: 500, perAddress: 250 };
/** A client that has not taken its whole response by then is dropped. */
const SEND_MS = 60_000;
/** How long a client may keep a connection open that its response has ended: Bun does not close it before the client does. */
const LINGER_MS = 1_000;
/** Requests that a client may send before it has the response to the first. */
const MAX_PIPELINED = 16;
/** Bytes of responses that clients have not taken yet. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

/**
 * HTTP by node:http, over node:tls where there is TLS: only there a client's certificate can be read, the serving
 * certificate be replaced, SPDY be spoken, and one port speak TLS and plain HTTP. Certificate files that change are in use
 * within ten seconds; unusable ones leave the old ones in use.
 */
export class NodeTransport implements Transport {
  readonly #options: NodeTransportOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #table: ConnectionTable;
  readonly #handler: RequestHandler;
  /** Reads requests from the connections that `#server` accepts. */
  readonly #http: http.Server;
  /** One connection's requests, answered one after the other. */
  readonly #queues = new WeakMap<Duplex, { length: number; last: Promise<void> }>();
  readonly #running = new Set<Promise<void>>();
  readonly #streams = new StreamWriter();
  readonly #handshakes = new TurnPace(HANDSHAKES_PER_TURN);
  #unsentBytes = 0;
  /** Requests in {@link #running} that are to become something else than HTTP. */
  #sessions = 0;
  #server: Server | undefined;
  /** Handles TLS for the connections that `#server` accepts; undefined without TLS. */
  #tls: tls.Server | undefined;
  #material: TlsMaterial | undefined;
  #cancelReload: (() => void) | undefined;
  #loggedProblem = "";
  #reloading: Promise<void> | undefined;

  constructor(handler: RequestHandler, options: NodeTransportOptions, clock: Clock, logger: Logger) {
    this.#options = options;
    this.#clock = clock;
    this.#logger = logger;
    this.#table = new ConnectionTable(clock, options.limits ?? LIMITS);
    this.#handler = handler;
    this.#http = http.createServer({ maxHeaderSize: HEADER_BYTES }, (...exchange) => this.#enqueue(...exchange));
    // The default of 5 s would end a connection between two scrapes.
    this.#http.keepAliveTimeout = IDLE_MS;
    this.#http.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#sessions++;
      this.#track(this.#upgrade(request, socket, head).finally(() => this.#sessions--));
    });
    this.#http.on("clientError", ({ code }: NodeJS.ErrnoException, socket) => {
      socket.end(code === "HPE_HEADER_OVERFLOW" ? rawResponse(TOO_LONG) : "", () => socket.destroy());
    });
  }

  get port(): number | undefined {
    const address = this.#server?.address();
    return address && typeof address === "object" ? address.port : undefined;
  }

  async listen(address: ListenAddress): Promise<void> {
    const { tls } = this.#options;
    if (tls && !tls.isOptional) {
      this.#material = await tls.readMaterial();
      this.#tls = this.#createTls(tls, this.#material);
    }
    const server = createServer((socket) => this.#accept(socket));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.on("error", reject);
      if ("socketPath" in address) onPrivateSocket(address.socketPath, (path) => server.listen({ path }, resolve));
      else server.listen({ host: address.hostname, port: address.port, exclusive: true }, resolve);
    });
    if (tls) this.#scheduleReload(tls);
  }

  async stop(): Promise<void> {
    this.#cancelReload?.();
    this.#cancelReload = undefined;
    this.#server?.close();
    this.#table.destroyAll();
    await Promise.allSettled(this.#running);
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    const { tls } = this.#options;
    const firstMs = tls && !tls.isOptional ? HANDSHAKE_MS : IDLE_MS;
    if (!this.#table.admit(socket, firstMs)) return;
    if (tls?.isOptional) socket.once("data", (first: Buffer) => void this.#serveEither(socket, first, tls));
    else if (this.#tls) void this.#secure(socket, this.#tls);
    else this.#http.emit("connection", socket);
  }

  async #secure(socket: Socket, server: tls.Server): Promise<void> {
    await this.#handshakes.enter(1);
    if (!socket.destroyed) server.emit("connection", socket);
  }

  /** @param first the bytes that the client sent first: a TLS handshake or the start of a request */
  async #serveEither(socket: Socket, first: Buffer, options: ListenerTls): Promise<void> {
    socket.pause();
    socket.unshift(first);
    if (first[0] !== TLS_HANDSHAKE) {
      this.#http.emit("connection", socket);
      socket.resume();
      return;
    }
    if (!this.#tls) await this.#reload(options);
    if (this.#tls) await this.#secure(socket, this.#tls);
    else socket.destroy();
  }

  #createTls({ versions }: ListenerTls, { cert, key, clientCas }: TlsMaterial): tls.Server {
    const server = tls.createServer(
      {
        cert,
        key,
        ...versions,
        // Without authorities the TLS library trusts those of the system: then no certificate is requested.
        ...(clientCas.length > 0 && { ca: [...clientCas] }),
        requestCert: clientCas.length > 0,
        // Clients without a valid certificate get 401.
        rejectUnauthorized: false,
        handshakeTimeout: HANDSHAKE_MS,
      },
      (socket: TLSSocket) => {
        socket.on("error", () => {});
        this.#table.secured(socket, IDLE_MS);
        this.#http.emit("connection", socket);
      },
    );
    server.on("tlsClientError", (_error, socket) => void socket.destroy());
    return server;
  }

  #scheduleReload(options: ListenerTls): void {
    this.#cancelReload = this.#clock.schedule(RELOAD_MS, async () => {
      await this.#reload(options);
      if (this.#cancelReload) this.#scheduleReload(options);
    });
  }

  /** One at a time. Never rejects. */
  #reload(options: ListenerTls): Promise<void> {
    this.#reloading ??= this.#readAgain(options).finally(() => {
      this.#reloading = undefined;
    });
    return this.#reloading;
  }

  async #readAgain(options: ListenerTls): Promise<void> {
    const { name } = this.#options;
    try {
      const material = await options.readMaterial();
      const isSame = JSON.stringify(material) === JSON.stringify(this.#material);
      this.#loggedProblem = "";
      if (isSame) return;
      const isFirst = this.#tls === undefined;
      this.#tls = this.#createTls(options, material);
      this.#material = material;
      if (!isFirst) this.#logger.info(`The ${name} uses new certificates`);
    } catch (error) {
      const message = messageOf(error);
      if (message !== this.#loggedProblem) {
        const problem = this.#tls
          ? `Cannot use the new certificates; the ${name} keeps the old ones`
          : `Cannot use the certificates; the ${name} has no TLS yet`;
        this.#logger.error(problem, { error: message });
      }
      this.#loggedProblem = message;
    }
  }

  /** `work` never rejects. */
  #track(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  #enqueue(message: IncomingMessage, response: ServerResponse): void {
    const { socket } = message;
    const queue = this.#queues.getOrInsertComputed(socket, () => ({ length: 0, last: Promise.resolve() }));
    if (queue.length >= MAX_PIPELINED) {
      socket.destroy();
      return;
    }
    queue.length++;
    queue.last = queue.last
      .then(() => this.#serve(message, response))
      .finally(() => {
        queue.length--;
        if (queue.length === 0) this.#table.mark(socket, "idle", socket.writableEnded ? LINGER_MS : IDLE_MS);
      });
    this.#track(queue.last);
  }

  async #serve(message: IncomingMessage, written: ServerResponse): Promise<void> {
    const { socket } = message;
    if (socket.destroyed) return;
    const { gone, onClose } = watchClose(socket);
    written.on("error", () => {});
    written.on("close", onClose);
    try {
      const { response, isBodyCut } = await this.#respond(message, "", gone.signal);
      if (gone.signal.aborted) return;
      if ("run" in response || "takeOver" in response) throw new Error("an upgrade for a request that asked for none");
      if ("chunks" in response) await this.#streams.write(written, response, gone.signal);
      else await this.#send(written, response, message);
      // The unread rest of a body must not be parsed as the next request.
      if (isBodyCut) socket.destroy();
    } catch (error) {
      if (!gone.signal.aborted) {
        this.#logger.debug("A request was not answered completely", { error: messageOf(error) });
      }
      socket.destroy();
    } finally {
      socket.off("close", onClose);
    }
  }

  async #respond(
    message: IncomingMessage,
    upgrade: string,
    signal: AbortSignal,
  ): Promise<{ response: ListenerResponse; isBodyCut: boolean }> {
    const socket = message.socket as TLSSocket;
    const { remotePort, localPort } = socket;
    let isReading = false;
    this.#table.mark(socket, "working");
    const response = await this.#handler.respond({
      head: {
        method: message.method ?? "GET",
        header: (name) => {
          const value = message.headers[name.toLowerCase()];
          return value === undefined ? null : String(value);
        },
        shown: certificateOf(socket),
        isSecure: socket.encrypted === true,
        ports: remotePort && localPort ? { client: remotePort, server: localPort } : undefined,
        upgrade,
        sessions: this.#sessions,
        signal,
      },
      target: (message.url ?? "/").replace(/^https?:\/\/[^/?]*(?=[/?]|$)/i, "") || "/",
      address: socket.remoteAddress ?? "",
      chunks: () => message as AsyncIterable<Uint8Array>,
      awaitsBody: (isAwaited) => {
        isReading = true;
        if (isAwaited) this.#table.mark(socket, "idle", IDLE_MS);
        else this.#table.mark(socket, "working");
      },
    });
    return { response, isBodyCut: isReading && !message.readableEnded };
  }

  async #send(written: ServerResponse, wanted: HttpResponse, message: IncomingMessage): Promise<void> {
    const { length } = bytesOf(wanted);
    const hasRoom = () => this.#unsentBytes === 0 || this.#unsentBytes + length <= MAX_UNSENT_BYTES;
    // Clients that read nothing must not keep others from their responses. Bytes of closed connections are free a turn later.
    if (!hasRoom() && this.#table.dropSlowReaders()) await nextTurn();
    const response = hasRoom() ? wanted : tooManyRequests();
    const body = bytesOf(response);
    this.#table.mark(message.socket, "sending", SEND_MS);
    this.#unsentBytes += body.length;
    const hasBody = response.status !== 304;
    try {
      const sized = hasBody && { "Content-Length": String(body.length) };
      written.writeHead(response.status, { ...response.headers, ...sized });
      await new Promise<void>((resolve) => {
        written.once("close", resolve);
        if (message.method === "HEAD" || !hasBody) written.end(resolve);
        else written.end(body, resolve);
      });
    } finally {
      this.#unsentBytes -= body.length;
    }
  }

  async #upgrade(message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on("error", () => {});
    const { gone, onClose } = watchClose(socket);
    const upgrade = String(message.headers.upgrade ?? "").toLowerCase();
    const { response } = await this.#respond(message, upgrade, gone.signal);
    socket.off("close", onClose);
    if (gone.signal.aborted) return;
    if (!("run" in response || "takeOver" in response)) {
      const refusal = "chunks" in response ? textResponse(400, "This cannot be upgraded.\n") : response;
      // Ends a stream that was opened for the request.
      gone.abort(new DOMException("the stream is not wanted", "AbortError"));
      this.#table.mark(message.socket, "sending", SEND_MS);
      socket.end(rawResponse(refusal));
      return;
    }
    const connection = "run" in response ? await acceptWebSocket(message, socket, head, response.protocol) : undefined;
    if ("run" in response && !connection) return;
    try {
      if ("takeOver" in response) await response.takeOver(message, socket, head);
      else if (connection) await response.run(connection);
    } catch (error) {
      const level = connection?.gone.aborted ? "debug" : "error";
      this.#logger[level]("A session failed", { error: messageOf(error) });
      connection?.destroy();
      socket.destroy();
    }
    this.#table.mark(message.socket, "sending", SEND_MS);
  }
}

/** A client that reads nothing holds one part of a stream, not a whole chunk. In bytes, or characters. */
const PART_LENGTH = 16 * 1024;

/** A chunk in parts that are made one by one; a character of two code units stays whole. */
function* partsOf(chunk: Uint8Array | string): Generator<Uint8Array | string> {
  for (let at = 0; at < chunk.length; ) {
    let end = at + PART_LENGTH;
    if (typeof chunk !== "string") yield chunk.subarray(at, end);
    else {
      if ((chunk.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
      yield chunk.slice(at, end);
    }
    at = end;
  }
}

/** Length of the parts that all streams write in one turn of the loop: bytes on their way to the kernel take memory. */
const TURN_LENGTH = 256 * 1024;
/** Added to each part: a short one, such as a line of a log, takes time rather than memory. */
const PART_COST = 2048;

/** Length of parts after which their garbage is collected: over TLS each leaves a copy, of which the collector sees little. */
const COLLECTED_LENGTH = 8 * 1024 * 1024;

/** Writes the streamed responses of a server. */
export class StreamWriter {
  #sinceCollected = 0;
  readonly #pace = new TurnPace(TURN_LENGTH, (length) => {
    this.#sinceCollected += length;
    if (this.#sinceCollected <= COLLECTED_LENGTH) return;
    this.#sinceCollected = 0;
    // In a thread of its own.
    Bun.gc(false);
  });

  /** @param gone aborted when the client is gone: the stream ends, and its chunks are not asked for any more */
  async write(written: ServerResponse, response: StreamedResponse, gone: AbortSignal): Promise<void> {
    written.writeHead(response.status, response.headers);
    written.flushHeaders();
    let goOn = () => {};
    written.on("drain", () => goOn());
    gone.addEventListener("abort", () => goOn());
    for await (const chunk of response.chunks) {
      for (const part of partsOf(chunk)) {
        await this.#pace.enter(part.length + PART_COST);
        if (gone.aborted) return;
        if (!written.write(part)) await new Promise<void>((resolve) => (goOn = resolve));
      }
    }
    if (!gone.aborted) await new Promise<void>((resolve) => written.end(resolve));
  }
}

/** `gone` aborts when the connection closes. */
function watchClose(socket: Duplex) {
  const gone = new AbortController();
  const onClose = () => gone.abort(new DOMException("the client is gone", "AbortError"));
  socket.on("close", onClose);
  return { gone, onClose };
}

/** Bytes of responses whose body is text: a response that many clients share is encoded once. */
const bytesOf = memoized(({ body }: HttpResponse): Uint8Array => (typeof body === "string" ? Buffer.from(body) : body));

function rawResponse(response: HttpResponse): Buffer {
  const bytes = bytesOf(response);
  const headers = { ...response.headers, "Content-Length": String(bytes.length), Connection: "close" };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ""}\r\n${lines.join("")}\r\n`),
    bytes,
  ]);
}

function certificateOf(socket: TLSSocket): ShownCertificate | undefined {
  const certificate = socket.getPeerCertificate?.();
  // Without one it is an empty object, or null.
  if (!certificate?.subject || !certificate.valid_to) return undefined;
  const { CN, O } = certificate.subject as { CN?: string | string[]; O?: string | string[] };
  return {
    isVerified: socket.authorized,
    commonName: [CN ?? []].flat().at(-1) ?? "",
    organizations: [O ?? []].flat(),
    notAfter: new Date(certificate.valid_to),
  };
}
