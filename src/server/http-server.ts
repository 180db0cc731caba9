import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { FairShare } from "../base/concurrency/fair-share.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { ShownCertificate } from "./client-identity.ts";
import type { ConnectionTable } from "./connection-table.ts";
import {
  type ConnectionPorts,
  type HttpResponse,
  type ListenerRequest,
  type ListenerResponse,
  parseTarget,
  textResponse,
  tooManyRequests,
} from "./http-response.ts";
import { BodyBudget, BodyTooLongError, RequestBody, TooManyBodiesError } from "./request-body.ts";
import { bytesOf, rawResponse, sendResponse, streamResponse } from "./send-response.ts";
import { acceptWebSocket } from "./websocket.ts";

export interface HttpServerOptions {
  /** For the log. */
  name: string;
  route: (request: ListenerRequest) => ListenerResponse | Promise<ListenerResponse>;
  /** Whether a request for this host is answered; others get 421. */
  acceptsHost: (host: string | null) => boolean;
}

/** An idle connection is closed after this, and one whose request does not get complete. Above usual scrape intervals. */
export const IDLE_MS = 60_000;
/** A client that has not taken its whole answer by then is dropped. */
const SEND_MS = 60_000;
/** Requests that a client may send before it has the answer to the first. */
const MAX_PIPELINED = 16;
/** A body that is not complete by then is cut off. */
const BODY_MS = 60_000;
/** Only queries are posted as text; the largest real one is a few hundred bytes. */
const MAX_TEXT_BYTES = 64 * 1024;
/** Bytes of the bodies of all requests that are being answered. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
/**
 * Requests that are answered at the same time; above it, addresses that have more than their share are refused. Streams are
 * limited by the connections, and a connection's requests are answered one after the other.
 */
const MAX_REQUESTS = 256;
/** Bytes of answers that clients have not taken yet. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

/** One connection's requests, answered one after the other. */
interface Queue {
  length: number;
  last: Promise<void>;
}

/** HTTP over connections that something else accepts. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #table: ConnectionTable;
  readonly #logger: Logger;
  readonly #http: Server;
  readonly #queues = new WeakMap<Duplex, Queue>();
  readonly #running = new Set<Promise<void>>();
  readonly #bodies = new BodyBudget(MAX_BODY_BYTES);
  readonly #requests = new FairShare(MAX_REQUESTS);
  #unsentBytes = 0;
  /** Requests in {@link #running} that are to become something else than HTTP. */
  #sessions = 0;

  constructor(options: HttpServerOptions, table: ConnectionTable, logger: Logger) {
    this.#options = options;
    this.#table = table;
    this.#logger = logger;
    this.#http = createServer((request, response) => this.#enqueue(request, response));
    // The default of 5 s would end a connection between two scrapes.
    this.#http.keepAliveTimeout = IDLE_MS;
    this.#http.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#sessions++;
      this.#track(this.#upgrade(request, socket, head).finally(() => this.#sessions--));
    });
    this.#http.on("clientError", (_error, socket) => void socket.destroy());
  }

  /** Serves a connection that the table has admitted. */
  serve(socket: Duplex): void {
    this.#http.emit("connection", socket);
  }

  /** Resolves when no request is being answered. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** `work` never rejects. */
  #track(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  #enqueue(message: IncomingMessage, response: ServerResponse): void {
    const { socket } = message;
    const queue = this.#queues.get(socket) ?? { length: 0, last: Promise.resolve() };
    this.#queues.set(socket, queue);
    if (queue.length >= MAX_PIPELINED) {
      socket.destroy();
      return;
    }
    queue.length++;
    queue.last = queue.last
      .then(() => this.#serve(message, response))
      .finally(() => {
        queue.length--;
        if (queue.length === 0) this.#table.mark(socket, "idle", IDLE_MS);
      });
    this.#track(queue.last);
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = message;
    if (socket.destroyed) return;
    this.#table.mark(socket, "working");
    const gone = new AbortController();
    const onClose = () => gone.abort(new DOMException("the client is gone", "AbortError"));
    response.on("error", () => {});
    response.on("close", onClose);
    socket.on("close", onClose);
    const body = new RequestBody(message, this.#bodies);
    const leave = this.#requests.enter(socket.remoteAddress ?? "");
    try {
      const answer = leave ? await this.#answer(message, body, "", gone.signal) : tooManyRequests();
      if (gone.signal.aborted) return;
      if ("run" in answer || "takeOver" in answer) throw new Error("an upgrade for a request that asked for none");
      if ("chunks" in answer) {
        leave?.();
        await streamResponse(response, answer, gone.signal);
      } else await this.#send(response, answer, message);
      // The unread rest of a body must not be parsed as the next request.
      if (body.isCut) socket.destroy();
    } catch (error) {
      if (!gone.signal.aborted) {
        this.#logger.debug("A request was not answered completely", {
          server: this.#options.name,
          error: messageOf(error),
        });
      }
      socket.destroy();
    } finally {
      leave?.();
      body.release();
      socket.off("close", onClose);
    }
  }

  async #send(response: ServerResponse, wanted: HttpResponse, message: IncomingMessage): Promise<void> {
    const { length } = bytesOf(wanted);
    const hasRoom = () => this.#unsentBytes === 0 || this.#unsentBytes + length <= MAX_UNSENT_BYTES;
    // Clients that read nothing must not keep others from their answers; what is closed gives its bytes back a turn later.
    if (!hasRoom() && this.#table.dropSlowReaders()) await new Promise<void>((resolve) => setImmediate(resolve));
    const fits = hasRoom();
    const answer = fits ? wanted : tooManyRequests();
    const bytes = fits ? length : 0;
    this.#table.mark(message.socket, "sending", SEND_MS);
    this.#unsentBytes += bytes;
    try {
      await sendResponse(response, answer, message.method === "HEAD");
    } finally {
      this.#unsentBytes -= bytes;
    }
  }

  async #upgrade(message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    this.#table.mark(message.socket, "working");
    socket.on("error", () => {});
    const gone = new AbortController();
    const onClose = () => gone.abort(new DOMException("the client is gone", "AbortError"));
    socket.on("close", onClose);
    const upgrade = String(message.headers.upgrade ?? "").toLowerCase();
    const body = new RequestBody(message, this.#bodies);
    const leave = this.#requests.enter(message.socket.remoteAddress ?? "");
    const answer = leave ? await this.#answer(message, body, upgrade, gone.signal) : tooManyRequests();
    leave?.();
    body.release();
    socket.off("close", onClose);
    if (gone.signal.aborted) return;
    if (!("run" in answer || "takeOver" in answer)) {
      const refusal = "chunks" in answer ? textResponse(400, "This cannot be upgraded.\n") : answer;
      // Ends a stream that was opened for the request.
      gone.abort(new DOMException("the stream is not wanted", "AbortError"));
      this.#table.mark(message.socket, "sending", SEND_MS);
      socket.end(rawResponse(refusal));
      return;
    }
    const connection = "run" in answer ? await acceptWebSocket(message, socket, head, answer.protocol) : undefined;
    if ("run" in answer && !connection) return;
    try {
      if ("takeOver" in answer) await answer.takeOver(message, socket, head);
      else if (connection) await answer.run(connection);
    } catch (error) {
      this.#logger.error("A session failed", { server: this.#options.name, error: messageOf(error) });
      connection?.destroy();
      socket.destroy();
    }
    this.#table.mark(message.socket, "sending", SEND_MS);
  }

  /** The route's answer; when the route fails it is 500, and the reason is only in the log. */
  async #answer(
    message: IncomingMessage,
    body: RequestBody,
    upgrade: string,
    signal: AbortSignal,
  ): Promise<ListenerResponse> {
    const target = parseTarget((message.url ?? "/").replace(/^https?:\/\/[^/?]*(?=[/?]|$)/i, "") || "/");
    if (!target?.path.startsWith("/")) return textResponse(400, "400 Bad Request");
    if (!this.#options.acceptsHost(message.headers.host ?? null)) {
      return refusal(421, "421: this server answers for localhost, its node and addresses only\n");
    }
    const read = async (maxBytes: number) => {
      this.#table.mark(message.socket, "idle", BODY_MS);
      try {
        return await body.read(maxBytes);
      } finally {
        this.#table.mark(message.socket, "working");
      }
    };
    try {
      return await this.#options.route({
        method: message.method ?? "GET",
        ...target,
        header: (name) => {
          const value = message.headers[name.toLowerCase()];
          return value === undefined ? null : String(value);
        },
        body: read,
        text: async (maxBytes = MAX_TEXT_BYTES) => Buffer.from(await read(maxBytes)).toString(),
        shown: certificateOf(message.socket as TLSSocket),
        isSecure: (message.socket as TLSSocket).encrypted === true,
        ports: portsOf(message.socket),
        signal,
        upgrade,
        sessions: this.#sessions,
      });
    } catch (error) {
      if (error instanceof BodyTooLongError) return refusal(413, `413: ${error.message}\n`);
      if (error instanceof TooManyBodiesError) return tooManyRequests();
      if (!signal.aborted) {
        this.#logger.error("A request could not be answered", {
          server: this.#options.name,
          path: target.path,
          error: messageOf(error),
        });
      }
      return refusal(500, "500 internal server error\n");
    }
  }
}

const refusal = (status: number, body: string): HttpResponse =>
  textResponse(status, body, { "X-Content-Type-Options": "nosniff" });

function portsOf({ remotePort, localPort }: Socket): ConnectionPorts | undefined {
  return remotePort && localPort ? { client: remotePort, server: localPort } : undefined;
}

/** The certificate that the client of a TLS connection sent. */
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
