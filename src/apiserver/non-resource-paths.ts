import type { HealthCheck } from "../base/model/health-check.ts";
import { textResponse } from "../server/http-response.ts";
import { notAcceptable } from "./api-error.ts";
import { type ApiRequest, type ApiResponse, json } from "./api-request.ts";
import {
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  type ServedResources,
} from "./discovery.ts";
import { parseMediaTypes } from "./media-type.ts";

/** Source: version `Info`. */
export interface VersionInfo {
  major: string;
  minor: string;
  gitVersion: string;
  gitCommit: string;
  gitTreeState: string;
  buildDate: string;
  goVersion: string;
  compiler: string;
  platform: string;
}

interface NonResourceDeps {
  version: VersionInfo;
  /** `host:port` that clients reach. */
  serverAddress: () => string;
  healthChecks: () => readonly HealthCheck[];
  /** `/openapi/…`; undefined: not one of its paths. */
  openApi?: (
    request: ApiRequest,
    served: ServedResources,
  ) => ApiResponse | undefined | Promise<ApiResponse | undefined>;
}

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
  const root = HEALTH_ROOTS.find((it) => path === it || path.startsWith(`${it}/`));
  if (root !== undefined)
    return healthResponse(path.slice(root.length + 1), request.query, deps.healthChecks(), root.slice(1));
  if (path === "/") return json(200, { paths: rootPaths(served) });
  if (path.startsWith("/openapi/")) return deps.openApi?.(request, served);
  return discovery(path, request, served, deps);
}

function discovery(
  path: string,
  request: ApiRequest,
  served: ServedResources,
  deps: NonResourceDeps,
): ApiResponse | undefined {
  const found = (object: object | undefined) => object && json(200, object);
  if (path === "/api" || path === "/apis") {
    const aggregated = wantsAggregated(request.header("Accept"));
    if (aggregated === "unserved") throw notAcceptable();
    if (aggregated) {
      const type = `application/json;g=apidiscovery.k8s.io;v=${aggregated};as=APIGroupDiscoveryList`;
      return json(200, aggregatedDiscovery(served, path === "/api", aggregated), { "Content-Type": type });
    }
    return json(200, path === "/api" ? apiVersions(deps.serverAddress()) : apiGroupList(served));
  }
  const [, root, first = "", second, ...rest] = path.split("/");
  if (rest.length > 0) return undefined;
  if (root === "api" && second === undefined) return found(apiResourceList("", first, served));
  if (root !== "apis") return undefined;
  return found(second === undefined ? apiGroup(first, served) : apiResourceList(first, second, served));
}

/** The version of aggregated discovery that comes first in `Accept`, if it comes before plain JSON. */
function wantsAggregated(accept: string | null): "v2" | "v2beta1" | "unserved" | undefined {
  const wanted = parseMediaTypes(accept ?? "");
  for (const { type, parameters } of wanted) {
    if (type !== "application/json" && type !== "*/*") continue;
    if (parameters.as === undefined) return undefined;
    const isKnown = parameters.as === "APIGroupDiscoveryList" && parameters.g === "apidiscovery.k8s.io";
    if (isKnown && (parameters.v === "v2" || parameters.v === "v2beta1")) return parameters.v;
  }
  return wanted.length === 0 ? undefined : "unserved";
}

function rootPaths(served: ServedResources): string[] {
  const groups = (apiGroupList(served) as { groups: { name: string; versions: { groupVersion: string }[] }[] }).groups;
  const paths = groups.flatMap(({ name, versions }) => [
    `/apis/${name}`,
    ...versions.map(({ groupVersion }) => `/apis/${groupVersion}`),
  ]);
  return [
    "/api",
    "/api/v1",
    "/apis",
    ...paths,
    "/healthz",
    "/livez",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
  ];
}

/** Source: apiserver's `healthz` package. */
function healthResponse(
  name: string,
  query: URLSearchParams,
  all: readonly HealthCheck[],
  root: string,
): ApiResponse | undefined {
  const excluded = query.getAll("exclude");
  const checks =
    name === "" ? all.filter((check) => !excluded.includes(check.name)) : all.filter((check) => check.name === name);
  if (checks.length === 0 && name !== "") return undefined;
  const isOk = checks.every(({ ok }) => ok);
  const lines = checks.map((check) =>
    check.ok ? `[+]${check.name} ok` : `[-]${check.name} failed: ${check.message || "reason withheld"}`,
  );
  const isShort = isOk && !query.has("verbose");
  const body = isShort ? "ok" : `${lines.join("\n")}\n${root} check ${isOk ? "passed" : "failed"}\n`;
  return textResponse(isOk ? 200 : 500, body, { "X-Content-Type-Options": "nosniff" });
}
