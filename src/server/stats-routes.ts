import type { WorkLane } from "../base/concurrency/work-lane.ts";
import type { CadvisorApi, StatsQuery } from "../stats/cadvisor/cadvisor-api.ts";
import type { ContainerInfo } from "../stats/cadvisor/container-info.ts";
import {
  type HttpResponse,
  indentedJsonResponse,
  jsonResponse,
  type RouteRequest,
  textResponse,
} from "./http-response.ts";

/** Parameters of cAdvisor's version 1 resources. Source: cAdvisor's `ContainerInfoRequest`, kubelet's `StatsRequest`. */
interface ContainerQuery extends StatsQuery {
  /** Cgroup path. */
  containerName: string;
  /** Includes all cgroups below it. */
  subcontainers: boolean;
}

/** Whether a path is below `/stats` and is not the summary. */
export function isStatsResource(path: string): boolean {
  const parts = statsParts(path);
  return parts !== undefined && [0, 2, 4].includes(parts.length === 1 && parts[0] === "container" ? 0 : parts.length);
}

/** `/stats/`, `/stats/container`, `/stats/<pod>/<container>` and `/stats/<namespace>/<pod>/<uid>/<container>`. */
export async function statsResponse(
  path: string,
  request: RouteRequest,
  cadvisor: CadvisorApi,
  lane: WorkLane,
  stop: AbortSignal,
): Promise<HttpResponse> {
  const parts = statsParts(path) ?? [];
  const query = parseQuery(request.query);
  if (parts.length === 0) return lane.run(() => found(cadvisor.container("/", query)));
  if (parts.length === 1) {
    const { containerName, subcontainers } = query;
    if (subcontainers) {
      const entries = await lane.collect(jsonEntries(cadvisor.containers(containerName, query)), stop);
      return entries.length === 0 ? found(undefined) : jsonResponse(`{\n${entries.join(",\n")}\n}`);
    }
    return lane.run(() => {
      const info = cadvisor.container(containerName, query);
      return found(info && { [info.name]: info });
    });
  }
  const [namespace = "", pod = "", container = ""] =
    parts.length === 2 ? ["default", ...parts] : [parts[0]!, parts[1]!, parts[3]!];
  return lane.run(() => found(cadvisor.kubeletContainer({ namespace, pod, container }, query)));
}

/** Members of an object by name, indented by one space as `JSON.stringify(…, null, 1)` does it. */
function* jsonEntries(infos: Iterable<ContainerInfo>): Generator<string, void> {
  for (const info of infos) {
    yield ` ${JSON.stringify(info.name)}: ${JSON.stringify(info, null, 1).replaceAll("\n", "\n ")}`;
  }
}

/** A GET has in its query what clients post: `num_stats`, `containerName`, `subcontainers`. */
export function parseQuery(query: URLSearchParams): ContainerQuery {
  return {
    numStats: Number(query.get("num_stats") ?? query.get("count") ?? 0) || 0,
    containerName: query.get("containerName") || "/",
    subcontainers: query.get("subcontainers") === "true",
  };
}

/** Parts below `/stats`; undefined for another path. A trailing slash does not count. */
function statsParts(path: string): string[] | undefined {
  const [, root, ...parts] = path.split("/");
  if (root !== "stats") return undefined;
  if (parts.at(-1) === "") parts.pop();
  return parts.includes("") ? undefined : parts;
}

const found = (info: object | undefined) =>
  info ? indentedJsonResponse(info) : textResponse(404, "no matching container");

/** The parameters that change the response, as the key under which it is shared. */
export function questionOf(path: string, query: ContainerQuery): string {
  const numStats = Math.max(0, Math.min(query.numStats, 2));
  return JSON.stringify([path, query.containerName, query.subcontainers, numStats]);
}
