import { createHash, timingSafeEqual } from "node:crypto";
import { SYSTEM_FILE_BYTES } from "../base/files/bounded-read.ts";
import type { TextFiles } from "../base/files/text-files.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { ShownCertificate } from "../server/client-identity.ts";
import { ApiError, forbidden } from "./api-error.ts";
import type { ApiRequest, ApiUser, RequestInfo, Role } from "./api-request.ts";
import type { Verb } from "./resource-definition.ts";

/** One line of `--token-auth-file`. */
interface TokenEntry {
  /** SHA-256 of the token: comparing hashes takes the same time for every token. */
  digest: Uint8Array;
  user: string;
  groups: readonly string[];
}

const ADMIN_GROUPS = new Set(["system:masters", "admin"]);

/** Members of `system:masters` and `admin` may do everything; every other authenticated user may read. */
const roleOf = (groups: readonly string[]): Role =>
  groups.some((group) => ADMIN_GROUPS.has(group)) ? "admin" : "view";

const toUser = (name: string, groups: readonly string[]): ApiUser => ({
  name,
  groups: [...groups, "system:authenticated"],
  role: roleOf(groups),
});

/** Clients of the Unix socket: the file's mode let them in. */
export const SOCKET_USER: ApiUser = {
  name: "kubelet-ts:socket",
  groups: ["system:masters", "system:authenticated"],
  role: "admin",
};

/**
 * The user behind a request; undefined is answered with 401. An invalid certificate or token is refused, even
 * together with a valid one.
 */
export function authenticate(
  shown: ShownCertificate | undefined,
  authorization: string | null,
  tokens: readonly TokenEntry[],
  now: Date,
): ApiUser | undefined {
  if (authorization !== null && authorization !== "") {
    const [, token] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
    const entry = token === undefined ? undefined : findToken(token, tokens);
    return entry && toUser(entry.user, entry.groups);
  }
  if (!shown?.isVerified || shown.commonName === "") return undefined;
  // Checked for each request: a connection may live longer than its certificate.
  return shown.notAfter.getTime() < now.getTime() ? undefined : toUser(shown.commonName, shown.organizations);
}

const digestOf = (token: string): Uint8Array => createHash("sha256").update(token).digest();

/** Every entry is compared, whichever fits. */
function findToken(token: string, tokens: readonly TokenEntry[]): TokenEntry | undefined {
  const digest = digestOf(token);
  let found: TokenEntry | undefined;
  for (const entry of tokens) if (timingSafeEqual(entry.digest, digest)) found = entry;
  return found;
}

/**
 * Lines `token,user,uid[,"group1,group2"]`. Source: apiserver's `--token-auth-file`.
 * @throws Error that names the line and never a token
 */
function parseTokenFile(text: string, file: string): TokenEntry[] {
  return text.split("\n").flatMap((line, index) => {
    if (line.trim() === "" || line.startsWith("#")) return [];
    const [, token = "", user = "", groups = ""] =
      /^\s*([^,\s"]+)\s*,\s*"?([^,"]+)"?\s*,\s*[^,]*(?:,\s*"?([^"]*)"?\s*)?$/.exec(line.replace(/\r$/, "")) ?? [];
    if (token === "" || user === "") {
      throw new Error(
        `--token-auth-file "${file}": line ${index + 1} is not of the form token,user,uid,"group1,group2"`,
      );
    }
    const names = groups.split(",").map((group) => group.trim());
    return [{ digest: digestOf(token), user: user.trim(), groups: names.filter((group) => group !== "") }];
  });
}

/** The file is read again after this time. */
const MAX_AGE_MS = 1_000;

interface TokenFileDeps {
  /** "" = none. */
  path: string;
  files: TextFiles;
  clock: Clock;
  logger: Logger;
}

/** The bearer tokens of `--token-auth-file`, read on demand. A file that becomes invalid leaves the previous tokens valid. */
export class TokenFile {
  readonly #deps: TokenFileDeps;
  #text = "";
  #readAtMs = Number.NEGATIVE_INFINITY;
  #entries = Promise.resolve<readonly TokenEntry[]>([]);

  constructor(deps: TokenFileDeps) {
    this.#deps = deps;
  }

  /** The tokens, at most a second old. Never rejects. */
  read(): Promise<readonly TokenEntry[]> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#readAtMs >= MAX_AGE_MS) {
      this.#readAtMs = nowMs;
      this.#entries = this.#readFile(this.#entries);
    }
    return this.#entries;
  }

  async #readFile(before: Promise<readonly TokenEntry[]>): Promise<readonly TokenEntry[]> {
    const { path, logger, files } = this.#deps;
    if (path === "") return [];
    const entries = await before;
    try {
      const text = await files.readText(path, SYSTEM_FILE_BYTES);
      if (text === undefined) throw new Error(`there is no "${path}"`);
      if (text === this.#text) return entries;
      this.#text = text;
      return parseTokenFile(text, path);
    } catch (error) {
      logger.warn(`Tokens of the local API stay as they were: ${messageOf(error)}`);
      return entries;
    }
  }
}

/** The requested access to a resource. */
interface Access {
  verb: string;
  group: string;
  resource: string;
  /** "" for the object itself. */
  subresource: string;
}

/** Subresources that lead into containers or to the node. */
const INTO_CONTAINERS = new Set(["exec", "attach", "portforward", "proxy", "ephemeralcontainers", "eviction"]);
const READING = new Set(["get", "list", "watch"]);
/** Reviews of the client's own permissions, allowed for everyone. */
const SELF_REVIEWS = new Set(["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"]);

/**
 * `admin` may do everything; `view` may read everything except the inside of containers, and sees Secrets without their data.
 */
export function mayDo({ role }: ApiUser, { verb, resource, subresource }: Access): boolean {
  if (role === "admin") return true;
  if (role !== "view") return false;
  if (SELF_REVIEWS.has(resource)) return true;
  return READING.has(verb) && !INTO_CONTAINERS.has(subresource);
}

/** Verbs by method, for resources that are neither listed nor watched. */
export const VERBS: Readonly<Record<string, string>> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
  GET: "get",
  HEAD: "get",
};

/** The verb of a request for a resource. Source: apiserver's RequestInfo. */
export function verbOf({ method, query, path }: ApiRequest, { name }: RequestInfo): Verb {
  const verb = (VERBS[method] ?? "get") as Verb;
  if (verb === "delete") return name === "" ? "deletecollection" : "delete";
  if (verb !== "get") return verb;
  if (isOn(query.get("watch")) || /^\/apis?\/([^/]+\/)?[^/]+\/watch\//.test(path)) return "watch";
  return name === "" ? "list" : "get";
}

/** @throws ApiError 403 */
export function authorize(
  { user }: ApiRequest,
  { group, plural, subresource, name, namespace }: RequestInfo,
  verb: string,
): void {
  const access: Access = { verb, group, resource: plural, subresource };
  if (mayDo(user, access)) return;
  const resource = subresource === "" ? plural : `${plural}/${subresource}`;
  const scope = namespace === undefined ? "at the cluster scope" : `in the namespace "${namespace}"`;
  throw forbidden(
    { group, plural },
    name,
    `User "${user.name}" cannot ${verb} resource "${resource}" in API group "${group}" ${scope}`,
  );
}

/** For paths that are not resources. Source: apiserver's response to a forbidden path. @throws ApiError 403 */
export function authorizePath({ user, path, method }: ApiRequest): void {
  if (user.role !== undefined && (method === "GET" || method === "HEAD" || user.role === "admin")) return;
  const verb = (VERBS[method] ?? method).toLowerCase();
  throw new ApiError(403, "Forbidden", `forbidden: User "${user.name}" cannot ${verb} path "${path}"`, {});
}

/** Python's client sends `True`. Source: apimachinery's conversion of queries: all but `false` and `0` is true. */
const isOn = (value: string | null): boolean => value !== null && !["false", "0"].includes(value.toLowerCase());
