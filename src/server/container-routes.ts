import type { Pod } from "../api/pod.ts";
import type { Clock } from "../model/clock.ts";
import type { ContainerAccess, ProcessSession } from "../model/container-access.ts";
import type { Logger } from "../model/logger.ts";
import { findContainer } from "../model/pod-containers.ts";
import type { DialPod } from "../model/pod-dialer.ts";
import { findLogContainer, findRunningContainer } from "../status/log-container.ts";
import { methodNotAllowed, resourceNotFound, type ServerAnswer, type ServerRequest, textAnswer } from "./answer.ts";
import { chooseProtocol, PORT_FORWARD_PROTOCOLS, REMOTE_COMMAND_PROTOCOLS } from "./channel-protocol.ts";
import type { User } from "./client-identity.ts";
import { servePortForward } from "./port-forward.ts";
import { serveRemoteCommand } from "./remote-command.ts";
import { parseLogQuery, parsePortQuery, parseStreamQuery } from "./stream-query.ts";
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

const UPGRADE_REQUIRED = "Upgrade request required\n";
const NO_SPDY =
  "SPDY is not spoken here: use a WebSocket with the subprotocol v5.channel.k8s.io or v4.channel.k8s.io\n";
const NO_SUCH_POD = "pod does not exist";

/**
 * The routes to containers: `/containerLogs`, `/run`, `/exec`, `/attach`, `/portForward`. Only containers of pods
 * that are desired on this node are found; texts and codes are those of kubelet 1.20.
 */
export function routeContainers(
  request: ServerRequest,
  user: User,
  context: ContainerRoutesContext,
): ServerAnswer | Promise<ServerAnswer> {
  const [, root, ...parts] = request.path.split("/");
  if (parts.includes("")) return resourceNotFound();
  const [namespace = "", name = "", ...rest] = parts;
  const hasContainer = root !== "portForward";
  const most = hasContainer ? 2 : 1;
  if (parts.length < 2 || rest.length > most || rest.length < most - 1) return resourceNotFound();
  if (root === "containerLogs" && rest.length !== 1) return resourceNotFound();
  const container = hasContainer ? rest.at(-1)! : "";
  const uid = rest.length === most ? rest[0] : undefined;
  const pod = findPod(context.view.pods(), namespace, name, uid);
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
    default:
      if (method !== "GET" && method !== "POST") return methodNotAllowed();
      return portForward(request, found, user, context);
  }
}

interface Found {
  /** undefined: there is none of that name. */
  pod: Pod | undefined;
  container: string;
  /** `<namespace>/<name>`, for the log. */
  podName: string;
}

function findPod(pods: readonly Pod[], namespace: string, name: string, uid: string | undefined): Pod | undefined {
  return pods.find(
    ({ metadata }) =>
      metadata.name === name &&
      (metadata.namespace ?? "default") === namespace &&
      (uid === undefined || metadata.uid === uid),
  );
}

async function containerLogs(
  request: ServerRequest,
  { pod, container }: Found,
  name: string,
  { containers, clock }: ContainerRoutesContext,
): Promise<ServerAnswer> {
  const parsed = parseLogQuery(request.query);
  if (!("value" in parsed)) return textAnswer(parsed.status, parsed.problem);
  if (!pod) return textAnswer(404, `pod ${JSON.stringify(name)} does not exist`);
  if (!findContainer(pod.spec, container)) {
    return textAnswer(404, `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(name)}`);
  }
  const { previous, sinceSeconds, sinceTime, ...selection } = parsed.value;
  const target = findLogContainer(pod, container, previous);
  if ("problem" in target) return textAnswer(400, target.problem);
  const since = sinceSeconds === undefined ? sinceTime : new Date(clock.now().getTime() - sinceSeconds * 1000);
  try {
    const chunks = await containers.logs(target.id, { ...selection, ...(since && { since }) }, request.signal);
    return { status: 200, headers: { "Content-Type": "text/plain; charset=utf-8" }, chunks };
  } catch (error) {
    return textAnswer(400, (error as Error).message);
  }
}

async function run(
  request: ServerRequest,
  found: Found,
  user: User,
  { containers, logger }: ContainerRoutesContext,
): Promise<ServerAnswer> {
  const { pod, container } = found;
  if (!pod) return textAnswer(404, NO_SUCH_POD);
  const target = findRunningContainer(pod, container);
  if (!target) return textAnswer(500, `container not found (${JSON.stringify(container)})`);
  const command = request.query.get("cmd") ?? "";
  note("run", found, user, logger);
  try {
    const outcome = await containers.run(target.id, command.split(" "), request.signal);
    // Not JSON, but this is what upstream says it is.
    if (outcome.exitCode === 0) {
      return { status: 200, headers: { "Content-Type": "application/json" }, body: outcome.output };
    }
    return textAnswer(500, `command '${command}' exited with ${outcome.exitCode}: ${outcome.stderr}`);
  } catch (error) {
    return textAnswer(500, (error as Error).message);
  }
}

function remoteCommand(
  root: "exec" | "attach",
  request: ServerRequest,
  found: Found,
  user: User,
  { containers, clock, logger, streamingIdleTimeoutMs }: ContainerRoutesContext,
): ServerAnswer {
  const parsed = parseStreamQuery(request.query);
  if (!("value" in parsed)) return textAnswer(parsed.status, parsed.problem);
  const { pod, container } = found;
  if (!pod) return textAnswer(404, NO_SUCH_POD);
  const target = findRunningContainer(pod, container);
  if (!target) return textAnswer(500, `container not found (${JSON.stringify(container)})`);
  const refusal = refuseUpgrade(request);
  if (refusal) return refusal;
  const protocol = chooseProtocol(request.header("Sec-WebSocket-Protocol"), REMOTE_COMMAND_PROTOCOLS);
  if (!protocol) return unknownProtocol(REMOTE_COMMAND_PROTOCOLS);
  const argv = request.query.getAll("command");
  let streams = parsed.value;
  let open: () => Promise<ProcessSession>;
  if (root === "exec") open = () => containers.exec(target.id, argv, streams);
  else {
    // The container has a terminal or has none; the client's wish changes nothing about it.
    const tty = pod.spec.containers.find(({ name }) => name === container)?.tty ?? false;
    streams = { ...streams, tty, stdout: streams.stdout || (tty && streams.stderr), stderr: streams.stderr && !tty };
    open = () => containers.attach(target.id, streams);
  }
  note(root, found, user, logger);
  return {
    protocol: protocol.name,
    run: (socket) =>
      serveRemoteCommand(socket, { protocol, streams, open, clock, idleTimeoutMs: streamingIdleTimeoutMs }),
  };
}

function portForward(
  request: ServerRequest,
  found: Found,
  user: User,
  { view, dialPod, clock, logger, streamingIdleTimeoutMs }: ContainerRoutesContext,
): ServerAnswer {
  const { pod, podName } = found;
  if (!pod) return textAnswer(404, NO_SUCH_POD);
  const refusal = refuseUpgrade(request);
  if (refusal) return refusal;
  const ports = parsePortQuery(request.query);
  if (!("value" in ports)) return textAnswer(ports.status, ports.problem);
  const protocol = chooseProtocol(request.header("Sec-WebSocket-Protocol"), PORT_FORWARD_PROTOCOLS);
  if (!protocol) return unknownProtocol(PORT_FORWARD_PROTOCOLS);
  const ip = pod.status?.podIP;
  const facts = view.podFacts().find(({ uid }) => uid === pod.metadata.uid);
  if (!ip || !facts) return textAnswer(500, `pod "${podName}" has no address: its sandbox does not run\n`);
  const { hostNetwork, sandbox } = facts;
  const address = { ip, hostNetwork, sandboxId: sandbox.id, sandboxPid: sandbox.pid };
  note("portForward", found, user, logger);
  return {
    protocol: protocol.name,
    run: (socket) =>
      servePortForward(socket, {
        protocol,
        dial: (port, signal) => dialPod(address, port, signal),
        ports: ports.value,
        pod: podName,
        clock,
        idleTimeoutMs: streamingIdleTimeoutMs,
      }),
  };
}

/** Logs the user and the container; never the command, which may contain a secret. */
function note(what: string, { podName, container }: Found, user: User, logger: Logger): void {
  logger.info("A client reaches into a pod", {
    request: what,
    user: user.name,
    pod: podName,
    container: container || undefined,
  });
}

function refuseUpgrade({ upgrade }: ServerRequest): ServerAnswer | undefined {
  if (upgrade === "websocket") return undefined;
  return upgrade.startsWith("spdy")
    ? textAnswer(400, NO_SPDY)
    : textAnswer(400, UPGRADE_REQUIRED, { "X-Content-Type-Options": "nosniff" });
}

const unknownProtocol = (known: readonly string[]) =>
  textAnswer(400, `None of the subprotocols offered is known; there are ${known.join(", ")}\n`);
