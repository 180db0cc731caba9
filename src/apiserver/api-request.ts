import { createHash, timingSafeEqual } from "node:crypto";
import { nextTurn } from "../base/concurrency/turn-pace.ts";
import { SYSTEM_FILE_BYTES, type TextFiles } from "../base/files/whole-file.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { messageOf } from "../base/text/error-message.ts";
import { parseMediaTypes } from "../base/text/media-types.ts";
import { ProtobufError } from "../base/text/protobuf.ts";
import { readDocument } from "../manifest/yaml/parse-stream.ts";
import type { SourceNode } from "../manifest/yaml/source-node.ts";
import { ANONYMOUS, MONITORING_GROUP, measurementsOf, type ShownCertificate } from "../server/client-identity.ts";
import type { HttpResponse, ListenerResponse, ServerRequest } from "../server/request-handler.ts";
import { ApiError, badRequest, forbidden, tooManyValues, unauthorized, unsupportedMediaType } from "./api-error.ts";
import { checkSize, MAX_VALUES } from "./object-store.ts";
import type { Verb } from "./resource-definition.ts";

/**
 * Permissions of a user: everything; reading everything except Secrets' data and the inside of containers; reading metrics and
 * statistics.
 */
export type Role = "admin" | "view" | "metrics";

export interface ApiUser {
  name: string;
  groups: readonly string[];
  /** undefined: an anonymous client, which may ask for health and version. */
  role: Role | undefined;
}

/** A request of the API, after authentication. */
export interface ApiRequest extends Pick<ServerRequest, "method" | "path" | "query" | "header" | "signal" | "upgrade"> {
  /** @throws ApiError 413 when it is longer than the limit */
  body(): Promise<Uint8Array>;
  user: ApiUser;
}

export type ApiResponse = ListenerResponse;

export const jsonText = (
  status: number,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): HttpResponse => ({
  status,
  headers: { "Content-Type": "application/json", ...headers },
  body,
});

export const json = (status: number, value: unknown, headers: Record<string, string> = {}): HttpResponse =>
  jsonText(status, JSON.stringify(value), headers);

/** The verb and resource of a request. Source: apiserver's `RequestInfo`. */
export interface RequestInfo {
  group: string;
  version: string;
  /** undefined: of all namespaces, or of a kind without one. */
  namespace: string | undefined;
  plural: string;
  /** "" for the whole collection. */
  name: string;
  /** "" for the object itself. */
  subresource: string;
  /** The path after the subresource `proxy`, without a leading slash. */
  rest: string;
}

/** @returns undefined for paths that name no resource */
export function parseRequestInfo(path: string): RequestInfo | undefined {
  const parts = path.replace(/\/$/, "").split("/").slice(1);
  const [root] = parts;
  let group = "";
  if (root === "apis") group = parts[1] ?? "";
  else if (root !== "api") return undefined;
  const [version, ...steps] = parts.slice(root === "api" ? 1 : 2);
  // The deprecated paths of watches: /api/v1/watch/namespaces/…
  if (steps[0] === "watch") steps.shift();
  if (version === undefined || steps.length === 0 || steps.includes("")) return undefined;
  let namespace: string | undefined;
  if (steps[0] === "namespaces" && steps.length > 2 && !["status", "finalize"].includes(steps[2]!)) {
    namespace = steps[1];
    steps.splice(0, 2);
  }
  const [plural = "", name = "", subresource = "", ...rest] = steps;
  if (rest.length > 0 && subresource !== "proxy") return undefined;
  return { group, version, namespace, plural, name, subresource, rest: rest.join("/") };
}

/** Size limit of a request body. Source: apiserver's `--max-resource-write-bytes` (3 MiB). */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;

export const PATCH_TYPES = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  applyYaml: "application/apply-patch+yaml",
} as const;

const typeOf = (request: ApiRequest) => parseMediaTypes(request.header("Content-Type") ?? "")[0]?.type ?? "";

/** Gets the path of each field that occurs twice in its object, e.g. `data.a`. The last one counts. */
type OnRepeatedField = (path: string) => void;

/**
 * The object in the body, JSON or YAML.
 * @throws ApiError 400, 413, 415
 */
export async function readObjectBody(request: ApiRequest, onRepeated: OnRepeatedField = () => {}): Promise<unknown> {
  const type = typeOf(request);
  const bytes = await request.body();
  // Clients that send no type mean JSON.
  if (!["application/yaml", PROTOBUF, "", "application/json", "*/*"].includes(type)) {
    throw unsupportedMediaType(["application/json", "application/yaml"]);
  }
  return readTyped(type, bytes, onRepeated);
}

/** To parse a longer body takes as long as to write its object, which is work for another turn. */
const LONG_BODY_BYTES = 16_384;

async function readTyped(type: string, bytes: Uint8Array, onRepeated?: OnRepeatedField): Promise<unknown> {
  const isYaml = type === "application/yaml" || type === PATCH_TYPES.applyYaml;
  const value = type === PROTOBUF ? await readProtobuf(bytes) : (isYaml ? readYaml : readJson)(bytes, onRepeated);
  if (bytes.length > LONG_BODY_BYTES) await nextTurn();
  return value;
}

/** As {@link readObjectBody}; undefined when there is no body, as a DELETE may have none. */
export async function readOptionalBody(request: ApiRequest): Promise<unknown> {
  const bytes = await request.body();
  return bytes.length === 0 ? undefined : readTyped(typeOf(request), bytes);
}

const PROTOBUF = "application/vnd.kubernetes.protobuf";

async function readProtobuf(bytes: Uint8Array): Promise<unknown> {
  const { decodeProtobufObject } = await import("./protobuf-object.ts");
  try {
    return decodeProtobufObject(bytes);
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    // client-go sends JSON after this response.
    throw unsupportedMediaType(["application/json", "application/yaml"], error.message);
  }
}

export type PatchBody = { type: (typeof PATCH_TYPES)[keyof typeof PATCH_TYPES]; patch: unknown };

/** @throws ApiError 400, 413, 415 */
export async function readPatchBody(request: ApiRequest, onRepeated: OnRepeatedField = () => {}): Promise<PatchBody> {
  const found = typeOf(request);
  const type = Object.values(PATCH_TYPES).find((it) => it === found);
  if (type === undefined) throw unsupportedMediaType(Object.values(PATCH_TYPES));
  return { type, patch: await readTyped(type, await request.body(), onRepeated) };
}

function readJson(bytes: Uint8Array, onRepeated?: OnRepeatedField): unknown {
  let value: unknown;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  // First: to parse 100,000 keys, or as many nested lists, takes a tenth of a second.
  const writtenKeys = countWrittenKeys(text);
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${(error as Error).message}`);
  }
  // A full parse only where there is something to report.
  if (writtenKeys > checkSize(value) && onRepeated)
    readDocument(bytes, "body", (root) => reportRepeated(root, onRepeated));
  return value;
}

/**
 * Strings before a colon are keys. Lists, maps and commas are no more than twice the values.
 * @param json may be no JSON. @throws ApiError 413 when they are too many
 */
function countWrittenKeys(json: string): number {
  let count = 0;
  let others = 0;
  const mark = /["[{,]/g;
  const colon = /\s*:/y;
  while (mark.test(json)) {
    const at = mark.lastIndex - 1;
    if (json[at] === '"') {
      mark.lastIndex = colon.lastIndex = endOfString(json, at);
      if (colon.test(json)) count++;
    } else others++;
    if (count > MAX_VALUES || others > 2 * MAX_VALUES) throw tooManyValues(MAX_VALUES);
  }
  return count;
}

/**
 * Index after a string of JSON. A pattern that repeats alternatives would remember every character: 108 MB for a string
 * of 1 MB. @param start index of its first quote. @returns the length where it has no end
 */
function endOfString(json: string, start: number): number {
  for (let quote = json.indexOf('"', start + 1); quote >= 0; quote = json.indexOf('"', quote + 1)) {
    let first = quote;
    while (json[first - 1] === "\\") first--;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return json.length;
}

function readYaml(bytes: Uint8Array, onRepeated?: OnRepeatedField): unknown {
  let value: unknown;
  try {
    value = readDocument(bytes, "body", (root) => onRepeated && reportRepeated(root, onRepeated)) ?? null;
  } catch (error) {
    throw badRequest(`error decoding YAML: ${(error as Error).message}`);
  }
  checkSize(value);
  return value;
}

function reportRepeated(root: SourceNode, onRepeated: OnRepeatedField): void {
  const visit = (node: SourceNode, path: string) => {
    if (node.kind === "list") node.items.forEach((item, index) => void visit(item, `${path}[${index}]`));
    if (node.kind !== "map") return;
    for (const [key, { value, isRepeated }] of node.entries) {
      const own = path === "" ? key : `${path}.${key}`;
      if (isRepeated) onRepeated(own);
      visit(value, own);
    }
  };
  visit(root, "");
}

/** One line of `--token-auth-file`. */
interface TokenEntry {
  /** SHA-256 of the token: comparing hashes takes the same time for every token. */
  digest: Uint8Array;
  user: string;
  groups: readonly string[];
}

const ADMIN_GROUPS = new Set(["system:masters", "admin"]);

/**
 * Members of `system:masters` and `admin` may do everything; those of `system:monitoring` read metrics; every other authenticated
 * user may read.
 */
function roleOf(groups: readonly string[]): Role {
  if (groups.some((group) => ADMIN_GROUPS.has(group))) return "admin";
  return groups.includes(MONITORING_GROUP) ? "metrics" : "view";
}

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
 * together with a valid one, and is not taken for an anonymous client.
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
  if (!shown) return { ...ANONYMOUS, role: undefined };
  if (!shown.isVerified || shown.commonName === "") return undefined;
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
/** Reviews of the client's own permissions, allowed for every known user. */
const SELF_REVIEWS = new Set(["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"]);

/** The group of `kubectl top`. */
export const METRICS_API_GROUP = "metrics.k8s.io";
/** Subresources of a node. Source: the kubelet's authorization of clients. */
export const MEASUREMENTS = ["metrics", "stats"] as const;

/**
 * `admin` may do everything; `view` may read everything except the inside of containers, and sees Secrets without their data;
 * `metrics` may read metrics and statistics.
 */
export function mayDo({ role }: ApiUser, { verb, group, resource, subresource }: Access): boolean {
  if (role === "admin") return true;
  if (role === undefined) return false;
  if (SELF_REVIEWS.has(resource)) return true;
  if (!READING.has(verb) || INTO_CONTAINERS.has(subresource)) return false;
  if (role === "view" || group === METRICS_API_GROUP) return true;
  return group === "" && resource === "nodes" && MEASUREMENTS.some((it) => it === subresource);
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
  { group, plural, subresource, name, namespace, rest }: RequestInfo,
  verb: string,
): void {
  const isNodeProxy = group === "" && plural === "nodes" && subresource === "proxy";
  const measurements = isNodeProxy ? measurementsOf(`/${rest}`) : undefined;
  if (mayDo(user, { verb, group, resource: plural, subresource: measurements ?? subresource })) return;
  const resource = subresource === "" ? plural : `${plural}/${subresource}`;
  const scope = namespace === undefined ? "at the cluster scope" : `in the namespace "${namespace}"`;
  throw forbidden(
    { group, plural },
    name,
    `User "${user.name}" cannot ${verb} resource "${resource}" in API group "${group}" ${scope}`,
  );
}

/** Source: apiserver's ClusterRole `system:public-info-viewer`. */
const PUBLIC_PATHS = /^\/(healthz|livez|readyz|version)\/?$/;
/** Source: apiserver's impersonation filter. */
const IMPERSONATION: Readonly<Record<string, string>> = {
  "Impersonate-User": "users",
  "Impersonate-Group": "groups",
  "Impersonate-Uid": "uids",
};

/**
 * Refuses anonymous clients everywhere but at health and version, and clients that act for another user: the node has no rules that say
 * who may.
 * @throws ApiError 401, 403
 */
export function checkSender({ user, path, method, header }: ApiRequest): void {
  const isReading = method === "GET" || method === "HEAD";
  if (user.role === undefined && !(isReading && PUBLIC_PATHS.test(path))) throw unauthorized();
  for (const [name, plural] of Object.entries(IMPERSONATION)) {
    const meant = header(name);
    if (meant === null) continue;
    const reason = `User "${user.name}" cannot impersonate resource "${plural}" in API group "" at the cluster scope`;
    throw forbidden({ group: "", plural }, meant, `${reason}: the API of a single node knows no impersonation`);
  }
}

/** For paths that are not resources. Source: apiserver's response to a forbidden path. @throws ApiError 403 */
export function authorizePath({ user, path, method }: ApiRequest): void {
  if (method === "GET" || method === "HEAD" || user.role === "admin") return;
  const verb = (VERBS[method] ?? method).toLowerCase();
  throw new ApiError(403, "Forbidden", `forbidden: User "${user.name}" cannot ${verb} path "${path}"`, {});
}

/** Python's client sends `True`. Source: apimachinery's conversion of queries: all but `false` and `0` is true. */
const isOn = (value: string | null): boolean => value !== null && !["false", "0"].includes(value.toLowerCase());
