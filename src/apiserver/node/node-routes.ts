import { parseLabelSelector } from "../../base/api/label-selector.ts";
import type { Summary } from "../../base/api/stats-summary.ts";
import { isRecord } from "../../base/text/json.ts";
import { badRequest, methodNotSupported, notFound } from "../api-error.ts";
import { type ApiRequest, type ApiResponse, json } from "../api-request.ts";
import type { ExtraRoute } from "../api-server.ts";
import { mayDo } from "../authorization.ts";
import { readObjectBody, readOptionalBody } from "../body.ts";
import { type ObjectDeleter, parseDeleteOptions } from "../object-deleter.ts";
import type { ObjectStore } from "../object-store.ts";
import type { RequestInfo } from "../request-info.ts";
import type { ResourceRegistry } from "../resource-definition.ts";

interface NodeRoutesDeps {
  nodeName: string;
  store: ObjectStore;
  registry: ResourceRegistry;
  deleter: ObjectDeleter;
  /** Brings the pods of the store up to date. */
  refresh: () => Promise<void>;
  /** Answers a request as the kubelet does on its own ports; the path begins with a slash. */
  kubelet: (
    request: ApiRequest,
    path: string,
  ) => Promise<{ status: number; headers: Record<string, string>; body: string | Uint8Array }>;
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
    handle: (request, { name, rest }) => {
      if (name !== deps.nodeName) throw notFound({ group: "", plural: "nodes" }, name);
      return deps.kubelet(request, `/${rest}`);
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
  review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", answerAccess),
  review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", answerRules),
  review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", ({ user }) => ({
    userInfo: { username: user.name, groups: user.groups },
  })),
];

async function evict(
  request: ApiRequest,
  { namespace, name }: RequestInfo,
  { registry, deleter, refresh }: NodeRoutesDeps,
) {
  if (request.method !== "POST") throw methodNotSupported({ group: "", plural: "pods" }, "get");
  await refresh();
  const body = await readOptionalBody(request);
  const options = isRecord(body) ? body.deleteOptions : undefined;
  const isDryRun = request.query.getAll("dryRun").includes("All");
  deleter.delete(
    registry.get("pods")!,
    namespace,
    name,
    parseDeleteOptions(options, new URLSearchParams(), { dryRun: isDryRun }),
  );
  return json(201, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" });
}

const METRICS = { group: "metrics.k8s.io", version: "v1beta1" } as const;

const metricsRoute = (name: string, kind: string, namespaced: boolean, handle: ExtraRoute["handle"]): ExtraRoute => ({
  ...METRICS,
  name,
  kind,
  namespaced,
  verbs: ["get", "list"],
  handle,
});

async function summaryOf(request: ApiRequest, { kubelet }: NodeRoutesDeps): Promise<Summary> {
  const { body } = await kubelet({ ...request, method: "GET", query: new URLSearchParams() }, "/stats/summary");
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
  if (name === "")
    return json(200, { kind: "NodeMetricsList", apiVersion: metricsApiVersion, metadata: {}, items: [item] });
  if (name !== deps.nodeName) throw notFound({ group: METRICS.group, plural: "nodes" }, name);
  return json(200, item);
}

async function podMetrics(
  request: ApiRequest,
  { name, namespace }: RequestInfo,
  deps: NodeRoutesDeps,
): Promise<ApiResponse> {
  await deps.refresh();
  const selects = parseLabelSelector(request.query.get("labelSelector") ?? "");
  if ("problem" in selects) throw badRequest(selects.problem);
  const { pods = [] } = await summaryOf(request, deps);
  const items = pods.flatMap(({ podRef, containers: measured }) => {
    const containers = measured ?? [];
    const { metadata } = deps.store.get("pods", podRef.namespace, podRef.name) ?? {};
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
  if (name === "") return json(200, { kind: "PodMetricsList", apiVersion: metricsApiVersion, metadata: {}, items });
  const [found] = items;
  if (!found) throw notFound({ group: METRICS.group, plural: "pods" }, name);
  return json(200, found);
}

/** A question that is answered with itself and a status. */
const review = (
  group: string,
  name: string,
  kind: string,
  answer: (request: ApiRequest, spec: Record<string, unknown>) => object,
): ExtraRoute => ({
  group,
  version: "v1",
  name,
  kind,
  namespaced: false,
  verbs: ["create"],
  handle: async (request) => {
    if (request.method !== "POST") throw methodNotSupported({ group, plural: name }, "get");
    const body = await readObjectBody(request);
    const spec = isRecord(body) && isRecord(body.spec) ? body.spec : {};
    return json(201, {
      kind,
      apiVersion: `${group}/v1`,
      metadata: { creationTimestamp: null },
      spec,
      status: answer(request, spec),
    });
  },
});

function answerAccess(
  { user }: ApiRequest,
  { resourceAttributes, nonResourceAttributes }: Record<string, unknown>,
): object {
  if (isRecord(resourceAttributes)) {
    const { verb = "", group = "", resource = "", subresource = "" } = resourceAttributes as Record<string, string>;
    return { allowed: mayDo(user, { verb, group, resource, subresource }) };
  }
  const verb = isRecord(nonResourceAttributes) ? nonResourceAttributes.verb : "";
  return { allowed: user.role === "admin" || (user.role === "view" && verb === "get") };
}

function answerRules({ user }: ApiRequest): object {
  const isAdmin = user.role === "admin";
  const resourceRules = isAdmin
    ? [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }]
    : [{ verbs: ["get", "list", "watch"], apiGroups: ["*"], resources: ["*"] }];
  const nonResourceRules = [{ verbs: isAdmin ? ["*"] : ["get"], nonResourceURLs: ["*"] }];
  return { resourceRules, nonResourceRules, incomplete: false };
}
