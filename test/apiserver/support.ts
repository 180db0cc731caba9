import type { ApiRequest, ApiResponse, ApiUser, Role } from "../../src/apiserver/api-request.ts";
import { ApiServer, type ExtraRoute } from "../../src/apiserver/api-server.ts";
import { nonResourceResponse } from "../../src/apiserver/discovery.ts";
import { buildRegistry } from "../../src/apiserver/kinds/served-kinds.ts";
import { ObjectDeleter } from "../../src/apiserver/object-deleter.ts";
import {
  type ApiObject,
  type EventWindow,
  keyOf,
  ObjectStore,
  RevisionClock,
} from "../../src/apiserver/object-store.ts";
import {
  type ObjectRules,
  type ObjectStorage,
  ObjectWriter,
  PendingStores,
} from "../../src/apiserver/object-writer.ts";
import { ALL_VERBS, type ResourceDefinition, ResourceRegistry } from "../../src/apiserver/resource-definition.ts";
import type { HealthCheck } from "../../src/base/model/health-check.ts";
import type { Persisted } from "../../src/base/model/persisted.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

/** A workload with status and scale, as src/controllers registers them. */
const DEPLOYMENTS: ResourceDefinition = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  plural: "deployments",
  singular: "deployment",
  shortNames: ["deploy"],
  namespaced: true,
  verbs: ALL_VERBS,
  columns: [],
  subresources: ["status", "scale"],
  fate: "objects",
};

export const READ_OPTIONS = { nodeName: "node1", allowPrivileged: true };

export interface Sent {
  method?: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** "admin" unless named. */
  role?: Role | "anonymous";
  signal?: AbortSignal;
}

const toUser = (role: Role | "anonymous"): ApiUser => ({
  name: role,
  groups: [],
  role: role === "anonymous" ? undefined : role,
});

/** A mark of revisions that lives as long as the test. */
export function memoryMark<T = number>(): Persisted<T> {
  let mark: T | undefined;
  return {
    read: () => mark,
    write: (value) => {
      mark = value;
    },
  };
}

/** An API server over memory, with what its storage received. */
export function anApiServer(
  options: {
    extras?: readonly ExtraRoute[];
    window?: EventWindow;
    alsoServed?: string;
    assign?: ObjectRules["assign"];
    healthChecks?: readonly HealthCheck[];
  } = {},
) {
  const clock = new FakeClock();
  const store = new ObjectStore(new RevisionClock(memoryMark()), options.window);
  const registry = new ResourceRegistry([
    ...buildRegistry()
      .all()
      .filter(({ group, plural }) => group === "" || options.alsoServed === plural),
    DEPLOYMENTS,
  ]);
  const files = new Map<string, ApiObject>();
  const fault: { error: Error | undefined } = { error: undefined };
  const storage: ObjectStorage = {
    save: (definition, object) => {
      if (fault.error) throw fault.error;
      files.set(`${definition.plural}:${keyOf(object)}`, object);
    },
    remove: (definition, object) => void files.delete(`${definition.plural}:${keyOf(object)}`),
  };
  let uids = 0;
  const foreign = new Map<string, string>();
  /** Names of pods that a controller made, and those of them that were deleted. */
  const made = new Set<string>();
  const deletedMade: string[] = [];
  /** Claims and PersistentVolumes, as `namespace/name`. */
  const inUse = new Set<string>();
  const node: { isMadeKnown: boolean; doubt?: string } = { isMadeKnown: true };
  const rules: ObjectRules = {
    assign: options.assign ?? ((_, object) => object),
    refusalOf: (_, object) => foreign.get(keyOf(object)),
    relabelMade: (_, live, { metadata: { labels } }) =>
      ({ ...live, metadata: { ...live.metadata, labels } }) as ApiObject,
    writePod: (_, pod) => store.put("pods", pod),
    writeNode: (node) => storage.save(registry.get("nodes")!, node),
    isInUse: (_, object) => inUse.has(keyOf(object)),
    isMadeKnown: () => node.isMadeKnown,
    isMadeByController: (_, { metadata }) => made.has(metadata.name),
    deleteMade: async ({ metadata }) => !fault.error && deletedMade.push(metadata.name) > 0,
    removalOf: (_, object) => removals.get(keyOf(object)),
  };
  const removals = new Map<string, () => void>();
  const newUid = () => `uid-${++uids}`;
  const writer = new ObjectWriter({ store, storage, readOptions: READ_OPTIONS, clock, newUid, random: () => 0, rules });
  const storing = new PendingStores();
  const deleter = new ObjectDeleter({ store, registry, writer, storage, rules, clock, storing });
  writer.onUnfinalized = (definition, object) => {
    if (!definition.gracefulDeletion) deleter.finish(definition, object);
  };
  const version = { major: "1", minor: "34", gitVersion: "v1.34.0" };
  const server = new ApiServer({
    objects: { registry, store, writer, deleter, storing, refresh: async () => {}, prepareWrite: async () => {} },
    podDoubt: (gone) => (gone === undefined || gone.name === "left" ? node.doubt : undefined),
    clock,
    logger: new RecordingLogger(),
    random: () => 0,
    extras: options.extras ?? [],
    otherPaths: (request, served) =>
      nonResourceResponse(request, served, {
        version,
        serverAddress: () => "127.0.0.1:6443",
        healthChecks: () => options.healthChecks ?? [{ name: "ping", ok: true, message: "" }],
      }),
  });
  store.put("namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "default", uid: "ns" },
    status: { phase: "Active" },
  });

  const toRequest = ({ method = "GET", path, body, headers = {}, role = "admin", signal }: Sent): ApiRequest => {
    const url = new URL(path, "http://node1");
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    return {
      method,
      path: decodeURIComponent(url.pathname),
      query: url.searchParams,
      header: (name) => lower[name.toLowerCase()] ?? null,
      body: async () => Buffer.from(body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body)),
      user: toUser(role),
      signal: signal ?? new AbortController().signal,
      upgrade: "",
    };
  };
  const send = (sent: Sent): Promise<ApiResponse> =>
    server.respond(toRequest(sent), () => toUser(sent.role ?? "admin"));
  const call = async (sent: Sent) => {
    const response = await send(sent);
    if (!("body" in response)) throw new Error("the response is streamed");
    const text = typeof response.body === "string" ? response.body : Buffer.from(response.body).toString();
    const isJson = response.headers["Content-Type"]?.startsWith("application/json");
    return {
      status: response.status,
      headers: response.headers,
      text,
      // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every kind.
      json: (isJson ? JSON.parse(text) : undefined) as any,
    };
  };
  const get = (path: string, headers: Record<string, string> = {}) => call({ path, headers });
  const post = (path: string, body: unknown) => call({ method: "POST", path, body });
  const put = (path: string, body: unknown) => call({ method: "PUT", path, body });
  const patch = (path: string, body: unknown, type = "merge-patch+json", headers: Record<string, string> = {}) =>
    call({ method: "PATCH", path, body, headers: { "Content-Type": `application/${type}`, ...headers } });
  const remove = (path: string, body?: unknown) => call({ method: "DELETE", path, body });
  /** @param query begins with `&` */
  const watch = async (path: string, query = "", headers: Record<string, string> = {}) =>
    linesOf(await send({ path: `${path}?watch=true${query}`, headers }));
  /** Names of the objects of a list. */
  const names = async (path: string): Promise<string[]> =>
    (await get(path)).json.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  /** The kubelet has removed the last container of a pod. */
  const endPod = (namespace: string, name: string) =>
    deleter.finish(registry.get("pods")!, store.get("pods", namespace, name)!);
  return {
    get,
    post,
    put,
    patch,
    remove,
    names,
    watch,
    endPod,
    made,
    removals,
    deletedMade,
    node,
    store,
    registry,
    writer,
    deleter,
    storing,
    files,
    fault,
    foreign,
    inUse,
    clock,
    send,
    call,
  };
}

export const PODS = "/api/v1/namespaces/default/pods";
export const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
export const DEPLOYMENT_PATH = "/apis/apps/v1/namespaces/default/deployments";

export const aPod = (name: string, labels: Record<string, string> = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels },
  spec: { containers: [{ name: "app", image: "busybox:1.35" }] },
});

export const aConfigMap = (name: string, data: Record<string, string> = { a: "1" }) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data,
});

/** Lines of a stream. */
function linesOf(response: ApiResponse) {
  if (!("chunks" in response)) throw new Error("the response is not streamed");
  const iterator = response.chunks[Symbol.asyncIterator]();
  return {
    next: async () => {
      const { value, done } = await iterator.next();
      // biome-ignore lint/suspicious/noExplicitAny: tests read events of every kind.
      return (done ? undefined : JSON.parse(String(value))) as any;
    },
    end: () => iterator.return?.(undefined),
  };
}
