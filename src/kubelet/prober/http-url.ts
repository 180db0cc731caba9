import { joinHostPort } from "./resolve-port.ts";

/** Target of one GET. */
export interface HttpLocation {
  scheme: "http" | "https";
  /** Without brackets. */
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
