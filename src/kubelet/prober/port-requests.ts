import http from "node:http";
import net from "node:net";
import tls from "node:tls";
import type { ContainerPort, HTTPGetAction } from "../../base/api/container.ts";
import { unlessAborted } from "../../base/concurrency/unless-aborted.ts";
import { PROBE_OUTPUT_LIMIT_BYTES, type ProbeOutcome, type ProbeTarget } from "../../base/model/prober.ts";
import { quoteGo } from "../../base/text/quote-go.ts";

/** The attempt's own time limit passed. */
export class DeadlineError extends Error {
  constructor() {
    super("context deadline exceeded");
  }
}

/** No connection. The message is worded as Go words it: `dial tcp 10.0.0.1:80: connect: connection refused`. */
export class DialError extends Error {
  constructor(
    message: string,
    /** True when this process lacks a resource (descriptors, memory, ports): the attempt does not count. */
    readonly isOwnFault: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const TEXT_OF_CODE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset by peer",
  ECONNABORTED: "software caused connection abort",
  EHOSTUNREACH: "no route to host",
  ENETUNREACH: "network is unreachable",
  ETIMEDOUT: "connection timed out",
  EADDRNOTAVAIL: "cannot assign requested address",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EINVAL: "invalid argument",
  EPIPE: "broken pipe",
  EMFILE: "too many open files",
  ENFILE: "too many open files in system",
  ENOBUFS: "no buffer space available",
  ENOMEM: "cannot allocate memory",
};

const OWN_FAULTS: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL"]);

/** The errno's text as the C library and Go have it; the error's own message when it has no known code. */
function errnoText(error: Error): string {
  return TEXT_OF_CODE[(error as NodeJS.ErrnoException).code ?? ""] ?? error.message;
}

function toDialError(error: Error, host: string, port: number): DialError {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code === "ENOTFOUND" || code.startsWith("EAI_") || code.startsWith("DNS_")) {
    const detail = code === "ENOTFOUND" || code === "DNS_ENOTFOUND" ? "no such host" : "server misbehaving";
    return new DialError(`dial tcp: lookup ${host}: ${detail}`, false, { cause: error });
  }
  const call = code === "EMFILE" || code === "ENFILE" || code === "ENOBUFS" || code === "ENOMEM" ? "socket" : "connect";
  const message = `dial tcp ${joinHostPort(host, port)}: ${call}: ${errnoText(error)}`;
  return new DialError(message, OWN_FAULTS.has(code), { cause: error });
}

/**
 * Opens a TCP connection. Rejects with {@link DialError}, with a DialError `…: i/o timeout` when the signal's reason is
 * a {@link DeadlineError}, else with that reason. The caller owns the socket from then on.
 */
export async function dial(host: string, port: number, signal: AbortSignal): Promise<net.Socket> {
  const socket = net.connect({ host, port });
  const { promise: connected, resolve, reject } = Promise.withResolvers<void>();
  socket.on("connect", resolve);
  // Stays: a late error of an abandoned socket must not end the process.
  socket.on("error", reject);
  try {
    await unlessAborted(connected, signal);
    return socket;
  } catch (error) {
    socket.destroy();
    if (!signal.aborted) throw toDialError(error as Error, host, port);
    if (!(signal.reason instanceof DeadlineError)) throw signal.reason;
    throw new DialError(`dial tcp ${joinHostPort(host, port)}: i/o timeout`, false, { cause: signal.reason });
  }
}

/** A port that is not a number 1-65535, or a name that no port of the container has. */
export class PortError extends Error {}

/**
 * The number behind a probe's `port`: a number, a number as text, or the name of one of the container's ports.
 * Throws {@link PortError}. Source: upstream's `probe.ResolveContainerPort`.
 */
export function resolvePort(port: number | string, ports: readonly ContainerPort[]): number {
  let number: number;
  if (typeof port === "number") number = port;
  else if (/^[+-]?\d+$/.test(port)) number = Number(port);
  else {
    const named = ports.find((candidate) => candidate.name === port);
    if (!named) throw new PortError(`port ${JSON.stringify(port)} not found`);
    number = named.containerPort;
  }
  if (!Number.isInteger(number) || number < 1 || number > 65535) throw new PortError(`invalid port number: ${number}`);
  return number;
}

/** `host:port`, an IPv6 address in brackets. */
export function joinHostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

interface HttpGetOptions {
  /** As in the manifest; repeated names are sent repeatedly. */
  headers: readonly { name: string; value: string }[];
  /** Unless `headers` has one. */
  userAgent: string;
  bodyLimitBytes: number;
  signal: AbortSignal;
}

/** No response. The message is worded as Go's: `Get "http://10.0.0.1:80/": dial tcp 10.0.0.1:80: …`. */
export class HttpGetError extends Error {
  constructor(
    message: string,
    /** `own-fault`: the attempt could not be made. `body`: the status was received, the body was not. */
    readonly kind: "no-response" | "own-fault" | "body" | "plain-http",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const MAX_REDIRECTS = 10;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Interim responses (100 Continue, 103 Early Hints) before the real one. Source: Go's max1xxResponses. */
const MAX_INTERIM_RESPONSES = 5;
/** More than any sane server sends before a body; Go's limit of 10 MiB would let an endless header eat memory. */
const HEAD_LIMIT_BYTES = 64 * 1024;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FORBIDDEN_IN_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;

/**
 * One GET over a connection of its own, TLS unverified, straight to the host (no proxy). Follows up to 10 redirects on
 * the same host; a response that redirects to another host is the result. Rejects with {@link HttpGetError}, or with the
 * signal's reason unless that is a DeadlineError. Source: upstream's `DoHTTPProbe` and `RedirectChecker`.
 */
export async function httpGet(start: HttpLocation, options: HttpGetOptions): Promise<{ status: number; body: string }> {
  let location = start;
  let hostHeader = options.headers.find((header) => header.name.toLowerCase() === "host")?.value;
  for (let followed = 0; ; followed++) {
    const received = await getOnce(location, hostHeader, options);
    const response = { status: received.status, body: Buffer.concat(received.body).toString("utf8") };
    const target = REDIRECTS.has(response.status) ? received.redirectTo : undefined;
    if (!target) return response;
    const next = followLocation(location, target);
    if (!next)
      throw new HttpGetError(`${failed(location)}: failed to parse Location header ${quoteGo(target)}`, "no-response");
    if (next.host !== start.host.toLowerCase()) return response;
    if (followed + 1 >= MAX_REDIRECTS) {
      throw new HttpGetError(`${failed(next)}: stopped after ${MAX_REDIRECTS} redirects`, "no-response");
    }
    // A relative redirect stays on the virtual host asked for; an absolute one names its own.
    if (/^[a-zA-Z][a-zA-Z0-9+.-]*:|^\/\//.test(target)) hostHeader = undefined;
    location = next;
  }
}

const failed = (location: HttpLocation): string => `Get ${quoteGo(formatUrl(location))}`;

/** Names and values in turn. Throws {@link HttpGetError} for a header that would break out of its line. */
function toRequestHeaders(location: HttpLocation, hostHeader: string | undefined, options: HttpGetOptions): string[] {
  const headers: string[] = [];
  const put = (name: string, value: string): void => {
    if (!HEADER_NAME.test(name)) {
      throw new HttpGetError(
        `${failed(location)}: net/http: invalid header field name ${quoteGo(name)}`,
        "no-response",
      );
    }
    if (FORBIDDEN_IN_VALUE.test(value)) {
      const message = `${failed(location)}: net/http: invalid header field value for ${quoteGo(name)}`;
      throw new HttpGetError(message, "no-response");
    }
    // As UTF-8, in which a manifest is written and Go sends it.
    headers.push(name, Buffer.from(value.trim(), "utf8").toString("latin1"));
  };
  const given = new Set(options.headers.map((header) => header.name.toLowerCase()));
  put("Host", hostHeader || joinHostPort(location.host, location.port));
  if (!given.has("user-agent")) put("User-Agent", options.userAgent);
  if (!given.has("accept")) put("Accept", "*/*");
  for (const { name, value } of options.headers) {
    const lower = name.toLowerCase();
    // These describe the message itself; an empty User-Agent or Accept means "send none".
    if (["host", "content-length", "transfer-encoding", "trailer", "connection"].includes(lower)) continue;
    if (value === "" && (lower === "user-agent" || lower === "accept")) continue;
    put(name, value);
  }
  headers.push("Connection", "close");
  return headers;
}

interface Received {
  /** 0 until the head was read. */
  status: number;
  redirectTo: string | undefined;
  body: Buffer[];
}

async function getOnce(
  location: HttpLocation,
  hostHeader: string | undefined,
  options: HttpGetOptions,
): Promise<Received> {
  const headers = toRequestHeaders(location, hostHeader, options);
  const { signal } = options;
  const received: Received = { status: 0, redirectTo: undefined, body: [] };
  let socket: net.Socket | undefined;
  try {
    socket = await dial(location.host, location.port, signal);
    if (location.scheme === "https") socket = await startTls(socket, location.host, signal);
    await exchange(socket, location.target, headers, received, options);
    return received;
  } catch (error) {
    throw toHttpGetError(error, location, socket, received.status > 0, signal);
  } finally {
    socket?.destroy();
  }
}

/** The peer answered the TLS handshake in plain HTTP. */
class PlainHttpError extends Error {}

async function startTls(socket: net.Socket, host: string, signal: AbortSignal): Promise<net.Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<net.Socket>();
  const isIp = host.includes(":") || /^[\d.]+$/.test(host);
  const secure = tls.connect({
    socket,
    // The certificate does not matter for health; upstream does not verify it either.
    rejectUnauthorized: false,
    ...(isIp ? {} : { servername: host }),
    ALPNProtocols: ["http/1.1"],
  });
  secure.once("secureConnect", () => resolve(secure));
  secure.on("error", (error) => {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    reject(/WRONG_VERSION_NUMBER|HTTP_REQUEST/.test(`${code} ${error.message}`) ? new PlainHttpError() : error);
  });
  secure.once("close", () => reject(Object.assign(new Error("EOF"), { code: "ECONNRESET" })));
  return unlessAborted(promise, signal).catch((error: unknown) => {
    secure.destroy();
    throw error;
  });
}

/**
 * Sends the request and reads the response, up to the limit of the body: the rest need not be read. node:http makes no
 * connection of its own, and is not bounded by the number of open fetches.
 */
async function exchange(
  socket: net.Socket,
  path: string,
  headers: string[],
  received: Received,
  { bodyLimitBytes, signal }: HttpGetOptions,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = http.request({
    path,
    headers,
    setHost: false,
    createConnection: () => socket,
    maxHeaderSize: HEAD_LIMIT_BYTES,
    // Lines may end without a carriage return, as for Go.
    insecureHTTPParser: true,
  });
  let interim = 0;
  request.on("information", () => {
    if (++interim > MAX_INTERIM_RESPONSES) reject(new Error("net/http: too many 1xx informational responses"));
  });
  request.on("response", (response) => {
    received.status = response.statusCode ?? 0;
    received.redirectTo = response.headers.location;
    if (bodyLimitBytes === 0) return resolve();
    let room = bodyLimitBytes;
    response.on("data", (bytes: Buffer) => {
      received.body.push(bytes.subarray(0, room));
      room -= Math.min(room, bytes.length);
      if (room === 0) resolve();
    });
    response.on("end", resolve);
    response.on("error", (error) => reject(broken ?? error));
  });
  let broken: Error | undefined;
  request.on("error", (error) => {
    // Bytes after a complete response are an error too, and do not matter.
    if (received.status === 0) reject(error);
    else broken = error;
  });
  request.end();
  await unlessAborted(promise, signal).finally(() => request.destroy());
}

function toHttpGetError(
  error: unknown,
  location: HttpLocation,
  socket: net.Socket | undefined,
  isHeadRead: boolean,
  signal: AbortSignal,
): unknown {
  if (error instanceof HttpGetError) return error;
  const isTimeout = signal.reason instanceof DeadlineError;
  if (signal.aborted && !isTimeout) return signal.reason;
  const phase = isHeadRead ? "reading body" : "awaiting headers";
  const suffix = isTimeout ? ` (Client.Timeout exceeded while ${phase})` : "";
  const detail = describe(error, socket) + suffix;
  if (isHeadRead) return new HttpGetError(detail, "body", { cause: error });
  const kind =
    error instanceof PlainHttpError
      ? "plain-http"
      : error instanceof DialError && error.isOwnFault
        ? "own-fault"
        : "no-response";
  return new HttpGetError(`${failed(location)}: ${detail}`, kind, { cause: error });
}

/** The words of Go for what node:http reports. */
function describe(error: unknown, socket: net.Socket | undefined): string {
  if (error instanceof PlainHttpError) return "http: server gave HTTP response to HTTPS client";
  if (error instanceof DialError || error instanceof DeadlineError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { code = "", syscall, rawPacket } = error as NodeJS.ErrnoException & { rawPacket?: Buffer };
  if (code.startsWith("HPE_"))
    return `net/http: HTTP/1.x transport connection broken: ${describeParseError(code, rawPacket)}`;
  // Without a system call: the connection was closed in order, but too early.
  if (code === "ECONNRESET" && !syscall) return socket?.bytesRead ? "unexpected EOF" : "EOF";
  return syscall ? `${syscall}: ${errnoText(error)}` : errnoText(error);
}

const PARSE_ERRORS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: `server response headers exceeded ${HEAD_LIMIT_BYTES} bytes; aborted`,
  HPE_INVALID_HEADER_TOKEN: "malformed MIME header line",
  HPE_INVALID_CONTENT_LENGTH: "bad Content-Length",
  HPE_INVALID_CHUNK_SIZE: "malformed chunked encoding",
};

function describeParseError(code: string, received: Buffer = Buffer.alloc(0)): string {
  const [line = ""] = received.toString("latin1", 0, 100).split(/\r?\n/);
  return PARSE_ERRORS[code] ?? `malformed HTTP response ${JSON.stringify(line)}`;
}

export interface HttpLocation {
  scheme: "http" | "https";
  host: string;
  port: number;
  /** Path and query as they are in the request line; begins with `/`. */
  target: string;
}

/**
 * The `path` of an httpGet handler as a request target: the query is kept, a fragment dropped, what may not be in a
 * request line is percent-encoded; a path with a broken escape (`/100%`) is taken literally. An authority in the path
 * (`http://elsewhere/x`, `//elsewhere/x`) is ignored. Source: upstream's `formatURL` on Go's `url.Parse`.
 */
export function toRequestTarget(path: string): string {
  // Go refuses control characters in a URL; upstream then passes the whole text on as a literal path.
  const isLiteral = /[\x00-\x1f\x7f]/.test(path) || /%(?![0-9a-fA-F]{2})/.test(path.replace(/[?#].*$/s, ""));
  if (isLiteral) return withSlash(encode(path.replaceAll("%", "%25").replaceAll("?", "%3F").replaceAll("#", "%23")));
  const fragment = path.indexOf("#");
  const whole = fragment < 0 ? path : path.slice(0, fragment);
  const question = whole.indexOf("?");
  const query = question < 0 ? "" : whole.slice(question);
  let pathOnly = question < 0 ? whole : whole.slice(0, question);
  if (!pathOnly.startsWith("///")) pathOnly = pathOnly.replace(/^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?\/\/[^/]*/, "");
  return withSlash(encode(pathOnly)) + encode(query);
}

const withSlash = (path: string): string => (path.startsWith("/") ? path : `/${path}`);

const encode = (text: string): string => text.replace(/[^\x21-\x7e]|["<>\\^`{|}]/gu, encodeChar);

const encodeChar = (char: string): string =>
  [...Buffer.from(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");

/** The port is always there: `http://10.0.0.1:80/healthz`. */
export function formatUrl(location: HttpLocation): string {
  return `${location.scheme}://${joinHostPort(location.host, location.port)}${location.target}`;
}

/** Target of a `Location` header relative to `from`; undefined when it is no http(s) URL. */
export function followLocation(from: HttpLocation, header: string): HttpLocation | undefined {
  if (!URL.canParse(header, formatUrl(from))) return undefined;
  const url = new URL(header, formatUrl(from));
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  const scheme = url.protocol === "http:" ? "http" : "https";
  return {
    scheme,
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (scheme === "http" ? 80 : 443) : Number(url.port),
    target: url.pathname + url.search,
  };
}

/** Location of an httpGet handler. Throws PortError. */
export function toHttpLocation(action: HTTPGetAction, target: Pick<ProbeTarget, "podIp" | "ports">): HttpLocation {
  return {
    scheme: action.scheme === "HTTPS" ? "https" : "http",
    host: action.host || target.podIp,
    port: resolvePort(action.port, target.ports),
    target: toRequestTarget(action.path),
  };
}

/**
 * One attempt: 200–299 is success, a redirect that leaves the host a warning, everything else a failure; a status
 * without its body does not count (unknown), as upstream. Rejects only with the reason of an abort.
 */
export async function probeHttp(
  action: HTTPGetAction,
  target: ProbeTarget,
  userAgent: string,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  try {
    const { status, body } = await httpGet(toHttpLocation(action, target), {
      headers: action.httpHeaders ?? [],
      userAgent,
      bodyLimitBytes: PROBE_OUTPUT_LIMIT_BYTES,
      signal,
    });
    if (status >= 200 && status < 300) return { result: "success", output: body };
    if (status >= 300 && status < 400) {
      return { result: "warning", output: `Probe terminated redirects, Response body: ${body}` };
    }
    return { result: "failure", output: `HTTP probe failed with statuscode: ${status}` };
  } catch (error) {
    if (!(error instanceof HttpGetError)) throw error;
    const saysNothing = error.kind === "own-fault" || error.kind === "body";
    return { result: saysNothing ? "unknown" : "failure", output: error.message };
  }
}
