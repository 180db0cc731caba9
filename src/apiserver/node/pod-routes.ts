import type { Pod } from "../../base/api/pod.ts";
import { findContainer } from "../../base/model/pod.ts";
import { findRunningContainer } from "../../plan/status/log-container.ts";
import { listOf } from "../../server/channel-protocol.ts";
import { type PodStreams, parseLogQuery, type StreamRefusal } from "../../server/pod-streams.ts";
import type { WebSocketConnection } from "../../server/websocket.ts";
import { badRequest, internalError } from "../api-error.ts";
import type { ApiRequest, ApiResponse } from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import type { LocalApi } from "./local-api.ts";

const CONTAINER_ANNOTATION = "kubectl.kubernetes.io/default-container";

/** `log`, `exec`, `attach` and `portforward` of pods. */
export function podRoutes(api: Pick<LocalApi, "find">, streams: PodStreams): ExtraRoute[] {
  const route = (
    subresource: string,
    kind: string,
    verbs: readonly string[],
    handle: (request: ApiRequest, pod: Pod) => ApiResponse | Promise<ApiResponse>,
  ): ExtraRoute => ({
    group: "",
    version: "v1",
    name: `pods/${subresource}`,
    kind,
    namespaced: true,
    verbs,
    handle: async (request, info) => handle(request, (await api.find("pods", info)) as unknown as Pod),
  });
  const command = (what: "exec" | "attach") => (request: ApiRequest, pod: Pod) => {
    const container = containerOf(pod, request.query);
    if (what === "exec" && !request.query.has("command")) throw badRequest("you must specify at least one command");
    if (!findRunningContainer(pod, container)) {
      const why = pod.status?.message ? `: the pod ${pod.status.message}` : "";
      throw badRequest(`container ${container} of pod ${pod.metadata.name} is not running${why}`);
    }
    return orRefuse(streams.command(what, pod, container, request, request.user));
  };
  const streaming = ["create", "get"];
  return [
    route("log", "Pod", ["get"], (request, pod) => log(request, pod, streams)),
    route("exec", "PodExecOptions", streaming, command("exec")),
    route("attach", "PodAttachOptions", streaming, command("attach")),
    route("portforward", "PodPortForwardOptions", streaming, (request, pod) =>
      orRefuse(streams.portForward(pod, request, request.user)),
    ),
  ];
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

const BASE64 = "base64.binary.k8s.io";

async function log(request: ApiRequest, pod: Pod, streams: PodStreams): Promise<ApiResponse> {
  const query = parseLogQuery(request.query);
  if ("problem" in query) throw badRequest("the query of the log is not valid");
  const container = containerOf(pod, request.query);
  const open = async (signal: AbortSignal) => {
    const found = await streams.log(pod, container, query, signal).catch((error: Error) => {
      throw internalError(error.message);
    });
    return orRefuse(found).chunks;
  };
  if (request.upgrade !== "websocket")
    return { status: 200, headers: { "Content-Type": "text/plain" }, chunks: await open(request.signal) };
  // Its pieces are messages. Source: apimachinery's `wsstream.Reader`.
  const offered = listOf(request.header("Sec-WebSocket-Protocol"));
  const protocol = offered.find((name) => name === "binary.k8s.io" || name === BASE64);
  const run = async (socket: WebSocketConnection) => {
    try {
      for await (const chunk of await open(socket.gone)) {
        const data = Buffer.from(chunk);
        await (protocol === BASE64 ? socket.send(Buffer.from(data.toString("base64")), "text") : socket.send(data));
      }
    } catch (error) {
      if (!socket.gone.aborted) throw error;
    }
    socket.close();
  };
  return { protocol, run };
}

function orRefuse<T extends object>(response: T | StreamRefusal): T {
  if ("problem" in response) throw badRequest(response.problem);
  return response;
}
