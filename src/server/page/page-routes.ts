import type { Pod } from "../../base/api/pod.ts";
import { linesOf } from "../../base/files/bounded-stream.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { ContainerAccess, LogSelection, ProcessSession } from "../../base/model/container-access.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { isRecord, jsonIfValid } from "../../base/text/json.ts";
import {
  type Access,
  type ActionResult,
  type ApplyResult,
  type CompareResult,
  type HistoryRange,
  type NodeDetail,
  type PodDetail,
  type ProcessRow,
  RANGE_MS,
  type SessionState,
} from "../../page/wire.ts";
import { findLogContainer, findRunningContainer } from "../../plan/status/log-container.ts";
import { chooseProtocol } from "../channel-protocol.ts";
import { dataOf } from "../pod-streams.ts";
import { repeat, serveRemoteCommand } from "../remote-command.ts";
import {
  acceptsGzip,
  matchesEtag,
  NOSNIFF,
  type RouteResponse,
  type ServerRequest,
  textResponse,
  tooManyRequests,
} from "../request-handler.ts";
import type { WebSocketConnection } from "../websocket.ts";
import { type Asset, Assets, INLINE_SCRIPT } from "./assets.ts";
import { type PageFeed, PageStream } from "./page-feed.ts";
import { type PageSessions, SESSION_LIFETIME_MS } from "./page-session.ts";

export interface PageDetails {
  pods(): readonly Pod[];
  podDetail(uid: string, privileged: boolean): Promise<PodDetail | undefined>;
  nodeDetail(): Promise<NodeDetail>;
  processes(uid: string): Promise<readonly ProcessRow[]>;
}

export interface PageRoutesDeps {
  clock: Clock;
  feed: PageFeed;
  sessions: PageSessions;
  /** false: the port is on a network, where the page needs TLS and, for all but its files, a session. */
  isLocal: boolean;
  details: PageDetails;
  containers: ContainerAccess;
  /** User of the process that sent a request; undefined where that is not known, as on another machine. */
  clientUserId: (request: ServerRequest) => number | undefined;
  /** Absent on a node of a cluster: its pods are changed at the API server. */
  actions: PageActions | undefined;
}

/** Changes that a session may make. */
export interface PageActions {
  restart(pod: Pod): ActionResult;
  delete(pod: Pod): Promise<ActionResult>;
  apply(manifest: string, dryRun: boolean): Promise<ApplyResult>;
  /** Lists the changes and restarts that this manifest would cause; changes nothing. */
  compare(manifest: string): Promise<CompareResult>;
}

const SECURITY_HEADERS = {
  ...NOSNIFF,
  "Content-Security-Policy": `default-src 'none'; script-src 'self' ${INLINE_SCRIPT}; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
} as const;

/** Streams of pages with a session, and as many of pages without one. */
const MAX_STREAMS = 32;
/** A manifest as the API takes it, 3 MiB, in JSON. */
const MAX_MANIFEST_BODY_BYTES = 4 * 1024 * 1024;
const MAX_SHELLS = 16;
/** A browser that vanished, as on a machine that sleeps, must not keep its shell. */
const PING_MS = 30_000;
const SHELL_SILENCE_MS = 5 * 60_000;
const MAX_LOGS = 64;
/** The first of these that the image has. */
const SHELL = ["/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash || exec sh"];
const SHELL_PROTOCOL = "v5.channel.k8s.io";

const NEEDS_TLS = "On this address the page is served over TLS only: use https://\n";
const NO_ACTIONS = "This node belongs to a cluster: its pods are changed with kubectl\n";
const UNAUTHORIZED = "A session is required: run kubelet-ts page on the machine and open the link\n";
const TOO_MANY_SHELLS = `There are ${MAX_SHELLS} shells open: end one first\n`;
const NEEDS_WEBSOCKET = "A WebSocket is needed\n";
const CANNOT_READ = "The log cannot be read";
const NO_POD = "No such pod on this node\n";

/** Routes of the page: below `/page/`, and `/` itself. */
export class PageRoutes {
  readonly #deps: PageRoutesDeps;
  readonly #assets = new Assets();
  /** Open streams of pages without a session, and of those with one: the former keep no session out. */
  readonly #streams = { public: 0, session: 0 };
  #shells = 0;

  constructor(deps: PageRoutesDeps) {
    this.#deps = deps;
  }

  /** @returns undefined for a path that is not the page's */
  route(request: ServerRequest): RouteResponse | Promise<RouteResponse> | undefined {
    const { path, method } = request;
    if (path !== "/" && path !== "/page" && !path.startsWith("/page/")) return undefined;
    const { isLocal } = this.#deps;
    // Without TLS only cAdvisor's API is served on a network.
    if (!isLocal && !request.isSecure) return path === "/" ? undefined : text(403, NEEDS_TLS);
    const isWrite = method === "POST";
    if (!isWrite && method !== "GET" && method !== "HEAD") return notAllowed();
    const asset = this.#assets.find(path);
    if (asset ?? path === "/") {
      if (isWrite) return notAllowed();
      return asset ? assetResponse(request, asset) : this.#document(request);
    }
    if (!isSameOrigin(request)) return text(403, "Foreign origin\n");
    if (path === "/page/login") return isWrite ? this.#logIn(request) : text(405, "POST only\n");
    const privileged = this.#sessionOf(request)();
    const isStream = path === "/page/stream";
    if ((isWrite || !isLocal) && !privileged) return text(401, UNAUTHORIZED);
    if (isStream) return method === "GET" ? this.#stream(request) : notAllowed();
    switch (`${isWrite ? "POST" : "GET"} ${path}`) {
      case "GET /page/api/session": {
        const openPages = this.#streams[privileged ? "session" : "public"];
        return json({ openPages, mostPages: MAX_STREAMS } satisfies SessionState);
      }
      case "POST /page/api/apply":
        return this.#apply(request, false);
      case "POST /page/api/compare":
        return this.#apply(request, true);
      case "GET /page/api/node":
        return this.#deps.details.nodeDetail().then(json);
      case "GET /page/api/node/history":
        return json(this.#deps.feed.history("", rangeOf(request)));
    }
    const [, uid = "", part = ""] = /^\/page\/api\/pods\/([^/]+)(?:\/([a-z]+))?$/.exec(path) ?? [];
    if (uid === "") return text(404, "404 page not found\n");
    const pod = this.#deps.details.pods().find(({ metadata }) => metadata.uid === uid);
    return pod ? this.#routePod(request, pod, part, privileged) : text(404, NO_POD);
  }

  async #routePod(request: ServerRequest, pod: Pod, part: string, privileged: boolean): Promise<RouteResponse> {
    const { actions, feed, details } = this.#deps;
    const { uid = "" } = pod.metadata;
    switch (`${request.method === "POST" ? "POST" : "GET"} ${part}`) {
      case "GET ": {
        const detail = await details.podDetail(uid, privileged);
        return detail ? json(detail) : text(404, NO_POD);
      }
      case "GET history":
        return json(feed.history(uid, rangeOf(request)));
      case "GET processes":
        return privileged ? json(await details.processes(uid)) : text(401, UNAUTHORIZED);
      case "GET logs":
        if (!privileged) return text(401, UNAUTHORIZED);
        return request.method === "GET" ? this.#logs(request, pod) : notAllowed();
      case "GET shell":
        return privileged ? this.#shell(request, pod) : text(401, UNAUTHORIZED);
      case "POST restart":
        return actions ? json(actions.restart(pod)) : text(404, NO_ACTIONS);
      case "POST delete":
        return actions ? json(await actions.delete(pod)) : text(404, NO_ACTIONS);
      default:
        return text(404, "404 page not found\n");
    }
  }

  /** The document with the state that the stream will send too, so that the pods are painted without waiting for it. */
  async #document(request: ServerRequest): Promise<RouteResponse> {
    const access = this.#access(request);
    const isShown = access.privileged || this.#deps.isLocal;
    const state = isShown ? await this.#deps.feed.firstState(access).catch(() => undefined) : undefined;
    const body = this.#assets.document(state);
    const isGzip = acceptsGzip(request.header("Accept-Encoding"));
    return {
      status: 200,
      headers: {
        ...SECURITY_HEADERS,
        "Content-Type": "text/html; charset=utf-8",
        "Cache-Control": "no-store",
        ...(isGzip && { "Content-Encoding": "gzip" }),
      },
      body: isGzip ? Bun.gzipSync(body, { level: 1 }) : body,
    };
  }

  /** Whether the session of a request is valid, at the time of each call. */
  #sessionOf({ header }: ServerRequest): () => boolean {
    const cookie = header("Cookie") ?? undefined;
    return () => this.#deps.sessions.isValid(cookie);
  }

  #access(request: ServerRequest): Access {
    const privileged = this.#sessionOf(request)();
    return { privileged, canAct: privileged && this.#deps.actions !== undefined };
  }

  async #logIn(request: ServerRequest): Promise<RouteResponse> {
    const { token } = await readJson(request);
    const session =
      typeof token === "string" ? this.#deps.sessions.logIn(token, () => this.#deps.clientUserId(request)) : undefined;
    if (session === undefined)
      return text(401, "This link has expired or was used before: run kubelet-ts page again\n");
    const secure = request.isSecure ? "; Secure" : "";
    const cookie = `${this.#deps.sessions.cookieName}=${session}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${SESSION_LIFETIME_MS / 1000}${secure}`;
    return json({ ok: true, message: "" } satisfies ActionResult, { "Set-Cookie": cookie });
  }

  async #apply(request: ServerRequest, onlyCompare: boolean): Promise<RouteResponse> {
    const { actions } = this.#deps;
    if (!actions) return text(404, NO_ACTIONS);
    const { manifest, dryRun } = await readJson(request, MAX_MANIFEST_BODY_BYTES);
    if (typeof manifest !== "string") return text(400, "The body has no manifest\n");
    return json(await (onlyCompare ? actions.compare(manifest) : actions.apply(manifest, dryRun === true)));
  }

  #stream(request: ServerRequest): RouteResponse {
    const { clock, feed } = this.#deps;
    const access = this.#access(request);
    const kind = access.privileged ? "session" : "public";
    if (this.#streams[kind] >= MAX_STREAMS) return tooManyRequests();
    if (request.upgrade !== "websocket") return text(400, NEEDS_WEBSOCKET);
    const isValid = this.#sessionOf(request);
    const isAllowed = () => !access.privileged || isValid();
    const stream = new PageStream(clock, feed, access, isAllowed, this.#assets.build);
    return {
      protocol: undefined,
      run: async (socket) => {
        this.#streams[kind]++;
        await stream.run(socket).finally(() => this.#streams[kind]--);
      },
    };
  }

  /** The log of one container, or with `containers` those of several: as a download in turn, or at the same time over a WebSocket. */
  async #logs(request: ServerRequest, pod: Pod): Promise<RouteResponse> {
    const isAllowed = this.#sessionOf(request);
    const headers = { ...SECURITY_HEADERS, "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" };
    if (request.upgrade !== "websocket") {
      const opened = await this.#openLogs(request, pod, request.signal);
      return "problem" in opened
        ? text(opened.status, opened.problem)
        : { status: 200, headers, chunks: logWhile(inTurn(opened.logs), isAllowed) };
    }
    return {
      protocol: undefined,
      run: async (socket) => {
        // A reader that vanished is noticed when something is sent to it.
        const endPings = repeat(this.#deps.clock, PING_MS, () => socket.ping());
        try {
          const opened = await this.#openLogs(request, pod, socket.gone);
          if ("problem" in opened) return await socket.send(Buffer.from(opened.problem), "text");
          const paced = new PacedSocket(socket, this.#deps.clock);
          const send = async (log: AsyncIterable<Uint8Array | string>) => {
            for await (const chunk of logWhile(log, isAllowed)) await paced.write(Buffer.from(chunk));
          };
          await Promise.all(opened.logs.map(send));
          await paced.flush();
        } finally {
          endPings();
          socket.close();
        }
      },
    };
  }

  async #openLogs(
    { query }: ServerRequest,
    pod: Pod,
    signal: AbortSignal,
  ): Promise<{ logs: AsyncIterable<Uint8Array | string>[] } | { status: number; problem: string }> {
    const isPrevious = query.get("previous") === "true";
    const selection = toLogSelection(query, this.#deps.clock.now());
    const open = async (id: string) => dataOf(await this.#deps.containers.logs(id, selection, signal));
    const names = query.get("containers")?.split(",").slice(0, MAX_LOGS);
    if (names) {
      const logs = await Promise.all(
        names.map(async (name) => {
          const found = findLogContainer(pod, name, isPrevious);
          // A container that has not run yet has none.
          if ("problem" in found) return [];
          // A log that cannot be read does not keep the others back.
          const chunks = await open(found.id).catch((error: unknown) => lineOf(`${CANNOT_READ}: ${messageOf(error)}`));
          return [nameLines(name, chunks)];
        }),
      );
      return { logs: logs.flat() };
    }
    const found = findLogContainer(pod, query.get("container") ?? "", isPrevious);
    if ("problem" in found) return { status: 404, problem: `${found.problem}\n` };
    try {
      return { logs: [await open(found.id)] };
    } catch (error) {
      if (signal.aborted) throw error;
      return { status: 502, problem: `${CANNOT_READ}: ${messageOf(error)}\n` };
    }
  }

  /** A shell over the channels of `kubectl exec`. Without a WebSocket it is 400 where a shell can be opened: browsers hide why a handshake was refused. */
  #shell(request: ServerRequest, pod: Pod): RouteResponse {
    const { query, upgrade, header } = request;
    const container = findRunningContainer(pod, query.get("container") ?? "");
    if (!container) return text(404, "This container does not run\n");
    if (this.#shells >= MAX_SHELLS) return text(503, TOO_MANY_SHELLS);
    const protocol = chooseProtocol(header("Sec-WebSocket-Protocol"), [SHELL_PROTOCOL]);
    if (upgrade !== "websocket" || !protocol) return text(400, `A WebSocket with ${SHELL_PROTOCOL} is needed\n`);
    const streams = { stdin: true, stdout: true, stderr: false, tty: true };
    const isAllowed = this.#sessionOf(request);
    return {
      protocol: protocol.name,
      run: async (socket) => {
        this.#shells++;
        const { clock, containers } = this.#deps;
        const open = async () => shellWhile(await containers.exec(container.id, SHELL, streams), isAllowed);
        const times = { idleTimeoutMs: SHELL_SILENCE_MS, pingMs: PING_MS };
        await serveRemoteCommand(socket, { protocol, streams, open, clock, ...times }).finally(() => this.#shells--);
      },
    };
  }
}

async function* lineOf(line: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${line}\n`);
}

function toLogSelection(query: URLSearchParams, now: Date): LogSelection {
  const tailLines = query.get("tailLines") ?? "";
  const since = Date.parse(query.get("since") ?? "");
  return {
    follow: query.get("follow") === "true",
    ...(/^\d{1,6}$/.test(tailLines) && { tailLines: Number(tailLines) }),
    // After a clock was set back, the time of the last line may be in the future.
    ...(since >= 0 && { since: new Date(Math.min(since, now.getTime())) }),
    timestamps: query.get("timestamps") === "true",
    stdout: true,
    stderr: true,
  };
}

function rangeOf({ query }: ServerRequest): HistoryRange {
  const range = query.get("range") ?? "";
  return Object.hasOwn(RANGE_MS, range) ? (range as HistoryRange) : "10m";
}

/** Values of `Sec-Fetch-Site` in requests of the page itself and of an address that the user typed. */
const OWN_SITES: readonly (string | null)[] = [null, "same-origin", "none"];

/**
 * Browsers send `Origin` with every POST and WebSocket, and today's `Sec-Fetch-Site` with every request; other clients hold
 * no session that a site could misuse.
 */
function isSameOrigin({ header, isSecure }: ServerRequest): boolean {
  const origin = header("Origin");
  if (origin !== null) return origin === `${isSecure ? "https" : "http"}://${header("Host")}`;
  return OWN_SITES.includes(header("Sec-Fetch-Site"));
}

function assetResponse(request: ServerRequest, { type, etag, isImmutable, gzipped }: Asset): RouteResponse {
  const caching = isImmutable ? "public, max-age=31536000, immutable" : "no-cache";
  const headers = { ...SECURITY_HEADERS, ETag: etag, "Cache-Control": caching, Vary: "Accept-Encoding" };
  if (matchesEtag(request.header("If-None-Match"), etag)) return { status: 304, headers, body: "" };
  const isGzip = acceptsGzip(request.header("Accept-Encoding"));
  return {
    status: 200,
    headers: { ...headers, "Content-Type": type, ...(isGzip && { "Content-Encoding": "gzip" }) },
    body: isGzip ? gzipped() : Bun.gunzipSync(gzipped()),
  };
}

const notAllowed = () => text(405, "405 Method Not Allowed\n");

const text = (status: number, body: string) => textResponse(status, body, SECURITY_HEADERS);

const json = (value: unknown, more: Record<string, string> = {}): RouteResponse => ({
  status: 200,
  headers: { ...SECURITY_HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store", ...more },
  body: JSON.stringify(value),
});

/** An object; an empty one for anything else. @throws as `text` of a request */
async function readJson(request: ServerRequest, maxBytes?: number): Promise<Record<string, unknown>> {
  const value = jsonIfValid(await request.text(maxBytes));
  return isRecord(value) ? value : {};
}

/** A longer line is sent in pieces. Unit: UTF-16 code units. */
const MAX_LINE_CHARS = 256 * 1024;

/** Lines of one of several logs, each as `name<TAB>line`. */
export async function* nameLines(name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  for await (const line of linesOf(chunks, MAX_LINE_CHARS, true)) yield `${name}\t${line}\n`;
}

/** Bytes on the way to a reader. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** Time in which what is written becomes one message: a message costs a page more than a line. */
const GATHER_MS = 20;

/**
 * A socket whose reader acknowledges what it has handled, as a number of bytes: browsers take messages of a WebSocket faster
 * than their page handles them, and keep them all.
 */
export class PacedSocket {
  readonly #socket: Pick<WebSocketConnection, "send" | "messages" | "gone">;
  readonly #clock: Pick<Clock, "schedule">;
  #gathered: Uint8Array[] = [];
  #unreadBytes = 0;
  #acknowledged = Promise.withResolvers<void>();

  constructor(socket: Pick<WebSocketConnection, "send" | "messages" | "gone">, clock: Pick<Clock, "schedule">) {
    this.#socket = socket;
    this.#clock = clock;
    void this.#readAcknowledgements();
  }

  /** Resolves when more may be written, or the reader is gone. */
  async write(payload: Uint8Array): Promise<void> {
    this.#unreadBytes += payload.length;
    if (this.#gathered.push(payload) === 1) this.#clock.schedule(GATHER_MS, () => void this.flush());
    while (this.#unreadBytes > MAX_UNREAD_BYTES && !this.#socket.gone.aborted) await this.#acknowledged.promise;
  }

  async flush(): Promise<void> {
    const payload = Buffer.concat(this.#gathered.splice(0));
    if (payload.length > 0) await this.#socket.send(payload);
  }

  async #readAcknowledgements(): Promise<void> {
    for await (const message of this.#socket.messages()) {
      this.#unreadBytes -= Number(message.toString());
      this.#acknowledged.resolve();
      this.#acknowledged = Promise.withResolvers();
    }
    this.#acknowledged.resolve();
  }
}

async function* inTurn<T>(logs: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  for (const log of logs) yield* log;
}

const EXPIRED = "the session of the page has expired";

/** Ends at the first data after the session has expired. @param isAllowed asked before each chunk */
export async function* logWhile<T>(chunks: AsyncIterable<T>, isAllowed: () => boolean): AsyncGenerator<T> {
  for await (const chunk of chunks) {
    if (!isAllowed()) return;
    yield chunk;
  }
}

/** Ends at the first input or output after the session of the page has expired; the process is killed then. */
export function shellWhile(session: ProcessSession, isAllowed: () => boolean): ProcessSession {
  let hasExpired = false;
  async function* output(): ProcessSession["output"] {
    for await (const chunk of session.output) {
      hasExpired ||= !isAllowed();
      if (hasExpired) break;
      yield chunk;
    }
    if (hasExpired) throw new Error(EXPIRED);
  }
  return {
    output: output(),
    write: async (data) => {
      hasExpired ||= !isAllowed();
      await (hasExpired ? session.close() : session.write(data));
    },
    endInput: () => session.endInput(),
    resize: (size) => session.resize(size),
    exitCode: () => session.exitCode(),
    close: () => session.close(),
  };
}
