import type { Pod } from "../base/api/pod.ts";
import type { User } from "../base/model/cluster-connection.ts";
import type { ContainerAccess } from "../base/model/container-access.ts";
import { findContainer } from "../base/model/pod.ts";
import { findRunningContainer } from "../plan/status/log-container.ts";
import { type PodStreams, parseLogQuery, type StreamRefusal } from "./pod-streams.ts";
import {
  type HttpResponse,
  type ListenerResponse,
  methodNotAllowed,
  NOSNIFF,
  type RouteResponse,
  resourceNotFound,
  rootOf,
  type ServerRequest,
  textResponse,
} from "./request-handler.ts";
import type { KubeletView } from "./view.ts";

export interface ContainerRoutesContext {
  view: Pick<KubeletView, "pods">;
  containers: ContainerAccess;
  streams: PodStreams;
}

/** A request for a container of a pod that is desired on this node. */
interface Call extends ContainerRoutesContext {
  request: ServerRequest;
  user: User;
  pod: Pod;
  /** "" for `/portForward`. */
  container: string;
  /** In the path of the request; undefined: there is none. */
  uid: string | undefined;
}

interface ContainerRoute {
  methods: readonly string[];
  /** Below the root of the route; parameters in braces. */
  paths: readonly string[];
  handle: (call: Call) => ListenerResponse | Promise<ListenerResponse>;
}

const STREAMING = ["GET", "POST"];
const BY_NAME = "{namespace}/{pod}/{container}";
const BY_UID = "{namespace}/{pod}/{uid}/{container}";

const command = (what: "exec" | "attach"): ContainerRoute => ({
  methods: STREAMING,
  paths: [BY_NAME, BY_UID],
  handle: ({ streams, pod, container, request, user }) =>
    orRefuse(streams.command(what, pod, container, request, user)),
});

const ROUTES: Readonly<Record<string, ContainerRoute>> = {
  containerLogs: { methods: ["GET"], paths: [BY_NAME], handle: containerLogs },
  run: { methods: ["POST"], paths: [BY_NAME, BY_UID], handle: run },
  exec: command("exec"),
  attach: command("attach"),
  portForward: {
    methods: STREAMING,
    paths: ["{namespace}/{pod}", "{namespace}/{pod}/{uid}"],
    handle: ({ streams, pod, uid, request, user }) =>
      uid !== undefined && uid !== pod.metadata.uid
        ? textResponse(404, "pod not found")
        : orRefuse(streams.portForward(pod, request, user)),
  },
};

export const CONTAINER_ROOTS: ReadonlySet<string> = new Set(Object.keys(ROUTES));

export const CONTAINER_PATHS: readonly string[] = Object.entries(ROUTES).flatMap(([root, { paths }]) =>
  paths.map((path) => `/${root}/${path}`),
);

const PATTERNS = CONTAINER_PATHS.map(
  (path) => new RegExp(`^${path.replace(/\{(\w+)\}/g, (_, name) => `(?<${name}>[^/]+)`)}$`),
);

/**
 * The routes to containers. Only containers of pods that are desired on this node are found; texts and codes are those of
 * kubelet 1.20. A UID in the path, which may be that of the pod's mirror pod, selects nothing; `/portForward` alone compares
 * it with that of the pod. Source: `FindPod`, `getPortForward`.
 */
export function routeContainers(
  request: ServerRequest,
  user: User,
  context: ContainerRoutesContext,
): ListenerResponse | Promise<ListenerResponse> {
  const { path, method } = request;
  const root = rootOf(path);
  const route = ROUTES[root];
  const found = PATTERNS.map((pattern) => pattern.exec(path)).find((match) => match !== null)?.groups;
  if (!route || !found) return resourceNotFound();
  if (!route.methods.includes(method)) return methodNotAllowed();
  const { namespace = "", pod: name = "", container = "", uid } = found;
  const pod = context.view
    .pods()
    .find(({ metadata }) => metadata.name === name && (metadata.namespace ?? "default") === namespace);
  if (pod) return route.handle({ ...context, request, user, pod, container, uid });
  return textResponse(
    404,
    root === "containerLogs" ? `pod ${JSON.stringify(name)} does not exist` : "pod does not exist",
  );
}

async function containerLogs({ request, pod, container, streams }: Call): Promise<RouteResponse> {
  const query = parseLogQuery(request.query);
  if ("problem" in query) return textResponse(query.status, query.problem);
  if (!findContainer(pod.spec, container)) {
    const name = JSON.stringify(pod.metadata.name);
    return textResponse(404, `container ${JSON.stringify(container)} not found in pod ${name}`);
  }
  try {
    const log = await streams.log(pod, container, query, request.signal);
    if ("problem" in log) return textResponse(log.status, log.problem);
    return { status: 200, headers: { "Content-Type": "text/plain; charset=utf-8" }, chunks: log.chunks };
  } catch (error) {
    return textResponse(400, (error as Error).message);
  }
}

async function run({ request, user, pod, container, containers, streams }: Call): Promise<RouteResponse> {
  const target = findRunningContainer(pod, container);
  if (!target) return textResponse(500, `container not found (${JSON.stringify(container)})`);
  const command = request.query.get("cmd") ?? "";
  streams.note("run", pod, container, user);
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

const orRefuse = (response: ListenerResponse | StreamRefusal): ListenerResponse =>
  "problem" in response ? refuse(response) : response;

const refuse = ({ status, problem, needsUpgrade }: StreamRefusal): HttpResponse =>
  needsUpgrade ? textResponse(status, `${problem}\n`, NOSNIFF) : textResponse(status, problem);
