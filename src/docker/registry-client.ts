import { join } from "node:path";
import { readBoundedBytesOf, StreamTooLongError } from "../base/files/bounded-stream.ts";
import { SYSTEM_FILE_BYTES, type TextFiles } from "../base/files/whole-file.ts";
import { httpFetch } from "../base/host/http-fetch.ts";
import type { RegistryAuth } from "../base/model/registry-auth.ts";
import type { ImageReference } from "../base/text/image-reference.ts";
import { isInRange, rangeOfAddress } from "../base/text/ip-range.ts";
import { isRecord, jsonIfValid } from "../base/text/json.ts";

/** Registries without TLS. */
export interface InsecureRegistries {
  hosts: readonly string[];
  cidrs: readonly string[];
}

interface RegistryClientOptions {
  /** Those of the engine: what it trusts is trusted here. */
  insecureRegistries: (signal: AbortSignal) => Promise<InsecureRegistries>;
  proxyFor: (url: URL) => string | undefined;
  files: Pick<TextFiles, "readDirectory">;
}

const TIMEOUT_MS = 30_000;
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
const MAX_TAG_PAGES = 100;
const MAX_TAGS = 100_000;
const MAX_REDIRECTS = 4;
const MANIFEST_TYPES = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
].join(", ");

/** How one registry is reached. */
interface Endpoint {
  /** `https://registry-1.docker.io`. */
  base: string;
  tls: { rejectUnauthorized?: boolean; ca?: string[] };
}

/** Asks registries for digests and tags. Source: the OCI distribution specification, Docker's token authentication. */
export class RegistryClient {
  readonly #options: RegistryClientOptions;
  readonly #plain = new Set<string>();

  constructor(options: RegistryClientOptions) {
    this.#options = options;
  }

  /** Digest of a tag now, of the index where there is one. @param auths each is tried @throws RegistryError */
  async digest(
    { domain, path }: ImageReference,
    tag: string,
    auths: readonly RegistryAuth[],
    signal: AbortSignal,
  ): Promise<string> {
    const request = { domain, path, target: `/v2/${path}/manifests/${tag}`, accept: MANIFEST_TYPES };
    const ask = (method: "HEAD" | "GET") => this.#ask({ ...request, method }, auths, signal);
    const head = await ask("HEAD");
    const digest = head.headers.get("docker-content-digest");
    if (digest !== null && isDigest(digest)) return digest;
    // Registries need not name the digest in the response to HEAD.
    const { bytes } = await ask("GET");
    return `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
  }

  /** All tags of a repository. @throws RegistryError */
  async tags({ domain, path }: ImageReference, auths: readonly RegistryAuth[], signal: AbortSignal): Promise<string[]> {
    const tags: string[] = [];
    let target: string | undefined = `/v2/${path}/tags/list?n=1000`;
    for (let page = 0; target !== undefined && page < MAX_TAG_PAGES; page++) {
      const request: RegistryRequest = { domain, path, target, method: "GET", accept: "application/json" };
      const response = await this.#ask(request, auths, signal);
      for (const tag of parseTags(response, domain)) tags.push(tag);
      if (tags.length > MAX_TAGS) throw new RegistryError(0, `${domain} lists more than ${MAX_TAGS} tags of ${path}`);
      target = nextPage(response.headers.get("link"), target);
    }
    return tags;
  }

  async #ask(request: RegistryRequest, auths: readonly RegistryAuth[], signal: AbortSignal): Promise<RegistryResponse> {
    let last: unknown;
    for (const auth of auths.length > 0 ? auths : [undefined]) {
      try {
        return await this.#askAs(request, auth, signal);
      } catch (error) {
        signal.throwIfAborted();
        last = error;
        const isRefused = error instanceof RegistryError && [401, 403, 404].includes(error.status);
        if (!isRefused) break;
      }
    }
    throw last;
  }

  async #askAs(
    request: RegistryRequest,
    auth: RegistryAuth | undefined,
    signal: AbortSignal,
  ): Promise<RegistryResponse> {
    const { domain, path, target } = request;
    const { endpoint, response: first } = await this.#reach(request, signal);
    let response = first;
    if (response.status === 401) {
      const authorization = await this.#authorize(response, endpoint, path, auth, signal);
      if (authorization !== undefined) {
        response = await this.#send(new URL(target, endpoint.base), { ...request, authorization }, endpoint, signal);
      }
    }
    if (response.status >= 200 && response.status < 300) return response;
    throw new RegistryError(response.status, `${domain} answered ${response.status} for ${path}: ${explain(response)}`);
  }

  /** Tries https, and http where the engine would. */
  async #reach(request: RegistryRequest, signal: AbortSignal) {
    const { domain, target } = request;
    const isInsecure = isInsecureRegistry(domain, await this.#options.insecureRegistries(signal));
    const endpoint: Endpoint = {
      base: `https://${domain === "docker.io" ? "registry-1.docker.io" : domain}`,
      tls: isInsecure ? { rejectUnauthorized: false } : await this.#trustOf(domain),
    };
    const plain: Endpoint = { base: `http://${domain}`, tls: {} };
    const by = async (way: Endpoint) => {
      return { endpoint: way, response: await this.#send(new URL(target, way.base), request, way, signal) };
    };
    if (isInsecure && this.#plain.has(domain)) return by(plain);
    try {
      return await by(endpoint);
    } catch (error) {
      signal.throwIfAborted();
      if (!isInsecure) throw error;
      const reached = await by(plain);
      this.#plain.add(domain);
      return reached;
    }
  }

  /** The CAs of `/etc/docker/certs.d/<registry>`, if it has any. */
  async #trustOf(domain: string): Promise<Endpoint["tls"]> {
    const directory = join("/etc/docker/certs.d", domain);
    const found = await this.#options.files.readDirectory(directory, [".crt"], SYSTEM_FILE_BYTES).catch(() => []);
    const ca = found.flatMap(({ text }) => text ?? []);
    return ca.length > 0 ? { ca } : {};
  }

  /** @returns the value of `Authorization`; undefined when the registry asks for something unknown */
  async #authorize(
    { headers }: RegistryResponse,
    endpoint: Endpoint,
    path: string,
    auth: RegistryAuth | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    if (auth?.registrytoken) return `Bearer ${auth.registrytoken}`;
    const challenge = parseChallenge(headers.get("www-authenticate") ?? "");
    if (challenge?.scheme === "basic") return basicOf(auth);
    if (challenge?.scheme !== "bearer" || !URL.canParse(challenge.realm)) return undefined;
    const realm = new URL(challenge.realm);
    // Credentials for an https registry never go over plain http.
    if (realm.protocol !== "https:" && endpoint.base.startsWith("https:")) return undefined;
    const scope = challenge.scope || `repository:${path}:pull`;
    const basic = basicOf(auth);
    const body = auth?.identitytoken
      ? new URLSearchParams({
          grant_type: "refresh_token",
          refresh_token: auth.identitytoken,
          service: challenge.service,
          scope,
          client_id: "kubelet-ts",
        })
      : undefined;
    if (!body) {
      if (challenge.service !== "") realm.searchParams.set("service", challenge.service);
      realm.searchParams.set("scope", scope);
    }
    const response = await this.#send(
      realm,
      {
        method: body ? "POST" : "GET",
        accept: "application/json",
        ...(!body && basic !== undefined && { authorization: basic }),
        ...(body && { body }),
      },
      realm.host === new URL(endpoint.base).host ? endpoint : { base: realm.origin, tls: {} },
      signal,
    );
    if (response.status !== 200) {
      throw new RegistryError(response.status, `${realm.host} answered ${response.status} to the request for a token`);
    }
    const { token, access_token: accessToken } = parseJson(response, realm.host);
    const found = [token, accessToken].find((value) => typeof value === "string" && value !== "");
    if (found === undefined) throw new RegistryError(200, `${realm.host} answered without a token`);
    return `Bearer ${found as string}`;
  }

  /** One request; redirects are followed, to another host without credentials. */
  async #send(url: URL, request: Wanted, { tls }: Endpoint, signal: AbortSignal): Promise<RegistryResponse> {
    let next = url;
    for (let count = 0; count <= MAX_REDIRECTS; count++) {
      const { method, accept, authorization, body } = request;
      const proxy = this.#options.proxyFor(next);
      let response: Response;
      try {
        response = await httpFetch(next, {
          method,
          headers: {
            Accept: accept,
            "User-Agent": "kubelet-ts",
            ...(authorization !== undefined && next.host === url.host && { Authorization: authorization }),
          },
          ...(body && { body }),
          signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
          ...(next.protocol === "https:" && { tls }),
          ...(proxy !== undefined && { proxy }),
        });
        const bytes = await readBoundedBytesOf(response.body, MAX_RESPONSE_BYTES).catch((error: unknown) => {
          if (!(error instanceof StreamTooLongError)) throw error;
          throw new RegistryError(0, `${next.host} answered more than ${MAX_RESPONSE_BYTES} bytes`);
        });
        const location = response.headers.get("location");
        if (response.status < 300 || response.status >= 400 || location === null) {
          return { status: response.status, headers: response.headers, bytes };
        }
        next = new URL(location, next);
      } catch (cause) {
        signal.throwIfAborted();
        if (cause instanceof RegistryError) throw cause;
        const { name, message, code } = cause as Error & { code?: unknown };
        const late = name === "TimeoutError" ? `no response within ${TIMEOUT_MS / 1000} s` : code;
        const why = late === undefined ? `gave no usable response: ${message}` : `cannot be reached: ${late}`;
        throw new RegistryError(0, `${next.host || next.protocol} ${why}`, { cause });
      }
      if (next.protocol !== "https:" && url.protocol === "https:") break;
    }
    throw new RegistryError(0, `${url.host} redirects to nowhere`);
  }
}

/** A request for something of a repository. */
interface RegistryRequest extends Wanted {
  domain: string;
  path: string;
  /** With the query. */
  target: string;
}

interface Wanted {
  method: "HEAD" | "GET" | "POST";
  accept: string;
  authorization?: string;
  body?: URLSearchParams;
}

function basicOf(auth: RegistryAuth | undefined): string | undefined {
  if (auth?.username !== undefined && auth.password !== undefined) {
    return `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString("base64")}`;
  }
  return auth?.auth ? `Basic ${auth.auth}` : undefined;
}

/** Whether the engine would use a registry without TLS. Loopback always is such a registry, also as a mapped address. Pure. */
export function isInsecureRegistry(domain: string, { hosts, cidrs }: InsecureRegistries): boolean {
  const host = domain.replace(/:\d+$/, "").replace(/^\[(?:::ffff:(?=\d+\.))?(.*)\]$/i, "$1");
  if (hosts.includes(domain) || hosts.includes(host) || host === "localhost") return true;
  const ranges = ["127.0.0.0/8", "::1/128", ...cidrs].flatMap((cidr) => rangeOfAddress(cidr) ?? []);
  return ranges.some((range) => isInRange(host, range));
}

/** A registry refused or did not respond; the message holds no credentials. */
export class RegistryError extends Error {
  constructor(
    /** HTTP status; 0: no response. */
    readonly status: number,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The response of a registry, read to its end. */
interface RegistryResponse {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
}

const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

const isDigest = (text: string) => /^sha256:[a-f0-9]{64}$|^sha(384|512):[a-f0-9]+$/.test(text);

/** Longer headers are cut: the time that the patterns take grows with the square of the length. */
const MAX_HEADER_CHARS = 4096;

/** Reads `WWW-Authenticate`; the scheme becomes lower case: `basic`, `bearer`. Pure. */
export function parseChallenge(header: string) {
  const [, scheme, rest = ""] = /^\s*([A-Za-z]+)\s*(.*)$/s.exec(header.slice(0, MAX_HEADER_CHARS)) ?? [];
  if (scheme === undefined) return undefined;
  const parameters = new Map(
    Array.from(rest.matchAll(/([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/gi), ([, name = "", quoted, plain]) => [
      name.toLowerCase(),
      quoted === undefined ? (plain ?? "") : quoted.replace(/\\(.)/g, "$1"),
    ]),
  );
  const read = (name: string) => parameters.get(name) ?? "";
  return { scheme: scheme.toLowerCase(), realm: read("realm"), service: read("service"), scope: read("scope") };
}

/** @throws RegistryError */
function parseJson({ bytes }: RegistryResponse, host: string): Record<string, unknown> {
  const value = jsonIfValid(new TextDecoder().decode(bytes));
  if (isRecord(value)) return value;
  throw new RegistryError(200, `${host} did not respond with JSON`);
}

/** Tags of a page of a list; invalid ones are left out. @throws RegistryError */
export function parseTags(response: RegistryResponse, host: string): string[] {
  const { tags } = parseJson(response, host);
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string" && TAG.test(tag)) : [];
}

/** The path of the next page of a list, on the same registry. Source: RFC 5988 as registries use it. */
export function nextPage(link: string | null, current: string): string | undefined {
  const target = /<([^<>]+)>\s*;\s*rel="?next"?/.exec((link ?? "").slice(0, MAX_HEADER_CHARS))?.[1];
  const base = new URL(current, "http://registry").href;
  if (target === undefined || !URL.canParse(target, base)) return undefined;
  const { pathname, search } = new URL(target, base);
  // Two slashes would lead to another host.
  return /^\/(?!\/)/.test(pathname) ? `${pathname}${search}` : undefined;
}

/** The first message of a registry's errors. */
export function explain({ bytes, status }: RegistryResponse): string {
  const body = jsonIfValid(new TextDecoder().decode(bytes)) as { errors?: { message?: unknown }[] } | null | undefined;
  const message = body?.errors?.[0]?.message;
  if (typeof message === "string") return message.slice(0, 200);
  const words: Readonly<Record<number, string>> = {
    401: "credentials are missing or wrong",
    403: "access is denied",
    404: "there is no such image",
    429: "too many requests",
  };
  return words[status] ?? "no reason given";
}
