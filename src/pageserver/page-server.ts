import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Duplex } from "node:stream";
import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";

/** Where the page is served. */
export interface PageServerOptions {
  hostname: string;
  port: number;
  /** Key and certificate in PEM; required where the address is not loopback. */
  tls?: { key: string; cert: string };
}

/** The routes. Both may reject; the request is then answered with 500. */
export interface PageHandler {
  onRequest(request: IncomingMessage, response: ServerResponse): Promise<void>;
  onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 60_000;
/** Browsers use up to six connections and one for each stream; a proxy needs some more. */
const MAX_CONNECTIONS = 256;
const MAX_CONNECTIONS_PER_ADDRESS = 128;
const HEADERS_TIMEOUT_MS = 10_000;

/**
 * The HTTP server of the page's port. A port that is in use is retried with growing delays: it never ends or delays the
 * supervision of pods.
 */
export class PageServer {
  readonly #options: PageServerOptions;
  readonly #handler: PageHandler;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #connections = new Map<string, number>();
  #server: Server | undefined;
  #cancelRetry: (() => void) | undefined;
  #retryMs = FIRST_RETRY_MS;

  constructor(options: PageServerOptions, handler: PageHandler, clock: Clock, logger: Logger) {
    this.#options = options;
    this.#handler = handler;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Port that answers; undefined while it is in use by another program. */
  get port(): number | undefined {
    const address = this.#server?.address();
    return typeof address === "object" && address !== null ? address.port : undefined;
  }

  start(): void {
    const { hostname, port, tls } = this.#options;
    const listener = (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response);
    const server = tls ? createTlsServer(tls, listener) : createServer(listener);
    server.headersTimeout = HEADERS_TIMEOUT_MS;
    server.maxConnections = MAX_CONNECTIONS;
    server.on("connection", (socket) => this.#limit(socket));
    server.on("upgrade", (request, socket, head) => this.#handler.onUpgrade(request, socket, head));
    server.on("clientError", (_, socket) => socket.destroy());
    server.once("error", (error) => {
      const waitMs = this.#retryMs;
      this.#retryMs = Math.min(waitMs * 2, LONGEST_RETRY_MS);
      const fields = { address: `${hostname}:${port}`, error: error.message };
      if (waitMs === FIRST_RETRY_MS) this.#logger.error("Cannot serve the cAdvisor port, retrying", fields);
      this.#cancelRetry = this.#clock.schedule(waitMs, () => this.start());
    });
    server.listen(port, hostname, () => {
      this.#server = server;
      this.#logger.info("Serving the cAdvisor port", { address: `${hostname}:${port}` });
    });
  }

  async stop(): Promise<void> {
    this.#cancelRetry?.();
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  #limit(socket: import("node:net").Socket): void {
    const address = socket.remoteAddress ?? "";
    const open = this.#connections.get(address) ?? 0;
    if (open >= MAX_CONNECTIONS_PER_ADDRESS) return void socket.destroy();
    this.#connections.set(address, open + 1);
    socket.on("error", () => {});
    socket.once("close", () => {
      const left = (this.#connections.get(address) ?? 1) - 1;
      if (left > 0) this.#connections.set(address, left);
      else this.#connections.delete(address);
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#handler.onRequest(request, response);
    } catch (error) {
      // The reason goes to the log only: its text may hold what this port does not show.
      this.#logger.error("A request could not be answered", {
        server: "cAdvisor port",
        path: request.url?.split("?")[0] ?? "",
        error: error instanceof Error ? error.message : String(error),
      });
      if (response.headersSent) response.destroy();
      else response.writeHead(500, { "Content-Type": "text/plain; charset=utf-8" }).end("500 internal server error\n");
    }
  }
}
