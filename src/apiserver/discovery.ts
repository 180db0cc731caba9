import type { HealthCheck } from "../base/model/health-check.ts";
import { textResponse } from "../server/request-handler.ts";
import { type ApiRequest, type ApiResponse, json } from "./api-request.ts";
import { apiVersionOf, type ResourceDefinition } from "./resource-definition.ts";

interface NonResourceDeps {
  /** Source: version `Info`. */
  version: object;
  /** `host:port` that clients reach. */
  serverAddress: () => string;
  healthChecks: () => readonly HealthCheck[];
  /** `/metrics`. */
  metrics?: (request: ApiRequest) => ApiResponse | Promise<ApiResponse>;
  /** `/openapi/…`; undefined: not one of its paths. */
  openApi?: (
    request: ApiRequest,
    served: ServedResources,
  ) => ApiResponse | undefined | Promise<ApiResponse | undefined>;
}

const STATIC_PATHS = ["/api", "/api/v1", "/apis", "/metrics", "/openapi/v2", "/openapi/v3", "/version"];
const HEALTH_ROOTS = ["/healthz", "/livez", "/readyz"];

/** Paths that name no resource: versions, health, discovery, OpenAPI. @returns undefined for all others */
export function nonResourceResponse(
  request: ApiRequest,
  served: ServedResources,
  deps: NonResourceDeps,
): ApiResponse | undefined | Promise<ApiResponse | undefined> {
  if (request.method !== "GET" && request.method !== "HEAD") return undefined;
  const path = request.path.length > 1 ? request.path.replace(/\/$/, "") : request.path;
  if (path === "/version") return json(200, deps.version);
  if (path === "/metrics") return deps.metrics?.(request);
  const root = HEALTH_ROOTS.find((it) => path === it || path.startsWith(`${it}/`));
  if (root !== undefined)
    return healthResponse(path.slice(root.length + 1), request, deps.healthChecks(), root.slice(1));
  if (path === "/") return json(200, { paths: rootPaths(served) });
  if (path.startsWith("/openapi/")) return deps.openApi?.(request, served);
  return discovery(path, served, deps);
}

/** Clients that ask for aggregated discovery get the plain lists: it would save 50 ms of a first call. */
function discovery(path: string, served: ServedResources, deps: NonResourceDeps): ApiResponse | undefined {
  const found = (object: object | undefined) => object && json(200, object);
  if (path === "/apis") return json(200, { kind: "APIGroupList", apiVersion: "v1", groups: groupsOf(served) });
  if (path === "/api") {
    // Source: meta/v1 `APIVersions`.
    const serverAddressByClientCIDRs = [{ clientCIDR: "0.0.0.0/0", serverAddress: deps.serverAddress() }];
    return json(200, { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs });
  }
  const [, root, first = "", second, ...rest] = path.split("/");
  if (rest.length > 0) return undefined;
  if (root === "api" && second === undefined) return found(apiResourceList("", first, served));
  if (root !== "apis") return undefined;
  return found(second === undefined ? apiGroup(first, served) : apiResourceList(first, second, served));
}

function rootPaths(served: ServedResources): string[] {
  const paths = groupsOf(served).flatMap(({ name, versions }) => [
    `/apis/${name}`,
    ...versions.map(({ groupVersion }) => `/apis/${groupVersion}`),
  ]);
  return [...STATIC_PATHS, ...paths, ...HEALTH_ROOTS].sort();
}

/** Source: apiserver's `healthz` package. Reasons, which may name manifests, are for users that are known. */
function healthResponse(
  name: string,
  { query, user }: ApiRequest,
  all: readonly HealthCheck[],
  root: string,
): ApiResponse | undefined {
  const excluded = query.getAll("exclude");
  const checks =
    name === "" ? all.filter((check) => !excluded.includes(check.name)) : all.filter((check) => check.name === name);
  if (checks.length === 0 && name !== "") return undefined;
  const isOk = checks.every(({ ok }) => ok);
  const lines = checks.map(({ name: it, ok, message }) =>
    ok ? `[+]${it} ok` : `[-]${it} failed: ${(user.role && message) || "reason withheld"}`,
  );
  const isShort = isOk && !query.has("verbose");
  const body = isShort ? "ok" : `${lines.join("\n")}\n${root} check ${isOk ? "passed" : "failed"}\n`;
  return textResponse(isOk ? 200 : 500, body, { "X-Content-Type-Options": "nosniff" });
}

/** An entry of discovery that is not a kind of the registry: a review, or a subresource with its own handler. */
export interface ExtraResource {
  group: string;
  version: string;
  /** `selfsubjectreviews`, or `pods/log`. */
  name: string;
  kind: string;
  /** Group and version of its objects when these differ: `Scale` of `autoscaling/v1`. */
  kindGroup?: string;
  kindVersion?: string;
  namespaced: boolean;
  verbs: readonly string[];
}

/** A kind as discovery lists it. */
export interface ApiResource {
  /** Plural: `pods`. */
  name: string;
  singularName: string;
  namespaced: boolean;
  group?: string;
  version?: string;
  kind: string;
  verbs: readonly string[];
  shortNames?: readonly string[];
  /** Groups of kinds: `all`. */
  categories?: readonly string[];
}

/** Everything that is served, for discovery. */
export interface ServedResources {
  definitions: readonly ResourceDefinition[];
  extras: readonly ExtraResource[];
}

/** Groups, all but the core, in the order in which kubectl looks for a short name. Source: meta/v1 `APIGroup`. */
function groupsOf({ definitions, extras }: ServedResources) {
  const groups = new Map<string, Set<string>>();
  const versionsOf = (group: string) => groups.getOrInsertComputed(group, () => new Set());
  for (const { group, version } of [...definitions, ...extras]) versionsOf(group).add(version);
  // kubectl before 1.22 evicts only where the group of evictions is listed; of a version without kinds newer ones complain.
  for (const { kindGroup = "" } of extras) versionsOf(kindGroup);
  groups.delete("");
  return [...groups].map(([name, all]) => {
    const versions = [...all].map((version) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions, preferredVersion: versions[0] ?? { groupVersion: `${name}/v1`, version: "v1" } };
  });
}

/** `/apis/<group>`; undefined when it is not served. */
function apiGroup(group: string, served: ServedResources): object | undefined {
  const found = groupsOf(served).find(({ name }) => name === group);
  return found && { kind: "APIGroup", apiVersion: "v1", ...found };
}

/** `/api/v1`, `/apis/<group>/<version>`; undefined when it is not served. */
function apiResourceList(group: string, version: string, served: ServedResources): object | undefined {
  const isOfGroup = (it: { group: string; version: string }) => it.group === group && it.version === version;
  const resources = [
    ...served.definitions.filter(isOfGroup).flatMap(toApiResources),
    ...served.extras.filter(isOfGroup).map(extraToApiResource),
  ];
  if (resources.length === 0) return undefined;
  return {
    kind: "APIResourceList",
    ...(group !== "" && { apiVersion: "v1" }),
    groupVersion: apiVersionOf({ group, version }),
    resources,
  };
}

function toApiResources(definition: ResourceDefinition): ApiResource[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories, subresources = [] } = definition;
  const { observedStatus } = definition;
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames && { shortNames }),
      ...(categories && { categories }),
    },
    ...subresources.map((name) => ({
      name: `${plural}/${name}`,
      singularName: "",
      namespaced,
      ...(name === "scale" ? { group: "autoscaling", version: "v1", kind: "Scale" } : { kind }),
      verbs: name === "status" && observedStatus ? ["get"] : ["get", "patch", "update"],
    })),
  ];
}

const extraToApiResource = ({ name, namespaced, kind, kindGroup, kindVersion, verbs }: ExtraResource): ApiResource => ({
  ...{ name, singularName: "", namespaced, kind, verbs },
  ...(kindGroup !== undefined && { group: kindGroup, version: kindVersion ?? "v1" }),
});
