import { expect } from "bun:test";
import type { CoreEvent } from "../../src/base/api/event.ts";
import type { Pod } from "../../src/base/api/pod.ts";
import { FileSlot } from "../../src/base/concurrency/worker-pool.ts";
import { findLog, LogDirectory, readLog } from "../../src/base/host/log-directory.ts";
import type { HealthCheck } from "../../src/base/model/health-check.ts";
import { type AuthenticatedContext, routeAuthenticated } from "../../src/server/authenticated-routes.ts";
import type { ShownCertificate } from "../../src/server/client-identity.ts";
import { type NodeObjectFacts, toNodeObject } from "../../src/server/node-object.ts";
import { PodListRenderer } from "../../src/server/pod-list.ts";
import { PodStreams } from "../../src/server/pod-streams.ts";
import type { ReadOnlyContext } from "../../src/server/read-only-routes.ts";
import type { RouteRequest } from "../../src/server/request-handler.ts";
import type { ServerParts } from "../../src/server/servers.ts";
import { SharedResponses } from "../../src/server/shared-responses.ts";
import type { KubeletView } from "../../src/server/view.ts";
import { CadvisorApi } from "../../src/stats/cadvisor/cadvisor-api.ts";
import { toKubeletMetrics, toProbeMetric } from "../../src/stats/metrics/kubelet-metrics.ts";
import { processMetrics, processStartMetric } from "../../src/stats/metrics/process-metrics.ts";
import { NodeStats } from "../../src/stats/node-stats.ts";
import type { PodFacts } from "../../src/stats/pod-facts.ts";
import { aMeasuredEngine, type LaidTree, podOf, statsSettings } from "../stats/lay-tree.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeContainers } from "../support/fake-containers.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

export const aNode: NodeObjectFacts = {
  name: "node1",
  createdAt: new Date("2026-11-20T12:00:00Z"),
  ip: "192.0.2.7",
  labels: { "kubernetes.io/hostname": "node1", zone: "a" },
  taints: [],
  maxPods: 110,
  kubeletPort: 10250,
  kubeletVersion: "0.1.0",
  allocatable: { cpuMillis: 3500, memoryBytes: 8 * 2 ** 30, diskBytes: (capacity) => capacity / 2 },
  pressures: new Map([["DiskPressure", { is: true, since: new Date("2026-11-21T06:30:00Z") }]]),
  ready: { runtimeError: undefined, since: new Date("2026-11-21T06:00:00Z") },
  images: [
    { names: ["busybox:1"], sizeBytes: 4_000_000 },
    { names: ["web@sha256:d", "web:1", "web:2", "web:3", "web:4", "web:5"], sizeBytes: 70_000_000 },
  ],
};

/** A view whose members are plain data. */
class FakeView implements KubeletView {
  #pods: readonly Pod[] = [];
  facts: readonly PodFacts[] = [];
  checks: HealthCheck[] = ["ping", "log", "syncloop"].map((name) => ({ name, ok: true, message: "" }));
  shownConfig: Record<string, unknown> = { readOnlyPort: 10255 };

  show(...pods: Pod[]): void {
    this.#pods = pods;
  }

  nodeName = () => "node1";
  pods = () => this.#pods;
  happened: CoreEvent[] = [];
  events = () => ({ revision: this.happened.length, items: this.happened });
  podFacts = () => this.facts;
  engineError = () => undefined;
  healthChecks = () => this.checks;
  config = () => this.shownConfig;
  flags = () => ["address=0.0.0.0"];
  version = () => "0.1.0";
}

/** Everything a server needs, over a laid cgroup v2 tree with its one pod. */
export function aServerWorld(tree: LaidTree, { full = false } = {}) {
  const clock = new FakeClock("2026-11-21T06:40:00.500Z");
  const view = new FakeView();
  view.facts = [podOf("cgroup-v2")];
  const stats = new NodeStats({
    clock,
    roots: tree.roots,
    nodeName: "node1",
    view,
    engine: aMeasuredEngine(),
    settings: statsSettings,
    slot: new FileSlot(clock),
    measureDirectories: async () => new Map(),
  });
  const build = { version: "0.1.0", gitCommit: "", gitTreeState: "clean", buildDate: "" };
  const kubeletMetrics = toKubeletMetrics({ name: "node1", build });
  const probes = toProbeMetric();
  probes.inc(["app", "default", "web-node1", "u", "Liveness", "successful"]);
  const logger = new RecordingLogger();
  const metrics = () => [...Object.values(kubeletMetrics), ...processMetrics()];
  const cadvisor = new CadvisorApi(stats);
  const context: ReadOnlyContext = {
    view,
    stats,
    ports: { readOnly: 10255, securePage: 0 },
    shared: new SharedResponses(clock),
    cadvisor,
    node: async () => toNodeObject(aNode, cadvisor.facts.forNodeObject(), clock.now()),
    podList: new PodListRenderer(full),
    metrics: { shown: metrics, probes: () => [probes, processStartMetric()] },
  };
  const parts: Omit<ServerParts, "options"> = {
    environment: { clock, logger },
    stats,
    nodeFacts: async () => aNode,
    metrics: { requests: kubeletMetrics, shown: metrics, probes: [probes] },
  };
  return { clock, view, stats, cadvisor, context, parts, logger, kubeletMetrics };
}

/** Everything the authenticated port needs: every client may do everything, and no port of a pod is reached. */
export function anAuthenticatedWorld(tree: LaidTree, changes: Partial<AuthenticatedContext> = {}) {
  const world = aServerWorld(tree);
  const containers = new FakeContainers();
  const { clock, view } = world;
  const logger = changes.logger ?? world.logger;
  const dialPod = () => Promise.reject(new Error("dialing is not expected"));
  const context: AuthenticatedContext = {
    readOnly: { ...world.context, podList: new PodListRenderer(true) },
    view,
    containers,
    streams: new PodStreams({ view, containers, dialPod, clock, logger, idleTimeoutMs: 0 }),
    clock,
    logger,
    rules: {
      trustsCertificates: false,
      anonymousAuth: true,
      authorizationMode: "AlwaysAllow",
      trustsTokens: false,
      delegated: undefined,
    },
    debuggingHandlers: true,
    logDirectory: undefined,
    ...changes,
  };
  const ask = async (target: string, { upgrade = "", shown, ...options }: Asking = {}) => {
    const answer = routeAuthenticated({ ...aRequest(target, options), upgrade, shown, isSecure: false }, context);
    await clock.advance(300);
    return await answer;
  };
  return { ...world, containers, ask };
}

export interface Asking extends RequestOptions {
  upgrade?: string;
  shown?: ShownCertificate;
}

/** The log directory of a machine, read by this process. */
export const localLogDirectory = (root: string) =>
  new LogDirectory(root, {
    findLog: async (directory, relative) => findLog(directory, relative),
    readLog: async (descriptor, position, length) => readLog(descriptor, position, length),
  });

export interface RequestOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** A request as a route gets it. */
export function aRequest(
  target: string,
  { method = "GET", headers = {}, body = "" }: RequestOptions = {},
): RouteRequest {
  const [path = "/", query = ""] = target.split("?");
  const known = new Headers(headers);
  return {
    method,
    path: decodeURIComponent(path),
    query: new URLSearchParams(query),
    header: (name) => known.get(name),
    text: async () => body,
    signal: new AbortController().signal,
  };
}

/** A response of a real kubelet, as test/fixtures/oracle/http holds them. */
export interface RecordedResponse {
  method: string;
  path: string;
  status: number;
  headers: Record<string, string>;
  body?: string;
  /** Then `body` is only its beginning. */
  bodyIsLong?: boolean;
  /** `Name: value`, what the request carried beyond the usual. */
  requestHeaders?: string;
}

/** Code, the headers that clients act on, and the body where all of it was recorded. */
export async function expectRecorded(
  answer: { status: number; headers: Record<string, string> },
  text: () => Promise<string>,
  want: RecordedResponse,
): Promise<void> {
  expect(answer.status).toBe(want.status);
  for (const name of ["Content-Type", "X-Content-Type-Options", "Location"]) {
    expect([name, answer.headers[name]]).toEqual([name, want.headers[name]]);
  }
  if (want.body !== undefined && !want.bodyIsLong) expect(await text()).toBe(want.body);
}
