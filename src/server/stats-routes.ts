import type { CadvisorApi, StatsQuery } from "../cadvisor/cadvisor-api.ts";
import { type Answer, indentedJsonAnswer, type RouteRequest, textAnswer } from "./answer.ts";

/** What can be asked of cAdvisor's version 1 resources. Source: cAdvisor's `ContainerInfoRequest`, kubelet's `StatsRequest`. */
export interface ContainerQuery extends StatsQuery {
  /** Cgroup path. */
  containerName: string;
  /** Those below it too. */
  subcontainers: boolean;
}

/** Paths below `/stats` beside the summary. */
export function isStatsResource(path: string): boolean {
  const parts = statsParts(path);
  return parts !== undefined && [0, 2, 4].includes(parts.length === 1 && parts[0] === "container" ? 0 : parts.length);
}

/** `/stats/`, `/stats/container`, `/stats/<pod>/<container>` and `/stats/<namespace>/<pod>/<uid>/<container>` (oracle 90, 94). */
export function statsAnswer(path: string, request: RouteRequest, cadvisor: CadvisorApi): Answer {
  const parts = statsParts(path) ?? [];
  const query = parseQuery(request.query);
  if (parts.length === 0) return found(cadvisor.container("/", query));
  if (parts.length === 1) {
    const { containerName, subcontainers } = query;
    const infos = subcontainers
      ? cadvisor.containers(containerName, query)
      : [cadvisor.container(containerName, query)].filter((info) => info !== undefined);
    return infos.length === 0
      ? found(undefined)
      : indentedJsonAnswer(Object.fromEntries(infos.map((i) => [i.name, i])));
  }
  const [namespace = "", pod = "", container = ""] =
    parts.length === 2 ? ["default", ...parts] : [parts[0]!, parts[1]!, parts[3]!];
  return found(cadvisor.kubeletContainer({ namespace, pod, container }, query));
}

/** GET carries in the query what clients post: `num_stats`, `containerName`, `subcontainers`. */
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
  info ? indentedJsonAnswer(info) : textAnswer(404, "no matching container");
