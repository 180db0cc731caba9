import { rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import tls, { type TLSSocket } from "node:tls";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { TlsVersions } from "../config/cipher-suites.ts";
import { type ConnectionLimits, ConnectionTable } from "./connection-table.ts";
import { NodeHttp } from "./node-http.ts";
import { IDLE_MS, type ListenAddress, type RequestHandler, type Transport } from "./request-handler.ts";
import type { TlsMaterial } from "./serving-certificate.ts";

export interface ListenerTls {
  versions: TlsVersions;
  /** Connections without TLS are served too, and the port opens before the files can be used. Default: neither. */
  isOptional?: boolean;
  /** Reads the files. @throws Error whose message is for the operator */
  readMaterial: () => TlsMaterial | Promise<TlsMaterial>;
}

interface NodeTransportOptions {
  /** For the log. */
  name: string;
  tls?: ListenerTls | undefined;
  limits?: ConnectionLimits;
}

/** How often certificates and keys are checked for changes. */
const RELOAD_MS = 10_000;
const HANDSHAKE_MS = 10_000;
/** Content type of the first TLS record of a client. Source: RFC 8446, 5.1. */
const TLS_HANDSHAKE = 0x16;
const LIMITS: ConnectionLimits = { connections: 500, perAddress: 250 };

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
  readonly #http: NodeHttp;
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
    this.#http = new NodeHttp(handler, this.#table, logger);
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
      if ("socketPath" in address) listenOnSocket(server, address.socketPath, resolve);
      else server.listen({ host: address.hostname, port: address.port, exclusive: true }, resolve);
    });
    if (tls) this.#scheduleReload(tls);
  }

  async stop(): Promise<void> {
    this.#cancelReload?.();
    this.#cancelReload = undefined;
    this.#server?.close();
    this.#table.destroyAll();
    await this.#http.settled();
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
