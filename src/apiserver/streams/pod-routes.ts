import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { ContainerAccess, ProcessSession, StreamSelection } from "../../base/model/container-access.ts";
import type { Logger } from "../../base/model/logger.ts";
import { findContainer } from "../../base/model/pod-containers.ts";
import type { DialPod, PodAddress } from "../../base/model/pod-dialer.ts";
import { findLogContainer, findRunningContainer } from "../../plan/status/log-container.ts";
import { parseLogQuery, parseStreamQuery } from "../../server/stream-query.ts";
import { commandResponse, portForwardResponse } from "../../server/stream-responses.ts";
import type { KubeletView } from "../../server/view.ts";
import { badRequest, internalError, notFound } from "../api-error.ts";
import type { ApiRequest, ApiResponse } from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import type { LocalApi } from "../node/local-api.ts";
import type { RequestInfo } from "../request-info.ts";

interface PodRoutesDeps {
  api: Pick<LocalApi, "store" | "refreshPods">;
  containers: ContainerAccess;
  dialPod: DialPod;
  view: KubeletView;
  clock: Clock;
  logger: Logger;
  /** 0 = never. */
  idleTimeoutMs: number;
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
    route("portforward", streaming, (request, pod) => portForward(request, pod, deps)),
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

async function log(request: ApiRequest, pod: Pod, { containers, clock }: PodRoutesDeps): Promise<ApiResponse> {
  const parsed = parseLogQuery(request.query);
  if (!("value" in parsed)) throw badRequest("the query of the log is not valid");
  const { previous, sinceSeconds, sinceTime, ...selection } = parsed.value;
  const target = findLogContainer(pod, containerOf(pod, request.query), previous);
  if ("problem" in target) throw badRequest(target.problem);
  const since = sinceSeconds === undefined ? sinceTime : new Date(clock.now().getTime() - sinceSeconds * 1000);
  try {
    const chunks = await containers.logs(target.id, { ...selection, ...(since && { since }) }, request.signal);
    return { status: 200, headers: { "Content-Type": "text/plain" }, chunks };
  } catch (error) {
    throw internalError((error as Error).message);
  }
}

function command(what: "exec" | "attach", request: ApiRequest, pod: Pod, deps: PodRoutesDeps): ApiResponse {
  const { containers, clock, idleTimeoutMs } = deps;
  const parsed = parseStreamQuery(request.query);
  if (!("value" in parsed)) throw badRequest(parsed.problem);
  const container = containerOf(pod, request.query);
  const target = findRunningContainer(pod, container);
  if (!target) throw badRequest(`container ${container} of pod ${pod.metadata.name} is not running`);
  const argv = request.query.getAll("command");
  if (what === "exec" && argv.length === 0) throw badRequest("you must specify at least one command");
  let streams: StreamSelection = parsed.value;
  let open: () => Promise<ProcessSession>;
  if (what === "exec") open = () => containers.exec(target.id, argv, streams);
  else {
    // The container determines whether there is a terminal; the client cannot.
    const tty = findContainer(pod.spec, container)?.tty ?? false;
    streams = { ...streams, tty, stderr: streams.stderr && !tty };
    open = () => containers.attach(target.id, streams);
  }
  const response = commandResponse(request, { streams, open, clock, idleTimeoutMs });
  if ("problem" in response) throw badRequest(response.problem);
  note(what, pod, container, request, deps);
  return response;
}

function portForward(request: ApiRequest, pod: Pod, deps: PodRoutesDeps): ApiResponse {
  const { clock, idleTimeoutMs, dialPod, view } = deps;
  const address = addressOf(pod, view);
  const podName = `${pod.metadata.namespace}/${pod.metadata.name}`;
  if (!address) throw badRequest(`pod ${podName} has no address: its sandbox does not run`);
  const response = portForwardResponse(request, {
    dial: (port, signal) => dialPod(address, port, signal),
    pod: podName,
    clock,
    idleTimeoutMs,
  });
  if ("problem" in response) throw badRequest(response.problem);
  note("portforward", pod, "", request, deps);
  return response;
}

/** undefined: its sandbox does not run. */
function addressOf({ metadata, status }: Pod, view: KubeletView): PodAddress | undefined {
  const facts = view.podFacts().find(({ uid }) => uid === metadata.uid);
  if (!facts || !status?.podIP) return undefined;
  const { hostNetwork, sandbox } = facts;
  return { ip: status.podIP, hostNetwork, sandboxId: sandbox.id, sandboxPid: sandbox.pid };
}

/** Logs which user accessed which container; never the command, which may hold a secret. */
function note(
  what: string,
  { metadata }: Pod,
  container: string,
  { user }: ApiRequest,
  { logger }: PodRoutesDeps,
): void {
  const pod = `${metadata.namespace}/${metadata.name}`;
  logger.info("A client reaches into a pod", {
    request: what,
    user: user.name,
    pod,
    container: container || undefined,
  });
}
