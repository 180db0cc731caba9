import type { Pod } from "../../base/api/pod.ts";
import { findContainer } from "../../base/model/pod-containers.ts";
import { findRunningContainer } from "../../plan/status/log-container.ts";
import { type PodStreams, parseLogQuery, type StreamRefusal } from "../../server/pod-streams.ts";
import { badRequest, internalError, notFound } from "../api-error.ts";
import type { ApiRequest, ApiResponse } from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import type { LocalApi } from "../node/local-api.ts";
import type { RequestInfo } from "../request-info.ts";

interface PodRoutesDeps {
  api: Pick<LocalApi, "store" | "refreshPods">;
  streams: PodStreams;
}

const PODS = { group: "", plural: "pods" };
const CONTAINER_ANNOTATION = "kubectl.kubernetes.io/default-container";

/** `log`, `exec`, `attach` and `portforward` of pods. */
export function podRoutes(deps: PodRoutesDeps): ExtraRoute[] {
  const route = (
    subresource: string,
    verbs: readonly string[],
    handle: (request: ApiRequest, pod: Pod) => ApiResponse | Promise<ApiResponse>,
  ): ExtraRoute => ({
    group: "",
    version: "v1",
    name: `pods/${subresource}`,
    kind:
      subresource === "log"
        ? "Pod"
        : `Pod${subresource === "portforward" ? "PortForward" : capitalize(subresource)}Options`,
    namespaced: true,
    verbs,
    handle: async (request, info) => handle(request, await findPod(deps, info)),
  });
  const streaming = ["create", "get"];
  return [
    route("log", ["get"], (request, pod) => log(request, pod, deps)),
    route("exec", streaming, (request, pod) => command("exec", request, pod, deps)),
    route("attach", streaming, (request, pod) => command("attach", request, pod, deps)),
    route("portforward", streaming, (request, pod) => orRefuse(deps.streams.portForward(pod, request, request.user))),
  ];
}

const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

async function findPod({ api }: PodRoutesDeps, { namespace, name }: RequestInfo): Promise<Pod> {
  await api.refreshPods();
  const pod = api.store.get("pods", namespace, name);
  if (!pod) throw notFound(PODS, name);
  return pod as unknown as Pod;
}

/** The container a request means. Source: kubelet's and apiserver's `LogLocation`. */
function containerOf({ metadata, spec }: Pod, query: URLSearchParams): string {
  const name = query.get("container") || metadata.annotations?.[CONTAINER_ANNOTATION] || "";
  if (name === "") {
    if (spec.containers.length === 1) return spec.containers[0]!.name;
    const names = spec.containers.map((container) => container.name).join(" ");
    throw badRequest(`a container name must be specified for pod ${metadata.name}, choose one of: [${names}]`);
  }
  if (findContainer(spec, name)) return name;
  throw badRequest(`container ${name} is not valid for pod ${metadata.name}`);
}

async function log(request: ApiRequest, pod: Pod, { streams }: PodRoutesDeps): Promise<ApiResponse> {
  const query = parseLogQuery(request.query);
  if ("problem" in query) throw badRequest("the query of the log is not valid");
  const found = await streams.log(pod, containerOf(pod, request.query), query, request.signal).catch((error: Error) => {
    throw internalError(error.message);
  });
  if ("problem" in found) throw badRequest(found.problem);
  return { status: 200, headers: { "Content-Type": "text/plain" }, chunks: found.chunks };
}

function command(what: "exec" | "attach", request: ApiRequest, pod: Pod, { streams }: PodRoutesDeps): ApiResponse {
  const container = containerOf(pod, request.query);
  if (what === "exec" && !request.query.has("command")) throw badRequest("you must specify at least one command");
  if (!findRunningContainer(pod, container)) {
    throw badRequest(`container ${container} of pod ${pod.metadata.name} is not running`);
  }
  return orRefuse(streams.command(what, pod, container, request, request.user));
}

function orRefuse<T extends object>(response: T | StreamRefusal): T {
  if ("problem" in response) throw badRequest(response.problem);
  return response;
}
