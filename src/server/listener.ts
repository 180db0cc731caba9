import { BackOff } from "../base/model/back-off.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import { BunTransport } from "./bun-transport.ts";
import type { ConnectionLimits } from "./connection-table.ts";
import { type ListenerTls, NodeTransport } from "./node-transport.ts";
import { type ListenAddress, RequestHandler, type RequestHandlerOptions, type Transport } from "./request-handler.ts";

export interface ListenerOptions extends RequestHandlerOptions {
  address: ListenAddress;
  /** `Bun.serve`, unless the port needs what only node:http can do: certificates of clients, SPDY, TLS and none on one port. */
  transport: "Bun.serve" | "node:http";
  /** Absent: without TLS. Only with node:http. */
  tls?: ListenerTls | undefined;
  /** Only with node:http. Default: 500 connections, 250 of one address. */
  limits?: ConnectionLimits;
}

/** Shared by all listeners of a process. */
export interface ListenerEnvironment {
  clock: Clock;
  logger: Logger;
  /** Called when a listener begins to listen, which may be later than its start. */
  onListening?: () => void;
  /** Names the process that listens on a port, for the log, e.g. `nginx (pid 812)`; asked when the port is in use. */
  portHolder?: (port: number) => Promise<string | undefined>;
}

const RETRY_MS = { first: 1_000, longest: 60_000 };
/** Requests in progress end by then when the listener stops, or are cut off. */
const STOP_MS = 3_000;

/**
 * Serves one port or socket until it is stopped. A port that is taken, an address that the machine does not have yet, and
 * certificate files that cannot be used are logged once and tried again, 1 s to 60 s apart: they never end or delay the
 * supervision of pods.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #environment: ListenerEnvironment;
  readonly #transport: Transport;
  #isListening = false;
  #isStopped = false;
  #cancelRetry: (() => void) | undefined;
  readonly #backOff = new BackOff(RETRY_MS);
  #loggedProblem = "";

  constructor(options: ListenerOptions, environment: ListenerEnvironment) {
    const { clock, logger } = environment;
    this.#options = options;
    this.#environment = environment;
    const handler = new RequestHandler(options, logger);
    this.#transport =
      options.transport === "Bun.serve"
        ? new BunTransport(handler, clock, logger)
        : new NodeTransport(handler, options, clock, logger);
  }

  get port(): number | undefined {
    return this.#isListening ? this.#transport.port : undefined;
  }

  get socketPath(): string | undefined {
    const { address } = this.#options;
    return this.#isListening && "socketPath" in address ? address.socketPath : undefined;
  }

  /** Never throws. */
  start(): void {
    void this.#start();
  }

  async #start(): Promise<void> {
    if (this.#isStopped) return;
    const { name, address } = this.#options;
    try {
      await this.#transport.listen(address);
    } catch (error) {
      return this.#retry(error);
    }
    if (this.#isStopped) return void this.#transport.stop();
    this.#isListening = true;
    this.#environment.logger.info(`Serving the ${name}`, { address: this.#shownAddress });
    this.#environment.onListening?.();
  }

  /** Stops listening, closes all connections and retries no more. Work for clients is aborted and waited for. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#isListening = false;
    this.#cancelRetry?.();
    const deadline = Promise.withResolvers<void>();
    const cancel = this.#environment.clock.schedule(STOP_MS, deadline.resolve);
    await Promise.race([this.#transport.stop(), deadline.promise]);
    cancel();
  }

  get #shownAddress(): string {
    const { address } = this.#options;
    if ("socketPath" in address) return address.socketPath;
    return `${address.hostname.includes(":") ? `[${address.hostname}]` : address.hostname}:${address.port}`;
  }

  #retry(error: unknown): void {
    if (this.#isStopped) return;
    const { clock, logger } = this.#environment;
    const { name } = this.#options;
    const fields = { address: this.#shownAddress, error: messageOf(error) };
    if (fields.error !== this.#loggedProblem) {
      void this.#holderOf(error).then((holder) =>
        logger.error(`Cannot serve the ${name}, trying again`, { ...fields, ...holder }),
      );
    } else logger.debug(`The ${name} is still not available`, fields);
    this.#loggedProblem = fields.error;
    this.#cancelRetry = clock.schedule(this.#backOff.next(), () => this.start());
  }

  /** Never rejects. */
  async #holderOf(error: unknown): Promise<{ holder?: string }> {
    const { address } = this.#options;
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || !("port" in address)) return {};
    const holder = await this.#environment.portHolder?.(address.port).catch(() => undefined);
    return holder === undefined ? {} : { holder };
  }
}
