import type { Summary } from "../../../src/base/api/stats-summary.ts";
import type { CertificateFiles } from "../test-certificates.ts";
import { freePorts } from "../test-node.ts";

const GROUP_VERSION = "metrics.k8s.io/v1beta1";
const NAMESPACE = "kube-system";
const NAME = "metrics-server";

export interface MetricsApiOptions {
  certificate: CertificateFiles;
  /** Port 10250 of each node, by name. */
  nodes: Readonly<Record<string, number>>;
  /** Bearer token for nodes. */
  token: string;
}

type Usage = { time: string; cpu: number | undefined; memory: number | undefined };

/**
 * The API metrics.k8s.io/v1beta1 as metrics-server 0.4 and 0.5 serve it: the figures of nodes' /stats/summary, read at
 * each request. `objects` make it a part of an API server. To be closed.
 */
export class MetricsApi {
  readonly #server: Bun.Server<undefined>;
  readonly #options: MetricsApiOptions;

  constructor(options: MetricsApiOptions) {
    this.#options = options;
    const [port] = freePorts(1) as [number];
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port,
      tls: { cert: options.certificate.cert, key: options.certificate.key },
      fetch: (request) => this.#answer(new URL(request.url).pathname),
    });
  }

  /** The APIService, and the Service behind it. */
  objects(): object[] {
    const { port } = this.#server;
    const [group, version] = GROUP_VERSION.split("/");
    return [
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: NAME, namespace: NAMESPACE },
        spec: { type: "ExternalName", externalName: "localhost", ports: [{ port }] },
      },
      {
        apiVersion: "apiregistration.k8s.io/v1",
        kind: "APIService",
        metadata: { name: `${version}.${group}` },
        spec: {
          group,
          version,
          service: { name: NAME, namespace: NAMESPACE, port },
          insecureSkipTLSVerify: true,
          groupPriorityMinimum: 100,
          versionPriority: 100,
        },
      },
    ];
  }

  close(): void {
    void this.#server.stop(true);
  }

  async #answer(path: string): Promise<Response> {
    const root = `/apis/${GROUP_VERSION}`;
    if (path === root) return Response.json(RESOURCES);
    const [, namespace, name] = /^\/(?:namespaces\/([^/]+)\/)?(?:pods|nodes)(?:\/([^/]+))?$/.exec(
      path.slice(root.length),
    ) ?? [undefined, undefined, undefined];
    if (!path.startsWith(`${root}/`)) return Response.json({ kind: "Status", code: 404 }, { status: 404 });
    const kind = path.includes("/pods") ? "PodMetrics" : "NodeMetrics";
    const summaries = await Promise.all(Object.values(this.#options.nodes).map((port) => this.#summary(port)));
    const all = summaries.flatMap(kind === "PodMetrics" ? toPodMetrics : toNodeMetrics);
    const items = all.filter(
      ({ metadata }) =>
        (name === undefined || metadata.name === name) && (!namespace || metadata.namespace === namespace),
    );
    if (name === undefined) return Response.json({ kind: `${kind}List`, apiVersion: GROUP_VERSION, items });
    return items[0] ? Response.json(items[0]) : Response.json({ kind: "Status", code: 404 }, { status: 404 });
  }

  async #summary(port: number): Promise<Summary> {
    const response = await fetch(`https://127.0.0.1:${port}/stats/summary?only_cpu_and_memory=true`, {
      headers: { Authorization: `Bearer ${this.#options.token}` },
      tls: { rejectUnauthorized: false },
    });
    if (!response.ok) throw new Error(`/stats/summary answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Summary;
  }
}

const RESOURCES = {
  kind: "APIResourceList",
  apiVersion: "v1",
  groupVersion: GROUP_VERSION,
  resources: [
    { name: "nodes", singularName: "", namespaced: false, kind: "NodeMetrics", verbs: ["get", "list"] },
    { name: "pods", singularName: "", namespaced: true, kind: "PodMetrics", verbs: ["get", "list"] },
  ],
};

type Metered = Pick<Summary["node"], "cpu" | "memory">;

const usageOf = ({ cpu, memory }: Metered): Usage => ({
  time: cpu?.time ?? "",
  cpu: cpu?.usageNanoCores,
  memory: memory?.workingSetBytes,
});

const toUsage = ({ cpu = 0, memory = 0 }: Usage) => ({ cpu: `${cpu}n`, memory: `${Math.floor(memory / 1024)}Ki` });

const isKnown = ({ cpu, memory }: Usage) => cpu !== undefined && memory !== undefined;

interface Metrics {
  metadata: { name: string; namespace?: string };
  timestamp: string;
  window: string;
}

/** A node without figures is left out, as by metrics-server. */
function toNodeMetrics({ node }: Summary): Metrics[] {
  const usage = usageOf(node);
  if (!isKnown(usage)) return [];
  return [
    { metadata: { name: node.nodeName }, timestamp: usage.time, window: "10s", usage: toUsage(usage) } as Metrics,
  ];
}

/** A pod is left out while one of its containers has no figures, as by metrics-server. */
function toPodMetrics({ pods }: Summary): Metrics[] {
  return pods.flatMap(({ podRef, containers }) => {
    const usages = (containers ?? []).map((container) => ({ name: container.name, ...usageOf(container) }));
    const [first] = usages;
    if (!first || !usages.every(isKnown)) return [];
    const metadata = { name: podRef.name, namespace: podRef.namespace };
    const each = usages.map((usage) => ({ name: usage.name, usage: toUsage(usage) }));
    return [{ metadata, timestamp: first.time, window: "10s", containers: each } as Metrics];
  });
}
