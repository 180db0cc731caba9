import { existsSync } from "node:fs";
import type { ApiResource as Listed } from "../../apiserver/discovery.ts";
import { apiVersionOf, resourceId } from "../../apiserver/resource-definition.ts";
import type { ObjectMeta } from "../../base/api/meta.ts";
import { readBoundedStream } from "../../base/files/bounded-stream.ts";
import { MAX_SOCKET_PATH_BYTES } from "../../base/host/http-fetch.ts";
import { apiSocketOf } from "../../base/host/root-directory.ts";
import { didYouMean, nearestByBeginning, nearestName } from "../../base/text/nearest-name.ts";
import { CommandError, type CommandRequest, terminalIo, UsageError } from "../sub-command.ts";
import { locateKubelet, removeProxies, STARTING_POLL_MS, STARTING_POLLS } from "./find-kubelet.ts";
import { askKubelet } from "./kubelet-api.ts";

/** Any Kubernetes object. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** Rows as the server prints them. Source: meta.k8s.io/v1 `Table`. */
export interface ApiTable {
  kind: "Table";
  columnDefinitions: { name: string; type: string; priority: number }[];
  rows: { cells: unknown[]; object: ApiObject }[];
}

/** A kind the API serves; "" is the core group. */
export type ApiResource = Listed & { group: string; version: string };

/** The API server refused a request. Source: meta/v1 `Status`. */
export class ApiStatusError extends CommandError {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The API serves no such kind, or not in this version. */
export class UnservedKindError extends CommandError {}

const RESPONSE_TIMEOUT_MS = 60_000;
const MAX_RESPONSE_BYTES = 256 * 2 ** 20;
/** Owner of the fields that these commands write. */
export const FIELD_MANAGER = "kubelet-ts";

/**
 * The local API socket of the kubelet that the flags mean.
 * @param consequence of there being no kubelet, for the message
 * @throws CommandError when there is none
 */
export async function findApiSocket(request: CommandRequest, consequence = ""): Promise<string> {
  if (request.value("server") !== undefined)
    throw new UsageError("--server names a read-only port: give --root-dir instead");
  const kubelet = await locateKubelet(request);
  if ("problem" in kubelet) {
    throw new CommandError(kubelet.problem + (consequence && kubelet.isAbsent ? `\n${consequence}` : ""));
  }
  const { rootDir } = kubelet;
  const path = apiSocketOf(rootDir);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) {
    throw new CommandError(`"${path}" is too long for a socket: use a shorter --root-dir`);
  }
  // A kubelet that was started a moment ago answers commands before it serves the API.
  for (let polls = 0; !existsSync(path); polls++) {
    if (polls < STARTING_POLLS) await Bun.sleep(STARTING_POLL_MS);
    else
      throw new CommandError(
        `the kubelet on "${rootDir}" has no local API (there is no "${path}"): change its manifests, or ask the API server of its cluster`,
      );
  }
  return path;
}

/** The Kubernetes API of one node, over its Unix socket. */
export class ApiClient {
  readonly #socketPath: string;
  #resources: Promise<ApiResource[]> | undefined;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /**
   * @param consequence of there being no kubelet, for the message
   * @throws CommandError when no kubelet has a local API
   */
  static async open(request: CommandRequest, consequence = ""): Promise<ApiClient> {
    removeProxies();
    return new ApiClient(await findApiSocket(request, consequence));
  }

  /** Every kind that is served. */
  resources(): Promise<ApiResource[]> {
    this.#resources ??= this.#discover();
    return this.#resources;
  }

  async #discover(): Promise<ApiResource[]> {
    interface ResourceList {
      groupVersion: string;
      resources: Listed[];
    }
    const { groups } = await this.json<{ groups: { versions: { groupVersion: string }[] }[] }>("GET", "/apis");
    // The preferred version of each; a group of subresources alone lists none.
    const paths = [
      "/api/v1",
      ...groups.flatMap(({ versions }) => versions.slice(0, 1).map((it) => `/apis/${it.groupVersion}`)),
    ];
    const lists = await Promise.all(paths.map((path) => this.json<ResourceList>("GET", path)));
    return lists.flatMap(({ groupVersion, resources }) => {
      const [group, version] = groupVersion.includes("/") ? groupVersion.split("/", 2) : ["", groupVersion];
      return resources
        .filter(({ name }) => !name.includes("/"))
        .map((resource) => ({ ...resource, group: group ?? "", version: version ?? "" }));
    });
  }

  /** The kind users mean: `po`, `pod`, `pods`, `deployments.apps`. @throws UsageError */
  async findResource(written: string): Promise<ApiResource> {
    const all = await this.resources();
    const [name = "", ...group] = written.toLowerCase().split(".");
    const found = all.find(
      (it) =>
        [it.name, it.singularName, it.kind.toLowerCase(), ...(it.shortNames ?? [])].includes(name) &&
        (group.length === 0 || it.group === group.join(".")),
    );
    if (found) return found;
    const listed = all.filter(({ verbs }) => verbs.includes("list"));
    const hint = didYouMean(
      name,
      listed.flatMap((it) => [it.name, it.singularName, ...(it.shortNames ?? [])]).filter(Boolean),
    );
    const known = `; it has ${[...new Set(listed.map((it) => it.name))].join(", ")}`;
    throw new UsageError(
      `the server has no kind "${written}"${hint || `${known}; a kind comes before a name: pod ${written}`}`,
    );
  }

  /** Several kinds: `po,svc`, or a category: `all`. @throws UsageError */
  async findResources(written: string): Promise<ApiResource[]> {
    const all = await this.resources();
    const found = await Promise.all(
      written
        .split(",")
        .filter(Boolean)
        .map(async (word) => {
          const ofCategory = all.filter(({ categories = [] }) => categories.includes(word.toLowerCase()));
          return ofCategory.length > 0 ? ofCategory : [await this.findResource(word)];
        }),
    );
    return [...new Set(found.flat())];
  }

  /** The kind of an object in a manifest. @throws CommandError */
  async resourceOf({ apiVersion, kind }: ApiObject): Promise<ApiResource> {
    const all = await this.resources();
    const found = all.find((it) => it.kind === kind && apiVersionOf(it) === apiVersion);
    if (found) return found;
    const other = all.find((it) => it.kind === kind);
    const hint = other ? `; it serves it as ${apiVersionOf(other)}` : "";
    throw new UnservedKindError(
      `the server does not serve ${kind || "objects without a kind"} of ${apiVersion || "no apiVersion"}${hint}`,
    );
  }

  /** @param namespace undefined: all of them, or of a kind without one */
  pathOf({ group, version, name, namespaced }: ApiResource, namespace: string | undefined, object?: string): string {
    const prefix = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    const scope = namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : "";
    return `${prefix}${scope}/${name}${object === undefined ? "" : `/${encodeURIComponent(object)}`}`;
  }

  /** The object at a path; undefined when there is none. */
  async find(path: string): Promise<ApiObject | undefined> {
    try {
      return await this.json<ApiObject>("GET", path);
    } catch (error) {
      if (error instanceof ApiStatusError && error.code === 404) return undefined;
      throw error;
    }
  }

  /** @param namespace undefined: all of them */
  async list(
    resource: ApiResource,
    namespace: string | undefined,
    query: Record<string, string> = {},
  ): Promise<ApiObject[]> {
    const search = Object.keys(query).length > 0 ? `?${new URLSearchParams(query)}` : "";
    const { items } = await this.json<{ items: ApiObject[] | null }>("GET", this.pathOf(resource, namespace) + search);
    return items ?? [];
  }

  /** The object of that name; of a pod's the node's name at its end may be left out. */
  async findObject(resource: ApiResource, namespace: string, name: string): Promise<ApiObject | undefined> {
    const exact = await this.find(this.pathOf(resource, namespace, name));
    if (exact || resource.kind !== "Pod") return exact;
    const found = (await this.list(resource, namespace)).find(
      (object) => object.metadata.name !== name && isNamed(object, name),
    );
    // Items of a list carry no kind.
    return found && { ...found, apiVersion: "v1", kind: "Pod" };
  }

  /** As {@link findObject}. @throws ApiStatusError 404, which names the namespace that has one, or the nearest name */
  async requireObject(resource: ApiResource, namespace: string, name: string): Promise<ApiObject> {
    const found = await this.findObject(resource, namespace, name);
    if (found) return found;
    const all = await this.list(resource, undefined);
    const elsewhere = all.find((object) => isNamed(object, name))?.metadata.namespace;
    const here = all.filter(({ metadata }) => !resource.namespaced || metadata.namespace === namespace);
    const fullNames = here.map(({ metadata }) => metadata.name ?? "");
    const shortNames = here.map(({ spec }, index) =>
      fullNames[index]!.replace(`-${(spec as { nodeName?: string } | undefined)?.nodeName}`, ""),
    );
    const near = nearestByBeginning(name, shortNames) ?? nearestName(name, fullNames);
    const hint =
      elsewhere === undefined
        ? near && `; did you mean "${near}"?`
        : `; it is in namespace "${elsewhere}": add -n ${elsewhere}`;
    throw new ApiStatusError(
      404,
      `${resourceId({ ...resource, plural: resource.name })} "${name}" not found${hint ?? ""}`,
    );
  }

  async json<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const response = await askKubelet({ url: "http://kubelet", socketPath: this.#socketPath }, path, {
      limitMs: RESPONSE_TIMEOUT_MS,
      method,
      headers: { ...(body !== undefined && { "Content-Type": "application/json" }), ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await readBoundedStream(response.body, MAX_RESPONSE_BYTES);
    if (!response.ok) throw toStatusError(response.status, text);
    for (const warning of parseWarnings(response.headers.get("Warning") ?? "")) this.warn(warning);
    return JSON.parse(text) as T;
  }

  /** Server-side apply in which the manifest wins over every other manager of a field. */
  applyObject(path: string, object: object, query: URLSearchParams): Promise<ApiObject> {
    const parameters = new URLSearchParams(query);
    parameters.set("fieldManager", FIELD_MANAGER);
    parameters.set("force", "true");
    const headers = { "Content-Type": "application/apply-patch+yaml" };
    return this.json<ApiObject>("PATCH", `${path}?${parameters}`, object, headers);
  }

  /** A warning, as kubectl prints those of answers. */
  warn(message: string): void {
    terminalIo.stderr(`Warning: ${message}\n`);
  }
}

/** The node's name at the end of a pod's may be left out. */
export const isNamed = ({ metadata, spec }: ApiObject, name: string): boolean =>
  metadata.name === name || metadata.name === `${name}-${(spec as { nodeName?: string } | undefined)?.nodeName}`;

/** Texts of a Warning header: `299 - "text", 299 - "text"`. Source: RFC 7234, 5.5. */
export const parseWarnings = (header: string): string[] =>
  Array.from(header.matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g), ([, text = ""]) => text.replace(/\\(.)/g, "$1"));

function toStatusError(code: number, text: string): ApiStatusError {
  try {
    const { reason = "", message = "" } = JSON.parse(text) as { reason?: string; message?: string };
    return new ApiStatusError(code, message || reason || `the local API answered ${code}`);
  } catch {
    return new ApiStatusError(code, `the local API answered ${code}: ${text.trim().slice(0, 200)}`);
  }
}
