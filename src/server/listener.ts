import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import { type Answer, type RouteRequest, textAnswer, toRouteRequest } from "./answer.ts";

/** One port and what answers on it. */
export interface ListenerOptions {
  /** For the log: `read-only`, `healthz`, `cAdvisor`. */
  name: string;
  /** Address to bind, never empty: Bun's default would be all interfaces. */
  hostname: string;
  /** 0 is not "any port" but "no listener"; see `startServers`. */
  port: number;
  route: (request: RouteRequest) => Answer | Promise<Answer>;
}

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** Idle connections and readers that take nothing are dropped after this. Above a Prometheus interval of 15 s. */
const IDLE_TIMEOUT_SECONDS = 30;
/** Only queries are posted; the largest real one is a few hundred bytes. */
const MAX_BODY_BYTES = 64 * 1024;

/**
 * Serves one port for as long as the process lives. A port that is taken (or an address the machine does not have yet)
 * is logged once and tried again, 1 s to 60 s apart: it must never end or delay the supervision of pods. [S074]
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #server: Bun.Server<undefined> | undefined;
  #cancelRetry: (() => void) | undefined;
  #retryMs = FIRST_RETRY_MS;

  constructor(options: ListenerOptions, clock: Clock, logger: Logger) {
    this.#options = options;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Port that answers, undefined while it could not be had. */
  get port(): number | undefined {
    return this.#server?.port;
  }

  /** Never throws for a port that is busy. */
  start(): void {
    const { name, hostname, port, route } = this.#options;
    const address = `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
    try {
      this.#server = Bun.serve({
        hostname,
        port,
        // In a compiled binary NODE_ENV reads "development", and then error pages would show our source.
        development: false,
        idleTimeout: IDLE_TIMEOUT_SECONDS,
        maxRequestBodySize: MAX_BODY_BYTES,
        fetch: (request) => this.#answer(request, route),
        error: () => new Response("500 internal server error\n", { status: 500 }),
      });
    } catch (error) {
      const waitMs = this.#retryMs;
      this.#retryMs = Math.min(waitMs * 2, LONGEST_RETRY_MS);
      const fields = { address, error: error instanceof Error ? error.message : String(error) };
      if (waitMs === FIRST_RETRY_MS) this.#logger.error(`Cannot serve the ${name} port, trying again`, fields);
      else this.#logger.debug(`The ${name} port is still not to be had`, fields);
      this.#cancelRetry = this.#clock.schedule(waitMs, () => this.start());
      return;
    }
    this.#cancelRetry = undefined;
    this.#logger.info(`Serving the ${name} port`, { address });
  }

  /** Stops listening, cuts what is open, and tries no more. */
  async stop(): Promise<void> {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    await this.#server?.stop(true);
    this.#server = undefined;
  }

  #answer(request: Request, route: ListenerOptions["route"]): Response | Promise<Response> {
    const routed = toRouteRequest(request);
    if (!routed) return toResponse(textAnswer(400, "400 Bad Request"));
    try {
      const answer = route(routed);
      return answer instanceof Promise
        ? answer.then(toResponse, (error) => this.#failed(routed, error))
        : toResponse(answer);
    } catch (error) {
      return this.#failed(routed, error);
    }
  }

  /** The reason goes to the log only: an error text may hold what this port must not show. */
  #failed(request: RouteRequest, error: unknown): Response {
    this.#logger.error("A request could not be answered", {
      server: this.#options.name,
      path: request.path,
      error: error instanceof Error ? error.message : String(error),
    });
    return toResponse(textAnswer(500, "500 internal server error\n"));
  }
}

function toResponse({ status, headers, body }: Answer): Response {
  // HEAD gets the same: Bun sends the headers, Content-Length included, and leaves the body out.
  return new Response(body, { status, headers });
}
