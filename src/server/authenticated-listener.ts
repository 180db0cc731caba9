import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import tls, { type TLSSocket } from "node:tls";
import type { TlsVersions } from "../config/cipher-suites.ts";
import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import { messageOf } from "../text/error-message.ts";
import { type Answer, parseTarget, type RouteRequest, textAnswer } from "./answer.ts";
import type { ShownCertificate } from "./client-identity.ts";
import type { TlsMaterial } from "./serving-certificate.ts";
import { acceptKey, WebSocketConnection } from "./websocket.ts";

/** A request of the authenticated port. */
export interface AuthenticatedRequest extends RouteRequest {
  /** What the client showed of itself. */
  shown: ShownCertificate | undefined;
  /** Aborts when the client is gone. */
  signal: AbortSignal;
  /** Lower-case value of `Upgrade` where the connection is to become something else; else "". */
  upgrade: string;
}

/** An answer sent while it comes about. */
export interface StreamedAnswer {
  status: number;
  headers: Record<string, string>;
  /** Leaving its loop must end what makes it. */
  chunks: AsyncIterable<Uint8Array>;
}

/** The client's WebSocket is taken up. Only for requests whose `upgrade` is `websocket`. */
export interface WebSocketAnswer {
  /** Subprotocol that was chosen; undefined: the client named none. */
  protocol: string | undefined;
  /** Ends the connection itself. */
  run(socket: WebSocketConnection): Promise<void>;
}

export type AuthenticatedAnswer = Answer | StreamedAnswer | WebSocketAnswer;

export interface AuthenticatedListenerOptions {
  hostname: string;
  port: number;
  versions: TlsVersions;
  /** Reads the files anew. @throws Error whose message is for people */
  readMaterial: () => TlsMaterial;
  route: (request: AuthenticatedRequest) => AuthenticatedAnswer | Promise<AuthenticatedAnswer>;
}

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** How often certificates and keys are looked at for changes. */
const RELOAD_MS = 10_000;
const HANDSHAKE_MS = 10_000;
/** A connection that asks nothing, or takes forever over its question, is closed after this. */
const IDLE_MS = 60_000;
/** A reader that takes none of an answer that is there is dropped after this. */
const SLOW_READER_MS = 60_000;
/** Everybody who reaches the machine can connect: no more than this at a time. */
const MAX_CONNECTIONS = 500;
const MAX_BODY_BYTES = 64 * 1024;
/** An engine that does not answer must not keep us from leaving. */
const LEAVE_MS = 3_000;

/**
 * Serves the TLS port for as long as the process lives. Neither a port that is taken nor files that cannot be used end or
 * delay the supervision of pods: it is logged once and tried again. Files that change are taken over within ten seconds;
 * if the new ones are of no use, the old ones stay. [S070 S074 S157]
 */
export class AuthenticatedListener {
  readonly #options: AuthenticatedListenerOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #http: Server;
  readonly #sockets = new Map<Duplex, () => void>();
  readonly #underWay = new Set<Promise<void>>();
  #tls: tls.Server | undefined;
  #material: TlsMaterial | undefined;
  #port: number | undefined;
  #cancelTimer: (() => void) | undefined;
  #retryMs = FIRST_RETRY_MS;
  #said = "";
  #isStopped = false;

  constructor(options: AuthenticatedListenerOptions, clock: Clock, logger: Logger) {
    this.#options = options;
    this.#clock = clock;
    this.#logger = logger;
    this.#http = createServer((request, response) => this.#keep(this.#serve(request, response)));
    // The default of 5 s would end a connection between two scrapes.
    this.#http.keepAliveTimeout = IDLE_MS;
    this.#http.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#keep(this.#upgrade(request, socket, head));
    });
    this.#http.on("clientError", (_error, socket) => void socket.destroy());
  }

  /** Port that answers, undefined while it could not be had. */
  get port(): number | undefined {
    return this.#port;
  }

  /** Never throws. */
  start(): void {
    if (this.#isStopped) return;
    try {
      this.#material = this.#options.readMaterial();
      this.#listen(this.#toContext(this.#material));
    } catch (error) {
      this.#retry(error);
    }
  }

  /** Stops listening, cuts what is open, and tries no more. Commands that were run for clients are killed first. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#port = undefined;
    this.#tls?.close();
    for (const socket of [...this.#sockets.keys()]) socket.destroy();
    if (this.#underWay.size === 0) return;
    const patience = Promise.withResolvers<void>();
    const cancel = this.#clock.schedule(LEAVE_MS, patience.resolve);
    await Promise.race([Promise.allSettled(this.#underWay), patience.promise]);
    cancel();
  }

  /** `work` never rejects. */
  #keep(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  get #address(): string {
    const { hostname, port } = this.#options;
    return `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  }

  #retry(error: unknown): void {
    const waitMs = this.#retryMs;
    this.#retryMs = Math.min(waitMs * 2, LONGEST_RETRY_MS);
    const fields = { address: this.#address, error: messageOf(error) };
    if (fields.error !== this.#said) this.#logger.error("Cannot serve the authenticated port, trying again", fields);
    else this.#logger.debug("The authenticated port is still not to be had", fields);
    this.#said = fields.error;
    this.#cancelTimer = this.#clock.schedule(waitMs, () => this.start());
  }

  #toContext({ cert, key, clientCas }: TlsMaterial) {
    return {
      cert,
      key,
      ...this.#options.versions,
      // Without authorities of our own the TLS library would trust those of the system: then nobody may be asked.
      ...(clientCas.length > 0 && { ca: [...clientCas] }),
      requestCert: clientCas.length > 0,
      // Who shows nothing or something else gets an answer that says so: 401.
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_MS,
    };
  }

  #listen(context: tls.TlsOptions): void {
    const server = tls.createServer(context, (socket) => this.#accept(socket));
    server.on("tlsClientError", (_error, socket) => void socket.destroy());
    server.on("error", (error) => {
      server.close();
      if (this.#tls !== server || this.#port !== undefined) return;
      this.#retry(error);
    });
    server.maxConnections = MAX_CONNECTIONS;
    this.#tls = server;
    server.listen({ host: this.#options.hostname, port: this.#options.port }, () => {
      if (this.#isStopped) return void server.close();
      this.#port = (server.address() as { port: number }).port;
      this.#retryMs = FIRST_RETRY_MS;
      this.#said = "";
      this.#logger.info("Serving the authenticated port", { address: this.#address });
      this.#scheduleReload();
    });
  }

  #scheduleReload(): void {
    this.#cancelTimer = this.#clock.schedule(RELOAD_MS, () => {
      this.#reload();
      this.#scheduleReload();
    });
  }

  #reload(): void {
    try {
      const material = this.#options.readMaterial();
      const isSame = JSON.stringify(material) === JSON.stringify(this.#material);
      this.#said = "";
      if (isSame) return;
      this.#tls?.setSecureContext(this.#toContext(material));
      this.#material = material;
      this.#logger.info("The authenticated port has taken over new certificates");
    } catch (error) {
      const message = messageOf(error);
      if (message !== this.#said) {
        this.#logger.error("Cannot take over new certificates; the authenticated port keeps its old ones", {
          error: message,
        });
      }
      this.#said = message;
    }
  }

  #accept(socket: TLSSocket): void {
    socket.on("error", () => {});
    this.#sockets.set(socket, () => {});
    socket.on("close", () => {
      this.#relax(socket);
      this.#sockets.delete(socket);
    });
    this.#expect(socket, IDLE_MS);
    this.#http.emit("connection", socket);
  }

  /** Gives a connection so long for its next step. */
  #expect(socket: Duplex, ms: number): void {
    this.#relax(socket);
    this.#sockets.set(
      socket,
      this.#clock.schedule(ms, () => void socket.destroy()),
    );
  }

  #relax(socket: Duplex): void {
    this.#sockets.get(socket)?.();
    if (this.#sockets.has(socket)) this.#sockets.set(socket, () => {});
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const socket = message.socket as TLSSocket;
    this.#relax(socket);
    const gone = new AbortController();
    const onClose = () => gone.abort(new DOMException("the client is gone", "AbortError"));
    response.on("error", () => {});
    response.on("close", onClose);
    socket.on("close", onClose);
    try {
      const answer = await this.#answer(message, "", gone.signal);
      if (gone.signal.aborted) return;
      if ("run" in answer) throw new Error("a WebSocket was offered to whoever asked for none");
      if ("chunks" in answer) await stream(response, answer, gone.signal);
      else {
        this.#expect(socket, SLOW_READER_MS);
        await send(response, answer, message.method === "HEAD");
      }
    } catch (error) {
      if (!gone.signal.aborted)
        this.#logger.debug("A request of the authenticated port was cut short", { error: messageOf(error) });
      socket.destroy();
    } finally {
      socket.off("close", onClose);
      if (!socket.destroyed) this.#expect(socket, IDLE_MS);
    }
  }

  async #upgrade(message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    this.#relax(socket);
    socket.on("error", () => {});
    const gone = new AbortController();
    const onClose = () => gone.abort(new DOMException("the client is gone", "AbortError"));
    socket.on("close", onClose);
    const upgrade = String(message.headers.upgrade ?? "").toLowerCase();
    const answer = await this.#answer(message, upgrade, gone.signal);
    socket.off("close", onClose);
    if (gone.signal.aborted) return;
    if (!("run" in answer)) {
      const refusal = "chunks" in answer ? textAnswer(400, "This cannot be upgraded.\n") : answer;
      // What a stream was opened for ends with it.
      gone.abort(new DOMException("the stream is not wanted", "AbortError"));
      this.#expect(socket, SLOW_READER_MS);
      socket.end(await rawAnswer(refusal));
      return;
    }
    const key = message.headers["sec-websocket-key"];
    if (!key || message.headers["sec-websocket-version"] !== "13") {
      socket.end(await rawAnswer(textAnswer(400, "This is no WebSocket handshake of version 13.\n")));
      return;
    }
    const protocol = answer.protocol === undefined ? "" : `Sec-WebSocket-Protocol: ${answer.protocol}\r\n`;
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptKey(key)}\r\n${protocol}\r\n`,
    );
    const connection = new WebSocketConnection(socket, head);
    try {
      await answer.run(connection);
    } catch (error) {
      this.#logger.error("A WebSocket session failed", { error: messageOf(error) });
      connection.destroy();
    }
    if (!socket.destroyed) this.#expect(socket, SLOW_READER_MS);
  }

  /** What the route says; its own failure is 500, and the reason goes to the log only. */
  async #answer(message: IncomingMessage, upgrade: string, signal: AbortSignal): Promise<AuthenticatedAnswer> {
    const target = parseTarget(message.url ?? "/");
    if (!target?.path.startsWith("/")) return textAnswer(400, "400 Bad Request");
    const headerOf = (name: string) => {
      const value = message.headers[name.toLowerCase()];
      return value === undefined ? null : String(value);
    };
    try {
      return await this.#options.route({
        method: message.method ?? "GET",
        ...target,
        header: headerOf,
        text: () => readText(message),
        shown: shownBy(message.socket as TLSSocket),
        signal,
        upgrade,
      });
    } catch (error) {
      this.#logger.error("A request could not be answered", {
        server: "authenticated",
        path: target.path,
        error: messageOf(error),
      });
      return textAnswer(500, "500 internal server error\n");
    }
  }
}

function shownBy(socket: TLSSocket): ShownCertificate | undefined {
  const certificate = socket.getPeerCertificate?.();
  // Without one it is an empty object, or none.
  if (!certificate?.subject || !certificate.valid_to) return undefined;
  const { CN, O } = certificate.subject as { CN?: string | string[]; O?: string | string[] };
  return {
    isVerified: socket.authorized,
    commonName: [CN ?? []].flat().at(-1) ?? "",
    organizations: [O ?? []].flat(),
    notAfter: new Date(certificate.valid_to),
  };
}

async function send(response: ServerResponse, answer: Answer, isHead: boolean): Promise<void> {
  const body = await bytesOf(answer.body);
  const hasBody = answer.status !== 304;
  response.writeHead(answer.status, {
    ...answer.headers,
    ...(hasBody && { "Content-Length": String(body.length) }),
  });
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    if (isHead || !hasBody) response.end(resolve);
    else response.end(body, resolve);
  });
}

async function stream(response: ServerResponse, answer: StreamedAnswer, gone: AbortSignal): Promise<void> {
  response.writeHead(answer.status, answer.headers);
  response.flushHeaders();
  for await (const chunk of answer.chunks) {
    if (gone.aborted) return;
    if (!response.write(chunk)) {
      await new Promise<void>((resolve) => {
        const done = () => {
          response.off("drain", done);
          gone.removeEventListener("abort", done);
          resolve();
        };
        response.on("drain", done);
        gone.addEventListener("abort", done);
      });
    }
  }
  if (!gone.aborted) await new Promise<void>((resolve) => response.end(resolve));
}

/** A whole answer as it goes over the line, for connections that left node:http. */
async function rawAnswer({ status, headers, body }: Answer): Promise<Buffer> {
  const bytes = await bytesOf(body);
  const all = { ...headers, "Content-Length": String(bytes.length), Connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n`),
    bytes,
  ]);
}

async function bytesOf(body: Answer["body"]): Promise<Uint8Array> {
  if (typeof body === "string") return Buffer.from(body);
  return body instanceof Blob ? new Uint8Array(await body.arrayBuffer()) : body;
}

async function readText(message: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of message) {
    bytes += (chunk as Uint8Array).length;
    if (bytes > MAX_BODY_BYTES) throw new Error("the body of the request is too long");
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks).toString();
}
