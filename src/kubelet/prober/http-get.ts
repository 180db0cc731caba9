import type net from "node:net";
import tls from "node:tls";
import { quoteGo } from "../../base/text/quote-go.ts";
import { DeadlineError, DialError, dial, errnoText } from "./dial.ts";
import { HttpResponseReader, MalformedResponseError } from "./http-response-reader.ts";
import { followLocation, formatUrl, type HttpLocation } from "./http-url.ts";
import { joinHostPort } from "./resolve-port.ts";

/** Name and value as in the manifest; repeated names are sent repeatedly. */
interface HttpHeader {
  name: string;
  value: string;
}

interface HttpGetOptions {
  headers: readonly HttpHeader[];
  /** Unless `headers` has one. */
  userAgent: string;
  bodyLimitBytes: number;
  signal: AbortSignal;
}

interface HttpGetResponse {
  status: number;
  /** At most `bodyLimitBytes`. */
  body: string;
}

/** No answer. The message is worded as Go's: `Get "http://10.0.0.1:80/": dial tcp 10.0.0.1:80: …`. */
export class HttpGetError extends Error {
  override name = "HttpGetError";
  constructor(
    message: string,
    /** `own-fault`: the attempt could not be made. `body`: the status was received, the body was not. */
    readonly kind: "no-answer" | "own-fault" | "body" | "plain-http",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const MAX_REDIRECTS = 10;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FORBIDDEN_IN_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;

/**
 * One GET over a connection of its own, TLS unverified, straight to the host (no proxy). Follows up to 10 redirects on
 * the same host; an answer that redirects to another host is the result. Rejects with {@link HttpGetError}, or with the
 * signal's reason unless that is a DeadlineError. Source: upstream's `DoHTTPProbe` and `RedirectChecker`.
 */
export async function httpGet(start: HttpLocation, options: HttpGetOptions): Promise<HttpGetResponse> {
  let location = start;
  let hostHeader = options.headers.find((header) => header.name.toLowerCase() === "host")?.value;
  for (let followed = 0; ; followed++) {
    const reader = await getOnce(location, hostHeader, options);
    const target = REDIRECTS.has(reader.status) ? reader.headers.get("location") : undefined;
    if (!target) return { status: reader.status, body: reader.body };
    const next = followLocation(location, target);
    if (!next)
      throw new HttpGetError(`${failed(location)}: failed to parse Location header ${quoteGo(target)}`, "no-answer");
    if (next.host !== start.host.toLowerCase()) return { status: reader.status, body: reader.body };
    if (followed + 1 >= MAX_REDIRECTS) {
      throw new HttpGetError(`${failed(next)}: stopped after ${MAX_REDIRECTS} redirects`, "no-answer");
    }
    // A relative redirect stays on the virtual host asked for; an absolute one names its own.
    if (/^[a-zA-Z][a-zA-Z0-9+.-]*:|^\/\//.test(target)) hostHeader = undefined;
    location = next;
  }
}

const failed = (location: HttpLocation): string => `Get ${quoteGo(formatUrl(location))}`;

/** Header block of the request. Throws {@link HttpGetError} for a header that would break out of its line. */
function toRequestText(location: HttpLocation, hostHeader: string | undefined, options: HttpGetOptions): string {
  const lines = [`GET ${location.target} HTTP/1.1`];
  const put = (name: string, value: string): void => {
    if (!HEADER_NAME.test(name)) {
      throw new HttpGetError(`${failed(location)}: net/http: invalid header field name ${quoteGo(name)}`, "no-answer");
    }
    if (FORBIDDEN_IN_VALUE.test(value)) {
      const message = `${failed(location)}: net/http: invalid header field value for ${quoteGo(name)}`;
      throw new HttpGetError(message, "no-answer");
    }
    lines.push(`${name}: ${value.trim()}`);
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
  lines.push("Connection: close", "", "");
  return lines.join("\r\n");
}

async function getOnce(
  location: HttpLocation,
  hostHeader: string | undefined,
  options: HttpGetOptions,
): Promise<HttpResponseReader> {
  const request = toRequestText(location, hostHeader, options);
  const { signal } = options;
  const reader = new HttpResponseReader(options.bodyLimitBytes);
  let socket: net.Socket | undefined;
  try {
    socket = await dial(location.host, location.port, signal);
    if (location.scheme === "https") socket = await startTls(socket, location.host, signal);
    await exchange(socket, request, reader, signal);
    return reader;
  } catch (error) {
    throw toHttpGetError(error, location, reader, signal);
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
  const onAbort = (): void => {
    secure.destroy();
    reject(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  secure.once("secureConnect", () => resolve(secure));
  secure.on("error", (error) => {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    reject(/WRONG_VERSION_NUMBER|HTTP_REQUEST/.test(`${code} ${error.message}`) ? new PlainHttpError() : error);
  });
  secure.once("close", () => reject(new MalformedResponseError("EOF")));
  try {
    return await promise;
  } catch (error) {
    secure.destroy();
    socket.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Sends the request and feeds the reader until it is done. */
function exchange(socket: net.Socket, request: string, reader: HttpResponseReader, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = (): void => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const attempt = (work: () => void): void => {
    try {
      work();
      if (reader.isDone) resolve();
    } catch (error) {
      reject(error);
    }
  };
  socket.on("data", (bytes: Uint8Array) => {
    attempt(() => reader.push(bytes));
    if (reader.isDone) socket.destroy();
  });
  socket.on("end", () => attempt(() => reader.end()));
  socket.on("close", () => attempt(() => reader.end()));
  socket.on("error", reject);
  // Not latin1: header values are UTF-8 in a manifest, and Go sends them so.
  socket.write(Buffer.from(request, "utf8"));
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}

function toHttpGetError(
  error: unknown,
  location: HttpLocation,
  reader: HttpResponseReader,
  signal: AbortSignal,
): unknown {
  if (error instanceof HttpGetError) return error;
  const isTimeout = signal.reason instanceof DeadlineError;
  if (signal.aborted && !isTimeout) return signal.reason;
  const phase = reader.isHeadRead ? "reading body" : "awaiting headers";
  const suffix = isTimeout ? ` (Client.Timeout exceeded while ${phase})` : "";
  const detail = describe(error) + suffix;
  if (reader.isHeadRead) return new HttpGetError(detail, "body", { cause: error });
  const kind =
    error instanceof PlainHttpError
      ? "plain-http"
      : error instanceof DialError && error.isOwnFault
        ? "own-fault"
        : "no-answer";
  return new HttpGetError(`${failed(location)}: ${detail}`, kind, { cause: error });
}

function describe(error: unknown): string {
  if (error instanceof PlainHttpError) return "http: server gave HTTP response to HTTPS client";
  if (error instanceof MalformedResponseError) {
    const isEnd = error.message === "EOF" || error.message === "unexpected EOF";
    if (isEnd || error.message.startsWith("net/http:")) return error.message;
    return `net/http: HTTP/1.x transport connection broken: ${error.message}`;
  }
  if (error instanceof DialError || error instanceof DeadlineError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const syscall = (error as NodeJS.ErrnoException).syscall;
  return syscall ? `${syscall}: ${errnoText(error)}` : errnoText(error);
}
