import { rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import tls, { type TLSSocket } from "node:tls";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { TlsVersions } from "../config/cipher-suites.ts";
import { type ConnectionLimits, ConnectionTable } from "./connection-table.ts";
import { HttpServer, type HttpServerOptions, IDLE_MS } from "./http-server.ts";
import type { TlsMaterial } from "./serving-certificate.ts";

/** Where a listener listens. */
export type ListenerPlace =
  | {
      /** Address to bind, never empty. */
      hostname: string;
      /** 0: the system chooses one. */
      port: number;
    }
  /** A Unix socket that only the own user may use. A file of that path is replaced: the caller knows that it is stale. */
  | { socketPath: string };

export interface ListenerOptions extends HttpServerOptions {
  place: ListenerPlace;
  /** Called when the listener begins to listen, which may be later than the start. */
  onListening?: (() => void) | undefined;
  /** Names the process that listens on a port, for the log; asked when the port is in use. */
  portHolder?: ((port: number) => Promise<string | undefined>) | undefined;
  /** Absent: without TLS. */
  tls?: ListenerTls;
  /** Default: 500 connections, 250 of one address. */
  limits?: ConnectionLimits;
}

export interface ListenerTls {
  versions: TlsVersions;
  /** Connections without TLS are served too, and the port opens before the files can be used. Default: neither. */
  isOptional?: boolean;
  /** Reads the files. @throws Error whose message is for the operator */
  readMaterial: () => TlsMaterial | Promise<TlsMaterial>;
}

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** How often certificates and keys are checked for changes. */
const RELOAD_MS = 10_000;
const HANDSHAKE_MS = 10_000;
/** Requests in progress end by then when the listener stops, or are cut off. */
const STOP_MS = 3_000;
/** Content type of the first TLS record of a client. Source: RFC 8446, 5.1. */
const TLS_HANDSHAKE = 0x16;
const LIMITS: ConnectionLimits = { connections: 500, perAddress: 250 };

/**
 * Serves one port or socket until it is stopped. A port that is taken, an address that the machine does not have yet, and
 * certificate files that cannot be used are logged once and tried again, 1 s to 60 s apart: they never end or delay the
 * supervision of pods. Certificate files that change are in use within ten seconds; unusable ones leave the old ones in use.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #table: ConnectionTable;
  readonly #http: HttpServer;
  #server: Server | undefined;
  /** Handles TLS for the connections that `#server` accepts; undefined without TLS. */
  #tls: tls.Server | undefined;
  #material: TlsMaterial | undefined;
  #isListening = false;
  #isStopped = false;
  #cancelTimer: (() => void) | undefined;
  #retryMs = FIRST_RETRY_MS;
  #loggedProblem = "";
  #reloading: Promise<void> | undefined;

  constructor(options: ListenerOptions, clock: Clock, logger: Logger) {
    this.#options = options;
    this.#clock = clock;
    this.#logger = logger;
    this.#table = new ConnectionTable(clock, options.limits ?? LIMITS);
    this.#http = new HttpServer(options, this.#table, logger);
  }

  /** Port in use; undefined while it is not available. */
  get port(): number | undefined {
    const address = this.#isListening ? this.#server?.address() : undefined;
    return address && typeof address === "object" ? address.port : undefined;
  }

  /** Path of the socket in use; undefined while it is not available. */
  get socketPath(): string | undefined {
    const { place } = this.#options;
    return this.#isListening && "socketPath" in place ? place.socketPath : undefined;
  }

  /** Never throws. */
  start(): void {
    void this.#start();
  }

  async #start(): Promise<void> {
    if (this.#isStopped) return;
    try {
      const { tls } = this.#options;
      if (tls && !tls.isOptional) {
        this.#material = await tls.readMaterial();
        if (this.#isStopped) return;
        this.#tls = this.#createTls(tls, this.#material);
      }
      this.#listen();
    } catch (error) {
      this.#retry(error);
    }
  }

  /** Stops listening, closes all connections and retries no more. Work for clients is aborted and waited for. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#isListening = false;
    this.#server?.close();
    this.#table.destroyAll();
    const deadline = Promise.withResolvers<void>();
    const cancel = this.#clock.schedule(STOP_MS, deadline.resolve);
    await Promise.race([this.#http.settled(), deadline.promise]);
    cancel();
  }

  get #address(): string {
    const { place } = this.#options;
    if ("socketPath" in place) return place.socketPath;
    return `${place.hostname.includes(":") ? `[${place.hostname}]` : place.hostname}:${place.port}`;
  }

  #retry(error: unknown): void {
    if (this.#isStopped) return;
    const waitMs = this.#retryMs;
    this.#retryMs = Math.min(waitMs * 2, LONGEST_RETRY_MS);
    const { name } = this.#options;
    const fields = { address: this.#address, error: messageOf(error) };
    if (fields.error !== this.#loggedProblem) {
      void this.#holderOf(error).then((holder) =>
        this.#logger.error(`Cannot serve the ${name}, trying again`, { ...fields, ...holder }),
      );
    } else this.#logger.debug(`The ${name} is still not available`, fields);
    this.#loggedProblem = fields.error;
    this.#cancelTimer = this.#clock.schedule(waitMs, () => this.start());
  }

  /** Never rejects. */
  async #holderOf(error: unknown): Promise<{ holder?: string }> {
    const { place, portHolder } = this.#options;
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || !("port" in place)) return {};
    const holder = await portHolder?.(place.port).catch(() => undefined);
    return holder === undefined ? {} : { holder };
  }

  #listen(): void {
    const { place, name } = this.#options;
    const server = createServer((socket) => this.#accept(socket));
    this.#server = server;
    server.on("error", (error) => {
      if (this.#server === server && !this.#isListening && !this.#isStopped) this.#retry(error);
    });
    const onListening = () => {
      if (this.#isStopped) return void server.close();
      this.#isListening = true;
      this.#retryMs = FIRST_RETRY_MS;
      this.#loggedProblem = "";
      this.#cancelTimer = undefined;
      this.#logger.info(`Serving the ${name}`, { address: this.#address });
      this.#options.onListening?.();
      if (this.#options.tls) this.#scheduleReload(this.#options.tls);
    };
    if ("socketPath" in place) listenOnSocket(server, place.socketPath, onListening);
    else server.listen({ host: place.hostname, port: place.port, exclusive: true }, onListening);
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    const { tls } = this.#options;
    const firstMs = tls && !tls.isOptional ? HANDSHAKE_MS : IDLE_MS;
    if (!this.#table.admit(socket, firstMs)) return;
    if (tls?.isOptional) socket.once("data", (first: Buffer) => void this.#serveEither(socket, first, tls));
    else if (this.#tls) this.#tls.emit("connection", socket);
    else this.#http.serve(socket);
  }

  /** @param first the bytes that the client sent first: a TLS handshake or the start of a request */
  async #serveEither(socket: Socket, first: Buffer, options: ListenerTls): Promise<void> {
    socket.pause();
    socket.unshift(first);
    if (first[0] !== TLS_HANDSHAKE) {
      this.#http.serve(socket);
      socket.resume();
      return;
    }
    if (!this.#tls) await this.#reload(options);
    if (this.#tls && !socket.destroyed) this.#tls.emit("connection", socket);
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
        this.#http.serve(socket);
      },
    );
    server.on("tlsClientError", (_error, socket) => void socket.destroy());
    return server;
  }

  #scheduleReload(options: ListenerTls): void {
    this.#cancelTimer = this.#clock.schedule(RELOAD_MS, async () => {
      await this.#reload(options);
      if (!this.#isStopped) this.#scheduleReload(options);
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
}

function listenOnSocket(server: Server, path: string, onListening: () => void): void {
  // The file of a process that was killed would make the address look taken.
  rmSync(path, { force: true });
  const umask = process.umask(0o177);
  try {
    server.listen({ path }, onListening);
  } finally {
    process.umask(umask);
  }
}
