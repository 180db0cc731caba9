import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { readBoundedBytesOf, StreamTooLongError } from "../base/files/bounded-stream.ts";
import { SYSTEM_FILE_BYTES, type TextFiles } from "../base/files/whole-file.ts";
import { httpFetch } from "../base/host/http-fetch.ts";
import { maskUrl } from "../base/text/url.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { MAX_MANIFEST_BYTES } from "../manifest/yaml/parse-stream.ts";

const MAX_REDIRECTS = 10;
const TOO_LONG = `responded with ${MAX_MANIFEST_BYTES} bytes or more`;
/** Metadata servers of Google Compute Engine, which hold container declarations of the machine. */
const METADATA_SERVERS = new Set(["metadata.google.internal", "metadata", "169.254.169.254"]);
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** The PEM files are read at each request, so that a renewed certificate counts. */
export type UrlOptions = Pick<
  KubeletOptions,
  | "manifestUrlHeaders"
  | "manifestUrlTimeoutMs"
  | "manifestUrlCaFile"
  | "manifestUrlClientCertFile"
  | "manifestUrlClientKeyFile"
>;

/** Options and means of a request. */
export interface UrlFetchDeps {
  options: UrlOptions;
  /** The proxy by the environment of this process; undefined: direct. */
  proxyFor: (url: URL) => string | undefined;
  files: ReadsText;
}

type ReadsText = Pick<TextFiles, "readText">;

/** Validators of an earlier response, so that the server need not send it again. */
export interface Validators {
  etag?: string;
  lastModified?: string;
}

type UrlResponse = { kind: "unchanged" } | { kind: "bytes"; bytes: Uint8Array; validators: Validators };

/** The manifests cannot be fetched; the message says why and contains no secret. */
export class UrlFetchError extends Error {}

interface Target {
  url: URL;
  socket?: string;
}

/** @throws UrlFetchError when it is not a manifest URL. */
function parseManifestUrl(text: string): Target {
  const unix = /^unix:(?:\/\/)?(\/[^:]+)(?::(.*))?$/i.exec(text);
  if (unix) {
    const path = unix[2] || "/";
    return { url: new URL(path.startsWith("/") ? path : `/${path}`, "http://localhost"), socket: unix[1]! };
  }
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
    throw new UrlFetchError(`"${maskUrl(text)}" is no http:, https: or unix: URL`);
  }
  return { url: new URL(text) };
}

/**
 * One GET of a manifest URL: at most `--manifest-url-timeout` and 10 MiB (decoded), redirects are followed here, so that headers and
 * the client certificate only ever go to the host they were meant for.
 * @throws UrlFetchError for every way it can fail but the abort of `signal`, whose reason is thrown.
 */
export async function fetchManifest(
  text: string,
  deps: UrlFetchDeps,
  validators: Validators,
  signal: AbortSignal,
): Promise<UrlResponse> {
  const timeoutMs = deps.options.manifestUrlTimeoutMs;
  const deadline = AbortSignal.timeout(timeoutMs);
  const both = AbortSignal.any([signal, deadline]);
  try {
    return await follow(parseManifestUrl(text), deps, validators, both);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (deadline.aborted) throw new UrlFetchError(`no complete response within ${timeoutMs / 1000} s`);
    if (error instanceof UrlFetchError) throw error;
    throw new UrlFetchError(explain(error), { cause: error });
  }
}

async function follow(
  first: Target,
  deps: UrlFetchDeps,
  validators: Validators,
  signal: AbortSignal,
): Promise<UrlResponse> {
  let url = first.url;
  let isTrusted = true;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const response = await request(url, first.socket, deps, validators, isTrusted, signal);
    const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
    if (location === null) return readResponse(response);
    await response.body?.cancel();
    if (!URL.canParse(location, url.href)) throw new UrlFetchError("is redirected to something that is no URL");
    const next = new URL(location, url.href);
    if (!/^https?:$/.test(next.protocol)) throw new UrlFetchError(`is redirected to a URL of ${next.protocol}`);
    if (url.protocol === "https:" && next.protocol === "http:") {
      throw new UrlFetchError(`is redirected from https to plain http (${maskUrl(next.href)})`);
    }
    if (first.socket && next.origin !== first.url.origin) throw new UrlFetchError("is redirected away from its socket");
    // It stays false when another host redirects back to the first one: that host chose the way.
    isTrusted &&= next.origin === first.url.origin;
    url = next;
  }
  throw new UrlFetchError(`is redirected more than ${MAX_REDIRECTS} times`);
}

async function request(
  target: URL,
  socket: string | undefined,
  deps: UrlFetchDeps,
  validators: Validators,
  isTrusted: boolean,
  signal: AbortSignal,
): Promise<Response> {
  const url = new URL(target.href);
  const headers = new Headers({ "User-Agent": "kubelet-ts", Accept: "*/*", "Accept-Encoding": "gzip" });
  if (isTrusted) {
    // Google's metadata server refuses requests without it, which keeps redirects of other servers from it.
    if (METADATA_SERVERS.has(url.hostname)) headers.set("Metadata-Flavor", "Google");
    if (url.username || url.password) {
      const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
      headers.set("Authorization", `Basic ${Buffer.from(credentials).toString("base64")}`);
    }
    const named = new Set<string>();
    for (const { name, value } of deps.options.manifestUrlHeaders) {
      // The first header of a name replaces our own; others of that name are added to it.
      if (named.has(name.toLowerCase())) headers.append(name, value);
      else headers.set(name, value);
      named.add(name.toLowerCase());
    }
  }
  url.username = "";
  url.password = "";
  if (validators.etag !== undefined) headers.set("If-None-Match", validators.etag);
  if (validators.lastModified !== undefined) headers.set("If-Modified-Since", validators.lastModified);
  const proxy = socket ? undefined : deps.proxyFor(url);
  return httpFetch(url.href, {
    headers,
    keepalive: false,
    signal,
    ...(socket ? { unix: socket } : {}),
    ...(proxy ? { proxy } : {}),
    ...(url.protocol === "https:" ? { tls: await tlsOptions(deps, isTrusted) } : {}),
  });
}

async function tlsOptions(
  { options, files }: UrlFetchDeps,
  isTrusted: boolean,
): Promise<{ ca?: string; cert?: string; key?: string }> {
  const { manifestUrlCaFile: caFile, manifestUrlClientCertFile: cert, manifestUrlClientKeyFile: key } = options;
  const ca = caFile === "" ? await systemAuthorities(files) : await readPem(files, caFile);
  return {
    ...(ca !== undefined && { ca }),
    ...(isTrusted && cert !== "" && { cert: await readPem(files, cert), key: await readPem(files, key) }),
  };
}

async function readPem(files: ReadsText, file: string): Promise<string> {
  let text: string | undefined;
  try {
    text = await files.readText(file, SYSTEM_FILE_BYTES);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UrlFetchError(`"${file}" cannot be read: ${code ?? message}`);
  }
  if (text === undefined) throw new UrlFetchError(`"${file}" cannot be read: ENOENT`);
  return text;
}

/** Where distributions keep the certificates of authorities; the runtime only knows the ones built into it. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

async function systemAuthorities(files: ReadsText): Promise<string | undefined> {
  for (const file of [process.env.SSL_CERT_FILE, ...SYSTEM_BUNDLES]) {
    // One that cannot be read: the path of the next distribution.
    const text = file ? await files.readText(file, SYSTEM_FILE_BYTES).catch(() => undefined) : undefined;
    if (text !== undefined) return text;
  }
  return undefined;
}

async function readResponse(response: Response): Promise<UrlResponse> {
  if (response.status === 304) {
    await response.body?.cancel();
    return { kind: "unchanged" };
  }
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new UrlFetchError(`responded with ${response.status}${response.statusText ? ` ${response.statusText}` : ""}`);
  }
  const encoded = await readBoundedBytesOf(response.body, MAX_MANIFEST_BYTES - 1).catch((error: unknown) => {
    throw error instanceof StreamTooLongError ? new UrlFetchError(TOO_LONG) : error;
  });
  const bytes =
    encoded.length === 0
      ? encoded
      : await decodeBody(encoded, response.headers.get("content-encoding") ?? "", MAX_MANIFEST_BYTES);
  if (bytes.length === 0) throw new UrlFetchError("responded with an empty body");
  const etag = response.headers.get("etag");
  const lastModified = response.headers.get("last-modified");
  return {
    kind: "bytes",
    bytes,
    validators: { ...(etag ? { etag } : {}), ...(lastModified ? { lastModified } : {}) },
  };
}

const UNKNOWN_AUTHORITY = "its certificate is signed by an unknown authority (%); see --manifest-url-ca-file";
const WRONG_DATE = "its certificate is out of date, or our clock is wrong (%)";
/** Keys: codes and names of the runtime's errors; they take the place of %. */
const EXPLANATIONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refuses the connection (%)",
  ENOENT: "the socket does not exist (%)",
  EACCES: "permission denied (%)",
  ECONNRESET: "the connection broke, or the response was cut short or not HTTP (%)",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: WRONG_DATE,
  CERT_NOT_YET_VALID: WRONG_DATE,
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name (%)",
  ENOTFOUND: "the host is not known or out of reach",
  DNSException: "the host is not known or out of reach",
  FailedToOpenSocket: "the host is not known or out of reach",
  Malformed_HTTP_Response: "the response is not HTTP",
};

/** Messages of the runtime may hold the URL with its secrets: only codes are passed on. */
function explain(error: unknown): string {
  const { code, name = "unknown error" } = error as { code?: unknown; name?: string };
  const word = code === "ConnectionRefused" ? "ECONNREFUSED" : typeof code === "string" ? code : name;
  return (EXPLANATIONS[word] ?? "failed (%)").replace("%", word);
}

const unzip = promisify(gunzip);

/**
 * Decodes a body that has at most the Content-Encoding gzip, in another thread. Source: Go's http.Transport asks for no other.
 * @param encoding the header; "" = none
 * @param maxBytes limit of the decoded body, exclusive; decoding ends there
 * @throws UrlFetchError
 */
export async function decodeBody(bytes: Uint8Array, encoding: string, maxBytes: number): Promise<Uint8Array> {
  const named = encoding.trim().toLowerCase();
  if (named === "" || named === "identity") return bytes;
  if (named !== "gzip") throw new UrlFetchError(`responded with the Content-Encoding "${named}"; gzip is supported`);
  try {
    return await unzip(bytes, { maxOutputLength: maxBytes - 1 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw new UrlFetchError(TOO_LONG);
    const message = "responded with a body that is truncated, or not encoded by gzip as its Content-Encoding says";
    throw new UrlFetchError(message, { cause: error });
  }
}
