import type { EngineRequest, EngineResponse } from "./engine-model.ts";
import { EventStream } from "./event-stream.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { VirtualTime } from "./virtual-time.ts";

// biome-ignore lint/suspicious/noExplicitAny: JSON of any kind
type Json = Record<string, any>;

/** An object as an API server keeps it. */
export interface ClusterObject extends Json {
  metadata: Json & { name: string; namespace?: string; uid: string; resourceVersion: string };
}

interface Watch {
  takes: (key: string, object: ClusterObject) => boolean;
  stream: EventStream;
  /** The connection is dead, and neither side knows. */
  isSilent: boolean;
}

interface Place {
  resource: string;
  namespace: string;
  name: string | undefined;
  subresource: string | undefined;
}

const MERGE_PATCH = "application/merge-patch+json";
/** Changes that a watch can begin from; after a restart and a compaction there are fewer. */
const CHANGES_KEPT = 60;
/** Time between two bookmarks of a watch. */
const BOOKMARK_MS = 60_000;
/** Lists that a strategic merge patch merges, with the key of their members. */
const MERGE_KEYS: Readonly<Record<string, string>> = { conditions: "type", addresses: "type", podIPs: "ip" };

/**
 * The API server of a cluster, as far as a node uses it (Kubernetes' API conventions; apiserver/pkg/storage/cacher): versions,
 * lists, watches that begin from a version and end, 404, 409, 410, patches, graceful deletion. It has a clock of its own.
 */
export class ApiServerModel {
  isUp = true;
  /** Changes of an object; undefined: it is gone. */
  onChange: (key: string, before: ClusterObject | undefined, now: ClusterObject | undefined) => void = () => {};
  /** Every request of the node, before it is answered. */
  onRequest: (request: EngineRequest, text: string) => void = () => {};
  requests = 0;
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #objects = new Map<string, ClusterObject>();
  readonly #watches = new Set<Watch>();
  readonly #events = new Set<string>();
  #changes: { version: number; type: string; key: string; object: ClusterObject }[] = [];
  #version = 1000;
  /** Difference between its clock and that of the node, when both began. */
  readonly #wallOffsetMs: number;
  /** Servers before 1.17 send no bookmarks. */
  readonly #hasBookmarks: boolean;

  constructor(time: VirtualTime, random: SeededRandom, hasBookmarks: boolean) {
    this.#time = time;
    this.#random = random;
    this.#hasBookmarks = hasBookmarks;
    this.#wallOffsetMs = time.wallOffsetMs + random.pick([0, -3_600_000, 45_000, 86_400_000]);
  }

  get(key: string): ClusterObject | undefined {
    return this.#objects.get(key);
  }

  all(resource: string): ClusterObject[] {
    return [...this.#objects].filter(([key]) => key.startsWith(`${resource}/`)).map(([, object]) => object);
  }

  // --- clients of the same cluster ---

  create(resource: string, object: Json): void {
    const { name, namespace = "" } = object.metadata as { name: string; namespace?: string };
    const uid = this.#random.uuid();
    const creationTimestamp = `${new Date(this.#time.nowMs + this.#wallOffsetMs).toISOString().slice(0, 19)}Z`;
    const metadata = { ...object.metadata, name, uid, creationTimestamp, resourceVersion: "" };
    this.#commit("ADDED", `${resource}/${namespace}/${name}`, { ...object, metadata });
  }

  update(key: string, change: Json): void {
    const object = this.#objects.get(key);
    if (object) this.#commit("MODIFIED", key, merge(object, change, false) as ClusterObject);
  }

  /** @param graceSeconds 0: it is gone at once; a shorter one than before counts. Source: rest.BeforeDelete */
  remove(key: string, graceSeconds: number): void {
    const object = this.#objects.get(key);
    if (!object) return;
    // The garbage collector removes the Lease of a Node.
    if (key.startsWith("nodes/")) this.remove(`leases/kube-node-lease/${object.metadata.name}`, 0);
    if (graceSeconds === 0) return this.#commit("DELETED", key, object);
    const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
    if (deletionTimestamp !== undefined && deletionGracePeriodSeconds <= graceSeconds) return;
    const wallMs = this.#time.nowMs + this.#wallOffsetMs + graceSeconds * 1000;
    const at = `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
    this.update(key, { metadata: { deletionTimestamp: at, deletionGracePeriodSeconds: graceSeconds } });
  }

  // --- its life ---

  /** It restarts, or is away: afterwards it knows no earlier versions. */
  setUp(isUp: boolean): void {
    this.isUp = isUp;
    this.compact();
    this.closeStreams();
  }

  /** Watches from earlier versions are refused. */
  compact(): void {
    this.#changes = [];
  }

  /** Those of dead connections stay open. */
  closeStreams(error?: Error): void {
    for (const { stream, isSilent } of this.#watches) if (!isSilent) stream.end(error);
    this.#watches.clear();
  }

  /** Connections die, and neither side is told. */
  silenceWatches(): void {
    for (const watch of this.#watches) watch.isSilent = true;
  }

  // --- the node ---

  handle(request: EngineRequest, respond: (response: EngineResponse) => void): void {
    const text = typeof request.body === "string" ? request.body : "";
    this.requests++;
    this.onRequest(request, text);
    const place = toPlace(request.path);
    if (!place) return respond(refuse(404, "NotFound", `no path ${request.path}`));
    const { method, query } = request;
    const body = text === "" ? {} : (JSON.parse(text) as Json);
    if (method === "GET" && query.has("watch")) return respond(this.#watch(place, query));
    if (method === "GET") return respond(this.#read(place, query));
    if (place.resource === "events") return respond(this.#noteEvent(method, place, body));
    if (place.subresource === "token") return respond(this.#issueToken(body));
    respond(this.#write(request, place, body));
  }

  #read({ resource, namespace, name }: Place, query: URLSearchParams): EngineResponse {
    if (name !== undefined) {
      const object = this.#objects.get(`${resource}/${namespace}/${name}`);
      return object ? { status: 200, json: object } : refuse(404, "NotFound", `${resource} "${name}" not found`);
    }
    const takes = toSelector(resource, namespace, query);
    const items = [...this.#objects].filter(([key, object]) => takes(key, object)).map(([, object]) => object);
    return { status: 200, json: { metadata: { resourceVersion: String(this.#version) }, items } };
  }

  #watch({ resource, namespace }: Place, query: URLSearchParams): EngineResponse {
    const from = Number(query.get("resourceVersion"));
    const oldest = this.#changes[0]?.version ?? this.#version + 1;
    const isExpired = from < oldest - 1;
    // Either form occurs. Source: the watch cache, and etcd below it.
    if (isExpired && this.#random.chance(0.5)) return refuse(410, "Expired", "too old resource version");
    const watch: Watch = {
      takes: toSelector(resource, namespace, query),
      stream: new EventStream(
        () => true,
        () => this.#watches.delete(watch),
      ),
      isSilent: false,
    };
    const { stream } = watch;
    if (isExpired) {
      stream.push(lineOf("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "too old" }));
      stream.end();
      return { status: 200, stream };
    }
    this.#watches.add(watch);
    for (const { version, type, key, object } of this.#changes)
      if (version > from && watch.takes(key, object)) stream.push(lineOf(type, object));
    this.#time.after(Number(query.get("timeoutSeconds")) * 1000, () => {
      if (this.#watches.delete(watch) && !watch.isSilent) stream.end();
    });
    if (this.#hasBookmarks) this.#bookmark(watch);
    return { status: 200, stream };
  }

  #bookmark(watch: Watch): void {
    this.#time.after(BOOKMARK_MS, () => {
      if (!this.#watches.has(watch) || watch.isSilent) return;
      watch.stream.push(lineOf("BOOKMARK", { metadata: { resourceVersion: String(this.#version) } }));
      this.#bookmark(watch);
    });
  }

  #write({ method, type }: EngineRequest, { resource, namespace, name, subresource }: Place, body: Json) {
    const key = `${resource}/${namespace}/${name ?? body.metadata?.name}`;
    const object = this.#objects.get(key);
    if (method === "POST") {
      if (object) return refuse(409, "AlreadyExists", `${key} already exists`);
      // Mirror pods may not refer to objects. Source: the admission plugin NodeRestriction.
      if (resource === "pods" && /"(secret|configMap)\w*":\{/.test(JSON.stringify(body.spec)))
        return refuse(403, "Forbidden", "a mirror pod must not refer to it");
      this.create(resource, { ...body, metadata: { ...body.metadata, ...(namespace !== "" && { namespace }) } });
      return { status: 201, json: this.#objects.get(key) };
    }
    if (!object) return refuse(404, "NotFound", `${key} not found`);
    const { uid, resourceVersion } = object.metadata;
    const asked = (method === "DELETE" ? body.preconditions : body.metadata) ?? {};
    const isOther = (asked.uid ?? uid) !== uid || (asked.resourceVersion ?? resourceVersion) !== resourceVersion;
    if (isOther) return refuse(409, "Conflict", `${key} is another one by now`);
    if (method === "DELETE") {
      this.remove(key, body.gracePeriodSeconds ?? 30);
      return { status: 200, json: object };
    }
    const next = method === "PUT" ? body : merge(object, body, type !== MERGE_PATCH);
    const whole = subresource === "status" ? { ...object, status: next.status } : { ...next, status: object.status };
    this.#commit("MODIFIED", key, { ...whole, metadata: subresource ? object.metadata : { ...next.metadata, uid } });
    return { status: 200, json: this.#objects.get(key) };
  }

  #noteEvent(method: string, { name }: Place, body: Json): EngineResponse {
    const known = name ?? (body.metadata?.name as string);
    if (method === "PATCH") return this.#events.has(known) ? { status: 200, json: {} } : refuse(404, "NotFound", known);
    if (this.#events.has(known)) return refuse(409, "AlreadyExists", known);
    this.#events.add(known);
    return { status: 201, json: body };
  }

  #issueToken({ spec }: Json): EngineResponse {
    const untilMs = this.#time.nowMs + this.#wallOffsetMs + spec.expirationSeconds * 1000;
    const status = { token: this.#random.hex(16), expirationTimestamp: new Date(untilMs).toISOString() };
    return { status: 201, json: { status } };
  }

  #commit(type: string, key: string, given: ClusterObject): void {
    const before = this.#objects.get(key);
    const object = { ...given, metadata: { ...given.metadata, resourceVersion: String(++this.#version) } };
    if (type === "DELETED") this.#objects.delete(key);
    else this.#objects.set(key, object);
    this.#changes = [...this.#changes.slice(1 - CHANGES_KEPT), { version: this.#version, type, key, object }];
    for (const { takes, stream, isSilent } of this.#watches)
      if (!isSilent && takes(key, object)) stream.push(lineOf(type, object));
    this.onChange(key, before, type === "DELETED" ? undefined : object);
  }
}

const lineOf = (type: string, object: Json) => `${JSON.stringify({ type, object })}\n`;

const refuse = (status: number, reason: string, message: string): EngineResponse => ({
  status,
  json: { kind: "Status", status: "Failure", code: status, reason, message },
});

function toPlace(path: string): Place | undefined {
  const found = /^\/(?:api|apis\/[^/]+)\/v1(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/([a-z]+))?$/.exec(
    path,
  );
  const [, namespace = "", resource, name, subresource] = found ?? [];
  return resource === undefined ? undefined : { namespace, resource, name, subresource };
}

function toSelector(resource: string, namespace: string, query: URLSearchParams) {
  const [field, value] = query.get("fieldSelector")?.split("=") ?? [];
  const start = `${resource}/${namespace === "" ? "" : `${namespace}/`}`;
  return (key: string, { metadata, spec }: ClusterObject): boolean =>
    key.startsWith(start) &&
    (field === undefined || (field === "metadata.name" ? metadata.name : spec?.nodeName) === value);
}

/** Source: RFC 7386, and the strategic merge patch of apimachinery. */
function merge(target: Json, patch: Json, isStrategic: boolean): Json {
  const result: Json = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    const key = isStrategic ? MERGE_KEYS[name] : undefined;
    if (value === null) delete result[name];
    else if (key !== undefined && Array.isArray(value)) result[name] = mergeLists(result[name] ?? [], value, key);
    else if (typeof value === "object" && !Array.isArray(value))
      result[name] = merge(result[name] ?? {}, value, isStrategic);
    else result[name] = value;
  }
  return result;
}

function mergeLists(before: readonly Json[], patch: readonly Json[], key: string): Json[] {
  if (patch.some(({ $patch }) => $patch === "replace")) return patch.filter(({ $patch }) => $patch === undefined);
  const members = new Map(before.map((one) => [one[key], one]));
  for (const one of patch) {
    if (one.$patch === "delete") members.delete(one[key]);
    else members.set(one[key], merge(members.get(one[key]) ?? {}, one, true));
  }
  return [...members.values()];
}
