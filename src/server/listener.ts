import { rmSync } from "node:fs";
import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import { type Answer, type RouteRequest, textAnswer, toRouteRequest } from "./answer.ts";

/** Where a listener listens. */
export type ListenerPlace =
  | {
      /** Address to bind, never empty: Bun's default would be all interfaces. */
      hostname: string;
      /** 0 is not "any port" but "no listener"; see `startServers`. */
      port: number;
    }
  /** A Unix socket for our own user alone. What is there is replaced: the caller knows that nobody listens on it. */
  | { socketPath: string };

/** One place and what answers there. */
export interface ListenerOptions {
  /** For the log: `read-only port`, `healthz port`, `command socket`. */
  name: string;
  place: ListenerPlace;
  route: (request: RouteRequest) => Answer | Promise<Answer>;
  /** Called when the port or socket is open, which may be later than the start. */
  onListening?: (() => void) | undefined;
}

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** Idle connections and readers that take nothing are dropped after this. Above a Prometheus interval of 15 s. */
const IDLE_TIMEOUT_SECONDS = 30;
/** Only queries are posted; the largest real one is a few hundred bytes. */
const MAX_BODY_BYTES = 64 * 1024;

/**
 * Serves one port or socket for as long as the process lives. A port that is taken (or an address the machine does not have yet)
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

  /** Path of the socket that answers, undefined while it could not be had. */
  get socketPath(): string | undefined {
    const { place } = this.#options;
    return this.#server && "socketPath" in place ? place.socketPath : undefined;
  }

  /** Never throws for a port that is busy. */
  start(): void {
    const { name, place } = this.#options;
    const address = addressOf(place);
    try {
      this.#server =
        "socketPath" in place
          ? this.#serveSocket(place.socketPath)
          : // With `development: false` Bun would share the port with whoever else shares it, another kubelet-ts included.
            Bun.serve({ ...place, reusePort: false, idleTimeout: IDLE_TIMEOUT_SECONDS, ...this.#handlers() });
    } catch (error) {
      const waitMs = this.#retryMs;
      this.#retryMs = Math.min(waitMs * 2, LONGEST_RETRY_MS);
      const fields = { address, error: error instanceof Error ? error.message : String(error) };
      if (waitMs === FIRST_RETRY_MS) this.#logger.error(`Cannot serve the ${name}, trying again`, fields);
      else this.#logger.debug(`The ${name} is still not to be had`, fields);
      this.#cancelRetry = this.#clock.schedule(waitMs, () => this.start());
      return;
    }
    this.#cancelRetry = undefined;
    this.#logger.info(`Serving the ${name}`, { address });
    this.#options.onListening?.();
  }

  #serveSocket(path: string): Bun.Server<undefined> {
    // A file that was left behind would be taken for somebody who listens.
    rmSync(path, { force: true });
    const umask = process.umask(0o077);
    try {
      return Bun.serve({ unix: path, ...this.#handlers() });
    } finally {
      process.umask(umask);
    }
  }

  #handlers() {
    return {
      // In a compiled binary NODE_ENV reads "development", and then error pages would show our source.
      development: false,
      maxRequestBodySize: MAX_BODY_BYTES,
      fetch: (request: Request) => this.#answer(request, this.#options.route),
      error: () => new Response("500 internal server error\n", { status: 500 }),
    } as const;
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

function addressOf(place: ListenerPlace): string {
  if ("socketPath" in place) return place.socketPath;
  return `${place.hostname.includes(":") ? `[${place.hostname}]` : place.hostname}:${place.port}`;
}

function toResponse({ status, headers, body }: Answer): Response {
  // HEAD gets the same: Bun sends the headers, Content-Length included, and leaves the body out.
  return new Response(body, { status, headers });
}
