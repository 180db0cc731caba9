import type { Pod } from "../base/api/pod.ts";
import type { User } from "../base/model/access-review.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ContainerAccess, ProcessSession } from "../base/model/container-access.ts";
import type { Logger } from "../base/model/logger.ts";
import { findContainer } from "../base/model/pod-containers.ts";
import type { DialPod, PodAddress } from "../base/model/pod-dialer.ts";
import { findLogContainer, findRunningContainer } from "../plan/status/log-container.ts";
import {
  type HttpResponse,
  type ListenerResponse,
  methodNotAllowed,
  type RouteResponse,
  resourceNotFound,
  type ServerRequest,
  textResponse,
} from "./http-response.ts";
import { parseLogQuery, parseStreamQuery } from "./stream-query.ts";
import { commandResponse, portForwardResponse, type StreamRefusal } from "./stream-responses.ts";
import type { KubeletView } from "./view.ts";

/** Everything that the routes to containers use. */
export interface ContainerRoutesContext {
  view: Pick<KubeletView, "pods" | "podFacts">;
  containers: ContainerAccess;
  dialPod: DialPod;
  clock: Clock;
  logger: Logger;
  /** 0 = never. */
  streamingIdleTimeoutMs: number;
}

/** Paths of {@link routeContainers}; parameters in braces. */
export const CONTAINER_PATHS = [
  "/containerLogs/{namespace}/{pod}/{container}",
  "/run/{namespace}/{pod}/{container}",
  "/run/{namespace}/{pod}/{uid}/{container}",
  "/exec/{namespace}/{pod}/{container}",
  "/exec/{namespace}/{pod}/{uid}/{container}",
  "/attach/{namespace}/{pod}/{container}",
  "/attach/{namespace}/{pod}/{uid}/{container}",
  "/portForward/{namespace}/{pod}",
  "/portForward/{namespace}/{pod}/{uid}",
] as const;

const NO_SUCH_POD = "pod does not exist";

/**
 * The routes to containers: `/containerLogs`, `/run`, `/exec`, `/attach`, `/portForward`. Only containers of pods
 * that are desired on this node are found; texts and codes are those of kubelet 1.20. A UID in the path, which may be
 * that of the pod's mirror pod, selects nothing; `/portForward` alone compares it with that of the pod. Source: `FindPod`,
 * `getPortForward`.
 */
export function routeContainers(
  request: ServerRequest,
  user: User,
  context: ContainerRoutesContext,
): ListenerResponse | Promise<ListenerResponse> {
  const [, root, ...parts] = request.path.split("/");
  if (parts.includes("")) return resourceNotFound();
  const [namespace = "", name = "", ...rest] = parts;
  const hasContainer = root !== "portForward";
  const most = hasContainer ? 2 : 1;
  if (parts.length < 2 || rest.length > most || rest.length < most - 1) return resourceNotFound();
  if (root === "containerLogs" && rest.length !== 1) return resourceNotFound();
  const container = hasContainer ? rest.at(-1)! : "";
  const pod = findPod(context.view.pods(), namespace, name);
  const found = { pod, container, podName: `${namespace}/${name}` };
  const { method } = request;
  switch (root) {
    case "containerLogs":
      return method === "GET" ? containerLogs(request, found, name, context) : methodNotAllowed();
    case "run":
      return method === "POST" ? run(request, found, user, context) : methodNotAllowed();
    case "exec":
    case "attach":
      if (method !== "GET" && method !== "POST") return methodNotAllowed();
      return remoteCommand(root, request, found, user, context);
    default: {
      if (method !== "GET" && method !== "POST") return methodNotAllowed();
      const uid = rest[0];
      if (pod && uid !== undefined && uid !== pod.metadata.uid) return textResponse(404, "pod not found");
      return portForward(request, found, user, context);
    }
  }
}

/** The container that a path names. */
interface PodTarget {
  /** undefined: there is none of that name. */
  pod: Pod | undefined;
  container: string;
  /** `<namespace>/<name>`, for the log. */
  podName: string;
}

function findPod(pods: readonly Pod[], namespace: string, name: string): Pod | undefined {
  return pods.find(({ metadata }) => metadata.name === name && (metadata.namespace ?? "default") === namespace);
}

async function containerLogs(
  request: ServerRequest,
  { pod, container }: PodTarget,
  name: string,
  { containers, clock }: ContainerRoutesContext,
): Promise<RouteResponse> {
  const parsed = parseLogQuery(request.query);
  if (!("value" in parsed)) return textResponse(parsed.status, parsed.problem);
  if (!pod) return textResponse(404, `pod ${JSON.stringify(name)} does not exist`);
  if (!findContainer(pod.spec, container)) {
    return textResponse(404, `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(name)}`);
  }
  const { previous, sinceSeconds, sinceTime, ...selection } = parsed.value;
  const target = findLogContainer(pod, container, previous);
  if ("problem" in target) return textResponse(400, target.problem);
  const since = sinceSeconds === undefined ? sinceTime : new Date(clock.now().getTime() - sinceSeconds * 1000);
  try {
    const chunks = await containers.logs(target.id, { ...selection, ...(since && { since }) }, request.signal);
    return { status: 200, headers: { "Content-Type": "text/plain; charset=utf-8" }, chunks };
  } catch (error) {
    return textResponse(400, (error as Error).message);
  }
}

async function run(
  request: ServerRequest,
  found: PodTarget,
  user: User,
  { containers, logger }: ContainerRoutesContext,
): Promise<RouteResponse> {
  const { pod, container } = found;
  if (!pod) return textResponse(404, NO_SUCH_POD);
  const target = findRunningContainer(pod, container);
  if (!target) return textResponse(500, `container not found (${JSON.stringify(container)})`);
  const command = request.query.get("cmd") ?? "";
  logAccess("run", found, user, logger);
  try {
    const outcome = await containers.run(target.id, command.split(" "), { signal: request.signal });
    // Not JSON, but this is what upstream says it is.
    if (outcome.exitCode === 0) {
      return { status: 200, headers: { "Content-Type": "application/json" }, body: outcome.output };
    }
    return textResponse(500, `command '${command}' exited with ${outcome.exitCode}: ${outcome.stderr}`);
  } catch (error) {
    return textResponse(500, (error as Error).message);
  }
}

function remoteCommand(
  root: "exec" | "attach",
  request: ServerRequest,
  found: PodTarget,
  user: User,
  { containers, clock, logger, streamingIdleTimeoutMs }: ContainerRoutesContext,
): ListenerResponse {
  const parsed = parseStreamQuery(request.query);
  if (!("value" in parsed)) return textResponse(parsed.status, parsed.problem);
  const { pod, container } = found;
  if (!pod) return textResponse(404, NO_SUCH_POD);
  const target = findRunningContainer(pod, container);
  if (!target) return textResponse(500, `container not found (${JSON.stringify(container)})`);
  const argv = request.query.getAll("command");
  let streams = parsed.value;
  let open: () => Promise<ProcessSession>;
  if (root === "exec") open = () => containers.exec(target.id, argv, streams);
  else {
    // The container determines whether there is a terminal; the client cannot.
    const tty = pod.spec.containers.find(({ name }) => name === container)?.tty ?? false;
    streams = { ...streams, tty, stdout: streams.stdout || (tty && streams.stderr), stderr: streams.stderr && !tty };
    open = () => containers.attach(target.id, streams);
  }
  const response = commandResponse(request, { streams, open, clock, idleTimeoutMs: streamingIdleTimeoutMs });
  if ("problem" in response) return refuse(response);
  logAccess(root, found, user, logger);
  return response;
}

function portForward(
  request: ServerRequest,
  found: PodTarget,
  user: User,
  { view, dialPod, clock, logger, streamingIdleTimeoutMs }: ContainerRoutesContext,
): ListenerResponse {
  const { pod, podName } = found;
  if (!pod) return textResponse(404, NO_SUCH_POD);
  const problem = `pod "${podName}" has no address: its sandbox does not run`;
  const address = addressOf(pod, view);
  const response = portForwardResponse(request, {
    dial: (port, signal) => (address ? dialPod(address, port, signal) : Promise.reject(new Error(problem))),
    pod: podName,
    clock,
    idleTimeoutMs: streamingIdleTimeoutMs,
  });
  if ("problem" in response) return refuse(response);
  if (!address) return textResponse(500, `${problem}\n`);
  logAccess("portForward", found, user, logger);
  return response;
}

/** undefined: its sandbox does not run. */
function addressOf({ metadata, status }: Pod, view: ContainerRoutesContext["view"]): PodAddress | undefined {
  const ip = status?.podIP;
  const facts = view.podFacts().find(({ uid }) => uid === metadata.uid);
  if (!ip || !facts) return undefined;
  const { hostNetwork, sandbox } = facts;
  return { ip, hostNetwork, sandboxId: sandbox.id, sandboxPid: sandbox.pid };
}

/** Logs the user and the container; never the command, which may contain a secret. */
function logAccess(what: string, { podName, container }: PodTarget, user: User, logger: Logger): void {
  logger.info("A client reaches into a pod", {
    request: what,
    user: user.name,
    pod: podName,
    container: container || undefined,
  });
}

const refuse = ({ problem, needsUpgrade }: StreamRefusal): HttpResponse =>
  textResponse(400, `${problem}\n`, needsUpgrade ? { "X-Content-Type-Options": "nosniff" } : {});
