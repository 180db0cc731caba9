import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { explainObject } from "../../../src/plan/status/explain-object.ts";
import { toClusterState, toIngressRow, toServiceRow, toWorkloadRow } from "../../../src/server/page/page-rows.ts";
import { aService } from "../../controllers/workload-world.ts";
import { aPod } from "../../support/builders.ts";

/** As `kubelet-ts explain` has it. */
const explain = (kind: string, spec: object, status: object | undefined, pods: Pod[] = []) =>
  status && explainObject(kind, { kind, object: { metadata: {}, spec, status }, pods, events: [] });

const AT = "2026-11-22T03:00:00Z";
const condition = (type: string, status: string, more: object = {}) => ({ conditions: [{ type, status, ...more }] });

test.each<[string, object, object | undefined, string, boolean, string]>([
  ["Deployment", { replicas: 3 }, undefined, "Pending", false, ""],
  ["Deployment", { replicas: 3 }, { replicas: 3, readyReplicas: 3, updatedReplicas: 3 }, "3/3 ready", true, ""],
  [
    "Deployment",
    { replicas: 3 },
    { replicas: 4, readyReplicas: 3, updatedReplicas: 1 },
    "3/3 ready, 1 updated",
    true,
    "",
  ],
  [
    "Deployment",
    { replicas: 1 },
    { replicas: 1, updatedReplicas: 1, ...condition("Progressing", "False", { reason: "ProgressDeadlineExceeded" }) },
    "0/1 ready",
    false,
    "Progressing is False: ProgressDeadlineExceeded",
  ],
  ["Deployment", { replicas: 0 }, {}, "0/0 ready", true, "no pods are wanted"],
  ["StatefulSet", { replicas: 2 }, { replicas: 1, readyReplicas: 1, updatedReplicas: 1 }, "1/2 ready", false, ""],
  ["ReplicaSet", {}, { replicas: 1, readyReplicas: 1 }, "1/1 ready", true, ""],
  ["DaemonSet", {}, { numberReady: 0, desiredNumberScheduled: 1 }, "0/1 ready", false, ""],
  ["Job", {}, { active: 1, ready: 1 }, "Running", true, ""],
  ["Job", {}, { active: 1, failed: 2 }, "Running", false, "2 pods have failed"],
  ["Job", {}, condition("Complete", "True"), "Complete", true, ""],
  [
    "Job",
    {},
    condition("Failed", "True", { reason: "BackoffLimitExceeded", message: "too often" }),
    "Failed",
    false,
    "Failed is True: BackoffLimitExceeded",
  ],
  ["CronJob", { schedule: "0 3 * * *" }, {}, "0 3 * * *", true, ""],
  ["CronJob", { schedule: "0 3 * * *", suspend: true }, {}, "Suspended", true, "it is suspended"],
  ["CronJob", { schedule: "0 0 31 2 *" }, {}, "0 0 31 2 *", false, 'no day is in its schedule "0 0 31 2 *"'],
])("%s %p with status %p", (kind, spec, status, text, isGood, detail) => {
  const explanation = explain(kind, spec, status);
  const facts = { kind, namespace: "a", name: "b", source: "", spec, status, nextRun: undefined, explanation };
  const row = toWorkloadRow(facts);
  expect([row.status, row.isGood, row.explanation[0]?.problem ?? ""]).toEqual([text, isGood, detail]);
});

const GIVEN = { clusterIP: "10.96.0.7", ports: [{ port: 80, nodePort: 30080, protocol: "TCP" }] };
const [READY, OTHER] = [
  { name: "b", isReady: true },
  { name: "a", isReady: false },
];

test.each<[string, object, object, object, object, (typeof READY)[]?]>([
  [
    "has its address, its ports and its pods, the Ready ones first",
    { type: "NodePort" },
    GIVEN,
    {},
    {
      type: "NodePort",
      address: "10.96.0.7",
      ports: ["80:30080/TCP"],
      status: "1/2 ready",
      isGood: true,
      pods: [READY, OTHER],
    },
  ],
  ["without a Ready pod is bad", {}, {}, {}, { status: "0/1 ready", isGood: false, pods: [OTHER] }, [OTHER]],
  ["that is headless", { clusterIP: "None" }, {}, {}, { address: "headless", ports: ["80/TCP"], isGood: true }],
  [
    "of another name leads to no pods",
    { type: "ExternalName", externalName: "example.com" },
    {},
    {},
    { address: "example.com", status: "-", isGood: true },
  ],
  [
    "that is not published says why",
    {},
    {},
    condition("PortNotAllocated", "True", { reason: "PortNotAllocated", message: "held" }),
    {
      isGood: false,
      explanation: [
        { problem: "PortNotAllocated is True: PortNotAllocated", facts: ["held"], fix: expect.any(String) },
      ],
    },
  ],
])("a Service %s", (_, spec, given, status, want, pods = [OTHER, READY]) => {
  const selected = pods.map(({ isReady }) => ({
    ...aPod(),
    status: { conditions: [{ type: "Ready" as const, status: isReady ? ("True" as const) : ("False" as const) }] },
  }));
  const service = aService("web", spec);
  const explanation = explain("Service", service.spec, status, selected);
  expect(toServiceRow(service, given, pods, explanation)).toMatchObject(want);
});

const backend = (name: string) => ({ backend: { service: { name } } });
const rule = (host: string, ...names: string[]) => ({ host, http: { paths: names.map(backend) } });

test.each<[string, object, object, object]>([
  [
    "leads to the pods of its Services, each once",
    { rules: [rule("a.test", "web", "web"), rule("b.test", "none")], tls: [{ hosts: ["a.test"] }] },
    { loadBalancer: { ingress: [{ ip: "192.0.2.2" }] } },
    { address: "a.test, b.test", ports: ["TLS"], status: "served at 192.0.2.2", isGood: true, pods: [READY, OTHER] },
  ],
  [
    "with a default backend alone serves every host",
    { defaultBackend: backend("web").backend },
    { loadBalancer: {} },
    { address: "*", ports: [], status: "not served", isGood: false, pods: [READY, OTHER] },
  ],
  [
    "of another class has the cause",
    { rules: [rule("a.test", "other")] },
    {},
    { status: "nothing serves it", explanation: [{ problem: "its class has no server on this node" }], pods: [] },
  ],
])("an Ingress %s", (_, spec, status, want) => {
  const services = [toServiceRow(aService("web"), {}, [OTHER, READY], undefined)];
  const ingress = { metadata: { name: "a" }, spec };
  expect(toIngressRow(ingress, services, explain("Ingress", spec, status))).toMatchObject({ type: "Ingress", ...want });
});

test("a CronJob shows its last and its next run; a suspended one has no next", () => {
  const runs = (suspend: boolean) => {
    const facts = { kind: "CronJob", namespace: "a", name: "b", source: "", spec: { schedule: "@daily", suspend } };
    const more = { nextRun: new Date(AT), explanation: undefined };
    const row = toWorkloadRow({ ...facts, status: { lastScheduleTime: AT }, ...more });
    return [row.lastRun, row.nextRun];
  };
  expect(runs(false)).toEqual([Date.parse(AT), Date.parse(AT)]);
  expect(runs(true)).toEqual([Date.parse(AT), 0]);
});

const NOW = Date.parse("2026-11-22T12:00:00Z");
const failure = (secondsAgo: number, reason = "ECONNREFUSED") => ({ reason, since: new Date(NOW - secondsAgo * 1000) });

test.each([
  { when: "it answers", outage: undefined, refusal: undefined, shown: null },
  { when: "one request has failed a moment ago", outage: failure(4), refusal: failure(4), shown: null },
  {
    when: "it has not answered for a minute",
    outage: failure(60),
    refusal: failure(50, "GET /api/v1/pods: ECONNREFUSED"),
    shown: { isAnswering: false, reason: "ECONNREFUSED", since: NOW - 60_000 },
  },
  {
    when: "it answers, but refuses this node",
    outage: undefined,
    refusal: failure(30, "GET /api/v1/pods answered 401: Unauthorized"),
    shown: { isAnswering: true, reason: "GET /api/v1/pods answered 401: Unauthorized", since: NOW - 30_000 },
  },
])("the API server as the page shows it when $when", ({ outage, refusal, shown }) => {
  expect(toClusterState({ server: "https://api", outage, refusal }, NOW)).toEqual({
    server: "https://api",
    failure: shown,
  });
});
