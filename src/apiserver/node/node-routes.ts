import { parseLabelSelector } from "../../base/api/meta.ts";
import type { Summary } from "../../base/api/stats-summary.ts";
import { isRecord } from "../../base/text/json.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { HttpResponse } from "../../server/request-handler.ts";
import type { Servers } from "../../server/servers.ts";
import { badRequest, notFound } from "../api-error.ts";
import {
  type ApiRequest,
  type ApiResponse,
  json,
  MEASUREMENTS,
  METRICS_API_GROUP,
  mayDo,
  type RequestInfo,
  type Role,
  readObjectBody,
  readOptionalBody,
} from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import { parseDeleteOptions } from "../object-deleter.ts";
import type { LocalApi } from "./local-api.ts";
import { parseProxied } from "./pod-routes.ts";

interface NodeRoutesDeps {
  api: Pick<LocalApi, "store" | "registry" | "deleter" | "storing" | "find" | "refresh">;
  nodeName: string;
  /** The kubelet's authenticated port. */
  port: number;
  servers: Pick<Servers, "respond">;
}

/** The response of the kubelet's own ports. @param path begins with a slash */
async function kubeletResponse(
  { servers }: Pick<NodeRoutesDeps, "servers">,
  { method, query, header, signal, body }: ApiRequest,
  path: string,
): Promise<ApiResponse> {
  const text = async () => Buffer.from(await body()).toString("utf8");
  return servers.respond({ method, path, query, header, signal, text });
}

/** Routes without objects of the store: the kubelet behind the node, evictions, metrics, access reviews of the caller. */
export const nodeRoutes = (deps: NodeRoutesDeps): ExtraRoute[] => [
  {
    group: "",
    version: "v1",
    name: "nodes/proxy",
    kind: "NodeProxyOptions",
    namespaced: false,
    verbs: ["create", "delete", "get", "patch", "update"],
    handle: (request, info) => {
      const { name, port } = parseProxied("nodes", info.name);
      if (name !== deps.nodeName) throw notFound({ group: "", plural: "nodes" }, name);
      if (port !== "" && port !== String(deps.port)) {
        throw badRequest(`nodes "${info.name}": only port ${deps.port}, of the kubelet, is behind nodes/proxy`);
      }
      const slash = info.rest !== "" && request.path.endsWith("/") ? "/" : "";
      return kubeletResponse(deps, request, `/${info.rest}${slash}`);
    },
  },
  {
    group: "",
    version: "v1",
    name: "pods/eviction",
    kind: "Eviction",
    kindGroup: "policy",
    kindVersion: "v1",
    namespaced: true,
    verbs: ["create"],
    handle: (request, info) => evict(request, info, deps),
  },
  metricsRoute("nodes", "NodeMetrics", false, (request, info) => nodeMetrics(request, info, deps)),
  metricsRoute("pods", "PodMetrics", true, (request, info) => podMetrics(request, info, deps)),
  review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", accessStatus),
  review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", rulesStatus),
  review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", ({ user }) => ({
    userInfo: { username: user.name, groups: user.groups },
  })),
];

async function evict(request: ApiRequest, { namespace, name }: RequestInfo, { api }: NodeRoutesDeps) {
  await api.find("pods", { namespace, name });
  const body = await readOptionalBody(request);
  const dryRun = request.query.getAll("dryRun").includes("All");
  const options = parseDeleteOptions(isRecord(body) ? body.deleteOptions : {}, new URLSearchParams(), { dryRun }, {});
  api.deleter.delete({ definition: api.registry.get("pods")!, namespace, name }, options);
  await api.storing.settled();
  return json(201, SUCCESS);
}

const SUCCESS = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };

const METRICS = { group: METRICS_API_GROUP, version: "v1beta1" } as const;

const metricsRoute = (name: string, kind: string, namespaced: boolean, handle: ExtraRoute["handle"]): ExtraRoute => ({
  ...METRICS,
  name,
  kind,
  namespaced,
  verbs: ["get", "list"],
  handle,
});

async function summaryOf(request: ApiRequest, deps: NodeRoutesDeps): Promise<Summary> {
  const whole = { ...request, method: "GET", query: new URLSearchParams() };
  const { body } = (await kubeletResponse(deps, whole, "/stats/summary")) as HttpResponse;
  return JSON.parse(typeof body === "string" ? body : Buffer.from(body).toString()) as Summary;
}

interface Usage {
  cpu?: { usageNanoCores?: number | undefined } | undefined;
  memory?: { workingSetBytes?: number | undefined } | undefined;
}

const usageOf = ({ cpu, memory }: Usage) => ({
  cpu: `${cpu?.usageNanoCores ?? 0}n`,
  memory: `${Math.round((memory?.workingSetBytes ?? 0) / 1024)}Ki`,
});

const metricsApiVersion = `${METRICS.group}/${METRICS.version}`;
const WINDOW = "10s";

async function nodeMetrics(request: ApiRequest, { name }: RequestInfo, deps: NodeRoutesDeps): Promise<ApiResponse> {
  const { node } = await summaryOf(request, deps);
  const item = {
    kind: "NodeMetrics",
    apiVersion: metricsApiVersion,
    metadata: { name: deps.nodeName },
    timestamp: (node as { cpu?: { time?: string } }).cpu?.time,
    window: WINDOW,
    usage: usageOf(node as Usage),
  };
  return oneOrAll("nodes", name, "NodeMetricsList", name === "" || name === deps.nodeName ? [item] : []);
}

function oneOrAll(plural: string, name: string, kind: string, items: readonly object[]): ApiResponse {
  if (name === "") return json(200, { kind, apiVersion: metricsApiVersion, metadata: {}, items });
  if (items.length === 0) throw notFound({ group: METRICS.group, plural }, name);
  return json(200, items[0]);
}

async function podMetrics(
  request: ApiRequest,
  { name, namespace }: RequestInfo,
  deps: NodeRoutesDeps,
): Promise<ApiResponse> {
  await deps.api.refresh(deps.api.registry.get("pods")!);
  const selects = parseLabelSelector(request.query.get("labelSelector") ?? "");
  if ("problem" in selects) throw badRequest(selects.problem);
  const { pods = [] } = await summaryOf(request, deps);
  const items = pods.flatMap(({ podRef, containers: measured }) => {
    const containers = measured ?? [];
    const { metadata } = deps.api.store.get("pods", podRef.namespace, podRef.name) ?? {};
    const isMeant =
      (namespace === undefined || podRef.namespace === namespace) && (name === "" || podRef.name === name);
    if (!metadata || !isMeant || !selects(metadata.labels ?? {})) return [];
    return [
      {
        kind: "PodMetrics",
        apiVersion: metricsApiVersion,
        metadata: { name: podRef.name, namespace: podRef.namespace, labels: metadata.labels },
        timestamp: (containers[0] as { cpu?: { time?: string } } | undefined)?.cpu?.time ?? null,
        window: WINDOW,
        containers: containers.map((container) => ({ name: container.name, usage: usageOf(container as Usage) })),
      },
    ];
  });
  return oneOrAll("pods", name, "PodMetricsList", items);
}

/** A review: the response is the request with a status. */
const review = (
  group: string,
  name: string,
  kind: string,
  statusOf: (request: ApiRequest, spec: Record<string, unknown>) => object,
): ExtraRoute => ({
  group,
  version: "v1",
  name,
  kind,
  namespaced: false,
  verbs: ["create"],
  handle: async (request) => {
    const body = await readObjectBody(request);
    const spec = isRecord(body) && isRecord(body.spec) ? body.spec : {};
    return json(201, {
      kind,
      apiVersion: `${group}/v1`,
      metadata: { creationTimestamp: null },
      spec,
      status: statusOf(request, spec),
    });
  },
});

function accessStatus(
  { user }: ApiRequest,
  { resourceAttributes, nonResourceAttributes }: Record<string, unknown>,
): object {
  if (isRecord(resourceAttributes)) {
    const { verb = "", group = "", resource = "", subresource = "" } = resourceAttributes as Record<string, string>;
    return { allowed: mayDo(user, { verb, group, resource, subresource }) };
  }
  const verb = isRecord(nonResourceAttributes) ? nonResourceAttributes.verb : "";
  return { allowed: user.role === "admin" || (user.role !== undefined && verb === "get") };
}

function rulesStatus({ user }: ApiRequest): object {
  const nonResourceRules = [{ verbs: user.role === "admin" ? ["*"] : ["get"], nonResourceURLs: ["*"] }];
  return { resourceRules: user.role ? RESOURCE_RULES[user.role] : [], nonResourceRules, incomplete: false };
}

const RESOURCE_RULES: Readonly<Record<Role, readonly object[]>> = {
  admin: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
  view: [{ verbs: ["get", "list", "watch"], apiGroups: ["*"], resources: ["*"] }],
  metrics: [
    { verbs: ["get", "list"], apiGroups: [METRICS_API_GROUP], resources: ["*"] },
    { verbs: ["get"], apiGroups: [""], resources: MEASUREMENTS.map((name) => `nodes/${name}`) },
  ],
};

/** Updates of images, as the commands see them. */
interface ImageUpdates {
  report(): object[];
  checkNow(owner: string | undefined): number;
  undo(owner: string): string[];
}

/**
 * `/apis/kubelet-ts.io/v1/imageupdates`: GET lists; POST `{"action": "now" | "undo", "owner": "default/web"}`
 * looks up or rolls back.
 */
export const updateRoutes = (updates: ImageUpdates): ExtraRoute[] => [
  {
    group: "kubelet-ts.io",
    version: "v1",
    name: "imageupdates",
    kind: "ImageUpdate",
    namespaced: false,
    verbs: ["create", "get"],
    handle: async (request) => {
      if (request.method === "GET") return json(200, { items: updates.report() });
      const body = await readOptionalBody(request);
      const { action, owner } = isRecord(body) ? body : {};
      if (owner !== undefined && typeof owner !== "string") throw badRequest("owner must be a string");
      if (action === "now") return json(200, { count: updates.checkNow(owner) });
      if (action !== "undo" || owner === undefined) throw badRequest('action must be "now", or "undo" with an owner');
      return json(200, { images: updates.undo(owner) });
    },
  },
];

/** `POST /apis/kubelet-ts.io/v1/namespaces/NAMESPACE/pods/NAME/restart`: the containers start again in a new sandbox. */
export const restartRoute = (api: Pick<LocalApi, "find">, kubelet: Pick<Kubelet, "restartPod">): ExtraRoute => ({
  group: "kubelet-ts.io",
  version: "v1",
  name: "pods/restart",
  kind: "PodRestart",
  namespaced: true,
  verbs: ["create"],
  handle: async (_, info) => {
    const { metadata } = await api.find("pods", info);
    const refusal = kubelet.restartPod(metadata.uid ?? "");
    if (refusal !== undefined) throw badRequest(`pod "${metadata.name}" ${refusal}`);
    return json(200, SUCCESS);
  },
});
