import { rmSync } from "node:fs";
import { TurnPace } from "../base/concurrency/turn-pace.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import {
  type HttpResponse,
  type ListenerRequest,
  type ListenerResponse,
  NOSNIFF,
  parseTarget,
  textResponse,
  tooManyRequests,
} from "./http-response.ts";

/** The part of a listener's options that no transport needs. */
export interface RequestHandlerOptions {
  name: string;
  route: (request: ListenerRequest) => ListenerResponse | Promise<ListenerResponse>;
  /** Whether a request for this host is answered; others get 421. */
  acceptsHost: (host: string | null) => boolean;
}

export type ListenAddress =
  | {
      /** Address to bind, never empty. */
      hostname: string;
      /** 0: the system chooses one. */
      port: number;
    }
  /** A Unix socket that only the own user may use. A file of that path is replaced: the caller knows that it is stale. */
  | { socketPath: string };

/** Listens on a Unix socket that only the own user may use. */
export function onPrivateSocket<T>(path: string, listen: (path: string) => T): T {
  // The file of a process that was killed would make the address look taken.
  rmSync(path, { force: true });
  const umask = process.umask(0o177);
  try {
    return listen(path);
  } finally {
    process.umask(umask);
  }
}

export interface Transport {
  /** In use; undefined before, and for a Unix socket. */
  readonly port: number | undefined;
  /** Resolves when it listens. @throws Error when the address cannot be had */
  listen(address: ListenAddress): Promise<void>;
  /** Closes all connections. Work for clients is aborted and waited for. */
  stop(): Promise<void>;
}

/** A request as a transport hands it over. */
interface ReceivedRequest {
  head: Omit<ListenerRequest, "path" | "query" | "body" | "text">;
  /** Path and query as they were sent. */
  target: string;
  /** Client's IP address; "" on a Unix socket. */
  address: string;
  /** The body as it arrives; iterated at most once. */
  chunks: () => AsyncIterable<Uint8Array>;
  /** Called before the body is read and after that: the client has {@link IDLE_MS} for it. */
  awaitsBody: (isAwaited: boolean) => void;
}

/** A connection ends after this time without a request, or before the whole request. Above usual scrape intervals. */
export const IDLE_MS = 60_000;
/** Only queries are posted as text; the largest real one is a few hundred bytes. */
const MAX_TEXT_BYTES = 64 * 1024;
/** Bytes of the bodies of all requests in work. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** Requests that begin in one turn of the loop: of hundreds that come together, each takes up to half a millisecond of it. */
const REQUESTS_PER_TURN = 16;
/** Requests in work; above it, addresses that have more than their share are refused. */
const MAX_REQUESTS = 256;

/** A body longer than the caller accepts. */
export class BodyTooLongError extends Error {
  constructor(maxBytes: number) {
    super(`the body of the request is longer than ${maxBytes} bytes`);
  }
}

/** The bodies of all requests together take too much memory. */
export class TooManyBodiesError extends Error {}

/**
 * Makes the responses of one listener, for both transports: the rule of the Host header, bounded bodies, a cap of the
 * requests in work, and 500 for a route that fails.
 */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #logger: Logger;
  readonly #requests = new FairShare(MAX_REQUESTS);
  readonly #pace = new TurnPace(REQUESTS_PER_TURN);
  #bodyBytes = 0;

  constructor(options: RequestHandlerOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
  }

  /** The route's response; when the route fails it is 500, and the reason is only in the log. Never rejects. */
  async respond(received: ReceivedRequest): Promise<ListenerResponse> {
    await this.#pace.enter(1);
    const leave = this.#requests.enter(received.address);
    if (!leave) return tooManyRequests();
    const { head } = received;
    const target = parseTarget(received.target);
    const held = { bytes: 0 };
    const body = (maxBytes: number) => this.#read(received, maxBytes, held);
    try {
      if (!target?.path.startsWith("/")) return textResponse(400, "400 Bad Request");
      if (!this.#options.acceptsHost(head.header("Host"))) {
        return textResponse(421, "421: this server answers for localhost, its node and addresses only\n", NOSNIFF);
      }
      return await this.#options.route({
        ...head,
        ...target,
        body,
        text: async (maxBytes = MAX_TEXT_BYTES) => Buffer.from(await body(maxBytes)).toString(),
      });
    } catch (error) {
      return this.#responseTo(error, target?.path ?? received.target, head.signal);
    } finally {
      this.#bodyBytes -= held.bytes;
      leave();
    }
  }

  /** @param held counts what this request has of the memory for all bodies */
  async #read({ head, chunks, awaitsBody }: ReceivedRequest, maxBytes: number, held: { bytes: number }) {
    const read: Uint8Array[] = [];
    awaitsBody(true);
    try {
      if (Number(head.header("Content-Length") ?? 0) > maxBytes) throw new BodyTooLongError(maxBytes);
      for await (const chunk of chunks()) {
        if (this.#bodyBytes + chunk.length > MAX_BODY_BYTES) throw new TooManyBodiesError("too many bodies at a time");
        this.#bodyBytes += chunk.length;
        held.bytes += chunk.length;
        if (held.bytes > maxBytes) throw new BodyTooLongError(maxBytes);
        read.push(chunk);
      }
    } finally {
      awaitsBody(false);
    }
    return Buffer.concat(read);
  }

  #responseTo(error: unknown, path: string, signal: AbortSignal): HttpResponse {
    if (error instanceof BodyTooLongError) return textResponse(413, `413: ${error.message}\n`, NOSNIFF);
    if (error instanceof TooManyBodiesError) return tooManyRequests();
    if (!signal.aborted) {
      const { name } = this.#options;
      this.#logger.error("A request could not be answered", { server: name, path, error: messageOf(error) });
    }
    return textResponse(500, "500 internal server error\n", NOSNIFF);
  }
}

/** Counts what is under way, by client: an address or a user. Beyond the limit a client is refused that has more than its share. */
export class FairShare {
  readonly #limit: number;
  readonly #byClient = new Map<string, number>();
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns what ends it, to be called once or more; undefined: refused */
  enter(client: string): (() => void) | undefined {
    const own = (this.#byClient.get(client) ?? 0) + 1;
    const clients = this.#byClient.size + (own === 1 ? 1 : 0);
    if (this.#total >= this.#limit && own > Math.max(1, Math.floor(this.#limit / clients))) return undefined;
    this.#total++;
    this.#byClient.set(client, own);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      this.#total--;
      const left = this.#byClient.get(client)! - 1;
      if (left > 0) this.#byClient.set(client, left);
      else this.#byClient.delete(client);
    };
  }
}
