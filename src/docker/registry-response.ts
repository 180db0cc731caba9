/** A registry refused or did not respond; the message holds no credentials. */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
  /** HTTP status; 0: no response. */
  readonly status: number;

  constructor(status: number, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.status = status;
  }
}

/** The response of a registry, read to its end. */
export interface RegistryResponse {
  status: number;
  headers: Headers;
  bytes: Uint8Array;
}

const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

export const isDigest = (text: string) => /^sha256:[a-f0-9]{64}$|^sha(384|512):[a-f0-9]+$/.test(text);

interface Challenge {
  /** Lower case: `basic`, `bearer`. */
  scheme: string;
  realm: string;
  service: string;
  scope: string;
}

/** Longer headers are cut: the time that the patterns take grows with the square of the length. */
const MAX_HEADER_CHARS = 4096;

/** Reads `WWW-Authenticate`. Pure. */
export function parseChallenge(header: string): Challenge | undefined {
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
export function parseJson({ bytes }: RegistryResponse, host: string): object {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value === "object" && value !== null) return value;
  } catch {}
  throw new RegistryError(200, `${host} did not answer in JSON`);
}

/** Tags of a page of a list; invalid ones are left out. @throws RegistryError */
export function parseTags(response: RegistryResponse, host: string): string[] {
  const { tags } = parseJson(response, host) as { tags?: unknown };
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
  try {
    const { errors } = JSON.parse(new TextDecoder().decode(bytes)) as { errors?: { message?: unknown }[] };
    const message = errors?.[0]?.message;
    if (typeof message === "string") return message.slice(0, 200);
  } catch {}
  const words: Readonly<Record<number, string>> = {
    401: "credentials are missing or wrong",
    403: "access is denied",
    404: "there is no such image",
    429: "too many requests",
  };
  return words[status] ?? "no reason given";
}
