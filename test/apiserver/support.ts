import type { ApiObject } from "../../src/apiserver/api-object.ts";
import { keyOf } from "../../src/apiserver/api-object.ts";
import type { ApiRequest, ApiResponse, Role } from "../../src/apiserver/api-request.ts";
import { ApiServer, type ExtraRoute } from "../../src/apiserver/api-server.ts";
import { buildRegistry } from "../../src/apiserver/kinds/served-kinds.ts";
import { answerNonResource } from "../../src/apiserver/non-resource-paths.ts";
import { ObjectDeleter } from "../../src/apiserver/object-deleter.ts";
import { type EventWindow, ObjectStore } from "../../src/apiserver/object-store.ts";
import { ObjectWriter } from "../../src/apiserver/object-writer.ts";
import { ALL_VERBS, type ResourceDefinition, ResourceRegistry } from "../../src/apiserver/resource-definition.ts";
import { RevisionClock, type RevisionMark } from "../../src/apiserver/revision-clock.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { FakeClock } from "../support/fake-clock.ts";

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
  storage: "file",
};

export interface Sent {
  method?: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  role?: Role;
  signal?: AbortSignal;
}

/** A mark of revisions that lives as long as the test. */
export function memoryMark(): RevisionMark {
  let mark: number | undefined;
  return {
    read: () => mark,
    write: (value) => {
      mark = value;
    },
  };
}

/** An API server over memory, with what its storage received. */
export function anApiServer(
  options: { extras?: readonly ExtraRoute[]; window?: EventWindow; alsoServed?: string } = {},
) {
  const clock = new FakeClock();
  const store = new ObjectStore(new RevisionClock(memoryMark()), options.window);
  const read = (bytes: Uint8Array) =>
    readManifest(bytes, { file: "request", nodeName: "node1", source: "api", strictness: "warn" });
  const registry = new ResourceRegistry([
    ...buildRegistry(read)
      .all()
      .filter(({ group, plural }) => group === "" || options.alsoServed === plural),
    DEPLOYMENTS,
  ]);
  const files = new Map<string, ApiObject>();
  const fault: { error: Error | undefined } = { error: undefined };
  const storage = {
    save: (definition: ResourceDefinition, object: ApiObject) => {
      if (fault.error) throw fault.error;
      files.set(`${definition.plural}:${keyOf(object)}`, object);
    },
    remove: (definition: ResourceDefinition, object: ApiObject) =>
      void files.delete(`${definition.plural}:${keyOf(object)}`),
  };
  let uids = 0;
  const foreign = new Map<string, string>();
  const terminating: string[] = [];
  /** Claims and PersistentVolumes, as `namespace/name`. */
  const inUse = new Set<string>();
  const writer: ObjectWriter = new ObjectWriter({
    store,
    storage,
    clock,
    newUid: () => `uid-${++uids}`,
    random: () => 0,
    refusalOf: (_, object) => foreign.get(keyOf(object)),
    onUnfinalized: (definition, object) => deleter.unfinalized(definition, object),
  });
  const deleter: ObjectDeleter = new ObjectDeleter({
    store,
    registry,
    writer,
    storage,
    clock,
    isInUse: (_, object) => inUse.has(keyOf(object)),
    onTerminating: (_, object, grace) => void terminating.push(`${keyOf(object)} ${grace}`),
  });
  const version = {
    major: "1",
    minor: "34",
    gitVersion: "v1.34.0",
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "",
    goVersion: "",
    compiler: "",
    platform: "linux/amd64",
  };
  const errors: string[] = [];
  const server = new ApiServer({
    registry,
    store,
    writer,
    deleter,
    clock,
    random: () => 0,
    extras: options.extras ?? [],
    otherPaths: (request, served) =>
      answerNonResource(request, served, {
        version,
        serverAddress: () => "127.0.0.1:6443",
        healthChecks: () => [{ name: "ping", ok: true, message: "" }],
      }),
    onError: (message) => void errors.push(message),
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
      user: { name: role, groups: [], role },
      signal: signal ?? new AbortController().signal,
      upgrade: "",
    };
  };
  const send = (sent: Sent): Promise<ApiResponse> => server.answer(toRequest(sent));
  const call = async (sent: Sent) => {
    const answer = await send(sent);
    if (!("body" in answer)) throw new Error("the answer is streamed");
    const text = typeof answer.body === "string" ? answer.body : Buffer.from(answer.body).toString();
    const isJson = answer.headers["Content-Type"]?.startsWith("application/json");
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every kind.
      json: (isJson ? JSON.parse(text) : undefined) as any,
    };
  };
  return {
    server,
    store,
    registry,
    writer,
    deleter,
    files,
    fault,
    foreign,
    terminating,
    inUse,
    errors,
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
export function linesOf(answer: ApiResponse) {
  if (!("chunks" in answer)) throw new Error("the answer is not streamed");
  const iterator = answer.chunks[Symbol.asyncIterator]();
  return {
    next: async () => {
      const { value, done } = await iterator.next();
      // biome-ignore lint/suspicious/noExplicitAny: tests read events of every kind.
      return (done ? undefined : JSON.parse(String(value))) as any;
    },
    end: () => iterator.return?.(undefined),
  };
}
