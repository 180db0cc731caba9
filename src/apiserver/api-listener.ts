import { chmodSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import net from "node:net";
import type { Duplex } from "node:stream";
import tls, { type TLSSocket } from "node:tls";
import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import { ApiError, badRequest, internalError, tooLarge, unauthorized } from "./api-error.ts";
import {
  type ApiAnswer,
  type ApiRequest,
  type ApiUser,
  json,
  type PlainAnswer,
  type StreamAnswer,
} from "./api-request.ts";
import type { ShownCertificate } from "./authentication.ts";
import { MAX_BODY_BYTES } from "./body.ts";

/** Key and certificates of a TLS server, PEM. */
export interface ListenerCertificates {
  cert: string;
  key: string;
  /** Authorities whose client certificates are trusted. */
  clientAuthorities: readonly string[];
}

export interface ApiListenerDeps {
  clock: Clock;
  logger: Logger;
  answer: (request: ApiRequest) => Promise<ApiAnswer>;
  /** @returns undefined: 401 */
  authenticate: (shown: ShownCertificate | undefined, authorization: string | null) => ApiUser | undefined;
  socketUser: ApiUser;
}

const IDLE_MS = 90_000;
/** A body that takes longer is cut. */
const BODY_MS = 60_000;
/** A reader that takes nothing of a plain answer is cut. */
const SLOW_READER_MS = 60_000;
const HANDSHAKE_MS = 10_000;
const MAX_CONNECTIONS = 2_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
const LEAVE_MS = 3_000;

/**
 * Serves the API over TLS and over a Unix socket: node:tls and node:net with node:http behind both, where the client's
 * certificate can be seen and a connection can become something else. A port that is taken is tried again and never
 * stops anything.
 */
export class ApiListener {
  readonly #deps: ApiListenerDeps;
  readonly #http: Server;
  readonly #sockets = new Map<Duplex, () => void>();
  readonly #fromSocket = new WeakSet<object>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #leaving = new AbortController();
  #tls: tls.Server | undefined;
  #unix: net.Server | undefined;
  #unixPath: string | undefined;
  #port: number | undefined;
  #cancelRetry: () => void = () => {};

  constructor(deps: ApiListenerDeps) {
    this.#deps = deps;
    this.#http = createServer((request, response) => this.#track(this.#serve(request, response)));
    this.#http.keepAliveTimeout = IDLE_MS;
    this.#http.requestTimeout = 0;
    this.#http.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#track(this.#upgrade(request, socket, head)),
    );
    this.#http.on("clientError", (_error, socket) => void socket.destroy());
  }

  /** Port that answers; undefined while there is none. */
  get port(): number | undefined {
    return this.#port;
  }

  get socketPath(): string | undefined {
    return this.#unixPath;
  }

  /** Listens on a Unix socket for our own user alone. Never throws. @returns whether it answers */
  async listenUnix(path: string): Promise<boolean> {
    const server = net.createServer((socket) => {
      this.#fromSocket.add(socket);
      this.#accept(socket);
    });
    server.maxConnections = MAX_CONNECTIONS;
    // Only one process works on a root directory: a socket that is there was left behind.
    rmSync(path, { force: true });
    const listening = Promise.withResolvers<boolean>();
    server.on("error", (error) => {
      this.#deps.logger.warn(`The local API does not answer on "${path}": ${error.message}`);
      listening.resolve(false);
    });
    const mask = process.umask(0o177);
    try {
      server.listen(path, () => listening.resolve(true));
    } finally {
      process.umask(mask);
    }
    if (!(await listening.promise)) return false;
    chmodSync(path, 0o600);
    this.#unix = server;
    this.#unixPath = path;
    return true;
  }

  /** Listens with TLS, now or once the port is free. Never throws. */
  listenTls(hostname: string, port: number, certificates: ListenerCertificates, retryMs = FIRST_RETRY_MS): void {
    if (this.#leaving.signal.aborted) return;
    const server = tls.createServer(toContext(certificates), (socket) => this.#accept(socket));
    server.on("tlsClientError", (_error, socket) => void socket.destroy());
    server.maxConnections = MAX_CONNECTIONS;
    server.on("error", (error) => {
      server.close();
      if (this.#port !== undefined) return;
      const message = `The local API does not answer on ${hostname}:${port}: ${error.message}; trying again, pods are not affected`;
      this.#deps.logger[retryMs === FIRST_RETRY_MS ? "warn" : "debug"](message);
      const next = Math.min(retryMs * 2, LONGEST_RETRY_MS);
      this.#cancelRetry = this.#deps.clock.schedule(retryMs, () => this.listenTls(hostname, port, certificates, next));
    });
    server.listen({ host: hostname, port }, () => {
      if (this.#leaving.signal.aborted) return void server.close();
      this.#tls = server;
      this.#port = (server.address() as net.AddressInfo).port;
      this.#deps.logger.info(`Serving the Kubernetes API on ${hostname}:${this.#port}`);
    });
  }

  /** Connections from now on see other certificates. */
  replaceCertificates(certificates: ListenerCertificates): void {
    this.#tls?.setSecureContext(toContext(certificates));
  }

  /** Ends watches and streams, stops listening, and waits a moment for what was run for clients. */
  async stop(): Promise<void> {
    this.#leaving.abort(new DOMException("the server is stopping", "AbortError"));
    this.#cancelRetry();
    this.#port = undefined;
    this.#tls?.close();
    this.#unix?.close();
    if (this.#unixPath !== undefined) rmSync(this.#unixPath, { force: true });
    for (const socket of [...this.#sockets.keys()]) socket.destroy();
    if (this.#underWay.size === 0) return;
    const patience = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.schedule(LEAVE_MS, patience.resolve);
    await Promise.race([Promise.allSettled(this.#underWay), patience.promise]);
    cancel();
  }

  #track(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  #accept(socket: Duplex): void {
    socket.on("error", () => {});
    this.#sockets.set(socket, () => {});
    socket.on("close", () => {
      this.#relax(socket);
      this.#sockets.delete(socket);
    });
    this.#expect(socket, IDLE_MS);
    this.#http.emit("connection", socket);
  }

  /** The connection is cut unless something happens in time. */
  #expect(socket: Duplex, ms: number): void {
    this.#relax(socket);
    this.#sockets.set(
      socket,
      this.#deps.clock.schedule(ms, () => void socket.destroy()),
    );
  }

  #relax(socket: Duplex): void {
    this.#sockets.get(socket)?.();
    if (this.#sockets.has(socket)) this.#sockets.set(socket, () => {});
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = message;
    this.#relax(socket);
    const gone = new AbortController();
    const onClose = () => gone.abort(new DOMException("the client is gone", "AbortError"));
    response.on("error", () => {});
    response.on("close", onClose);
    socket.on("close", onClose);
    try {
      const answer = await this.#answer(message, "", gone.signal);
      if (gone.signal.aborted) return;
      if ("takeOver" in answer) {
        await sendPlain(response, json(400, badRequest("Upgrade request required").status), false);
      } else if ("chunks" in answer) await sendStream(response, answer, gone.signal);
      else {
        this.#expect(socket, SLOW_READER_MS);
        await sendPlain(response, answer, message.method === "HEAD");
        // The unread rest of a body that is too long must not be parsed as the next request.
        if (answer.status === 413) socket.destroy();
      }
    } catch (error) {
      if (!gone.signal.aborted)
        this.#deps.logger.debug("A request of the local API was cut short", { error: messageOf(error) });
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
    try {
      const upgrade = String(message.headers.upgrade ?? "").toLowerCase();
      const answer = await this.#answer(message, upgrade, gone.signal);
      if (gone.signal.aborted) return;
      if ("takeOver" in answer) await answer.takeOver(message, socket, head);
      else {
        const refusal = "chunks" in answer ? json(400, badRequest("this cannot be upgraded").status) : answer;
        gone.abort(new DOMException("the stream is not wanted", "AbortError"));
        this.#expect(socket, SLOW_READER_MS);
        socket.end(rawAnswer(refusal));
      }
    } catch (error) {
      this.#deps.logger.debug("A stream of the local API was cut short", { error: messageOf(error) });
      socket.destroy();
    } finally {
      socket.off("close", onClose);
    }
  }

  async #answer(message: IncomingMessage, upgrade: string, gone: AbortSignal): Promise<ApiAnswer> {
    try {
      const { socket } = message;
      const header = (name: string) => {
        const value = message.headers[name.toLowerCase()];
        return value === undefined ? null : String(value);
      };
      const user = this.#fromSocket.has(socket)
        ? this.#deps.socketUser
        : this.#deps.authenticate(shownBy(socket as TLSSocket), header("Authorization"));
      if (!user) throw unauthorized();
      return await this.#deps.answer({
        method: message.method ?? "GET",
        ...parseUrl(message.url ?? "/"),
        header,
        body: () => readBody(message, this.#deps.clock),
        user,
        signal: AbortSignal.any([gone, this.#leaving.signal]),
        upgrade,
      });
    } catch (error) {
      if (error instanceof ApiError) return json(error.code, error.status);
      this.#deps.logger.error("A request of the local API could not be answered", { error: messageOf(error) });
      return json(500, internalError("the log has the reason").status);
    }
  }
}

const toContext = ({ cert, key, clientAuthorities }: ListenerCertificates): tls.TlsOptions => ({
  cert,
  key,
  ca: [...clientAuthorities],
  minVersion: "TLSv1.2",
  requestCert: true,
  // Clients without a valid certificate are answered with 401.
  rejectUnauthorized: false,
  handshakeTimeout: HANDSHAKE_MS,
});

function parseUrl(target: string): Pick<ApiRequest, "path" | "query"> {
  const [path = "/", query = ""] = target.split(/\?(.*)/s, 2);
  try {
    return { path: decodeURIComponent(path), query: new URLSearchParams(query) };
  } catch {
    throw badRequest("the path is not valid percent-encoded UTF-8");
  }
}

function shownBy(socket: TLSSocket): ShownCertificate | undefined {
  const certificate = socket.getPeerCertificate?.();
  if (!certificate?.subject || !certificate.valid_to) return undefined;
  const { CN, O } = certificate.subject as { CN?: string | string[]; O?: string | string[] };
  return {
    isVerified: socket.authorized,
    commonName: [CN ?? []].flat().at(-1) ?? "",
    organizations: [O ?? []].flat(),
    notAfter: new Date(certificate.valid_to),
  };
}

async function readBody(message: IncomingMessage, clock: Clock): Promise<Uint8Array> {
  if (Number(message.headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const cancel = clock.schedule(BODY_MS, () => message.destroy(new Error("the body took too long")));
  try {
    for await (const chunk of message as AsyncIterable<Uint8Array>) {
      length += chunk.length;
      if (length > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
      chunks.push(chunk);
    }
  } finally {
    cancel();
  }
  return Buffer.concat(chunks);
}

async function sendPlain(
  response: ServerResponse,
  { status, headers, body }: PlainAnswer,
  isHead: boolean,
): Promise<void> {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  response.writeHead(status, {
    ...headers,
    "Content-Length": String(bytes.length),
    "Cache-Control": "no-cache, private",
  });
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    if (isHead) response.end(resolve);
    else response.end(bytes, resolve);
  });
}

async function sendStream(
  response: ServerResponse,
  { status, headers, chunks }: StreamAnswer,
  gone: AbortSignal,
): Promise<void> {
  response.writeHead(status, { ...headers, "Cache-Control": "no-cache, private" });
  response.flushHeaders();
  for await (const chunk of chunks) {
    if (gone.aborted) return;
    if (!response.write(chunk)) await drained(response, gone);
  }
  if (!gone.aborted) await new Promise<void>((resolve) => response.end(resolve));
}

/** Resolves when more may be written, or the client is gone. */
const drained = (response: ServerResponse, gone: AbortSignal) =>
  new Promise<void>((resolve) => {
    const done = () => {
      response.off("drain", done);
      gone.removeEventListener("abort", done);
      resolve();
    };
    response.on("drain", done);
    gone.addEventListener("abort", done);
  });

function rawAnswer({ status, headers, body }: PlainAnswer): Buffer {
  const bytes = Buffer.from(body as string);
  const all = { ...headers, "Content-Length": String(bytes.length), Connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n`),
    bytes,
  ]);
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
