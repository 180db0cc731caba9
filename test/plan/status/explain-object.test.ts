import { expect, test } from "bun:test";
import { explainObject, renderObjectExplanation } from "../../../src/plan/status/explain-object.ts";
import { aContainer, aPod } from "../../support/builders.ts";

const PORTS = [aContainer({ ports: [{ containerPort: 80, protocol: "TCP" }] })];
const READY = {
  ...aPod({ containers: PORTS }),
  status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
} as never;
const replicaFailure = { type: "ReplicaFailure", status: "True", reason: "FailedCreate", message: "no room" };
const isReady = { type: "Ready", status: "True" };
const isDown = { ...isReady, status: "False", message: "docker is down" };
const isFull = { ...isReady, type: "DiskPressure" };
const unpublished = { type: "PortNotAllocated", status: "True", reason: "PortNotAllocated", message: "held by a" };
const complete = { type: "Complete", status: "True" };
const stuck = { type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" };
const unclaimed = { type: "ManifestLive", status: "False", reason: "Unclaimed", message: "its source /x is gone" };
const failed = { type: "Failed", status: "True", reason: "BackoffLimitExceeded", message: "three times" };

test.each<[string, object, object, number, string]>([
  ["Deployment", { replicas: 2 }, { readyReplicas: 2 }, 0, 'x "web" is ready: 2 of 2 pods are Ready'],
  ["Deployment", {}, {}, 0, 'x "web" is not ready: 0 of 1 pods are Ready'],
  [
    "Deployment",
    {},
    { readyReplicas: 1, conditions: [unclaimed] },
    0,
    "is ready: 1 of 1 pods are Ready\n\nmanifest: its newest text is not in force\n  its source /x is gone",
  ],
  [
    "Deployment",
    { replicas: 2, template: { spec: { containers: [{ ports: [{ containerPort: 1, hostPort: 80 }] }] } } },
    { readyReplicas: 1 },
    0,
    "all its pods ask for port 80 of the machine: one of them gets it\n  Fix: set spec.replicas to 1",
  ],
  [
    "Service",
    { selector: {} },
    { conditions: [unpublished] },
    1,
    "PortNotAllocated\n  held by a\n  Fix: set another nodePort",
  ],
  ["StatefulSet", { replicas: 0 }, {}, 0, "no pods are wanted\n  Fix: set spec.replicas"],
  ["Deployment", { paused: true }, {}, 0, "its rollout is paused\n  Fix: set spec.paused to false"],
  ["ReplicaSet", {}, { conditions: [replicaFailure] }, 0, "ReplicaFailure is True: FailedCreate\n  no room"],
  ["DaemonSet", {}, { desiredNumberScheduled: 0 }, 0, "nodeSelector or affinity does not match this node"],
  [
    "Job",
    {},
    { conditions: [failed] },
    0,
    "Failed is True: BackoffLimitExceeded\n  three times\n  Fix: its pods failed too often",
  ],
  [
    "Job",
    {},
    { failed: 2, active: 1 },
    0,
    "not ready: 0 of 1 completions, 1 pod is active\n\n2 pods have failed\n  Fix: their",
  ],
  ["Job", { parallelism: 0 }, {}, 0, "no pods are wanted\n  Fix: set spec.parallelism"],
  ["Job", {}, { failed: 2, succeeded: 1, conditions: [complete] }, 0, 'x "web" is ready: Complete'],
  [
    "Deployment",
    {},
    { readyReplicas: 1, conditions: [stuck] },
    0,
    "not ready: 1 of 1 pods are Ready\n\nProgressing is",
  ],
  ["Job", { completions: 3 }, { succeeded: 1, active: 1 }, 0, "is ready: 1 of 3 completions, 1 pod is active"],
  ["CronJob", { suspend: true }, {}, 0, "it is suspended\n  Fix: set spec.suspend to false"],
  ["CronJob", { schedule: "0 0 31 2 *" }, {}, 0, "is not ready: it has not run yet\n\nno day is in its schedule"],
  ["Service", { selector: { app: "web" } }, {}, 0, "its selector matches no pod\n  Fix: compare"],
  ["Service", { selector: { app: "web" } }, {}, 1, 'x "web" is ready: 1 of its 1 pods are Ready'],
  [
    "Service",
    { selector: { app: "web" }, ports: [{ targetPort: "http" }] },
    {},
    1,
    'no container of its pods has a port called "http"',
  ],
  [
    "Service",
    { selector: { app: "web" }, ports: [{ targetPort: 80 }] },
    {},
    1,
    'x "web" is ready: 1 of its 1 pods are Ready',
  ],
  [
    "Service",
    { selector: { app: "web" }, ports: [{ port: 8080 }] },
    {},
    1,
    "is ready: 1 of its 1 pods are Ready\n\nno container of its pods declares port 8080, to which it leads\n  Fix: if nothing listens there, set targetPort to 80",
  ],
  ["Service", { ports: [] }, {}, 0, "no selector and no ready address: it leads nowhere\n  Fix: write Endpoints"],
  ["Service", { type: "ExternalName" }, {}, 0, "is ready: it is a name for another host"],
  ["Ingress", {}, { loadBalancer: { ingress: [{ ip: "1.2.3.4" }] } }, 0, 'x "web" is ready: served at 1.2.3.4'],
  ["Ingress", {}, { loadBalancer: {} }, 0, 'x "web" is not ready: it is not served'],
  ["Ingress", { ingressClassName: "a" }, {}, 0, "its class has no server on this node\n  Fix: remove spec.ing"],
  ["Node", {}, { conditions: [isReady] }, 0, 'x "web" is ready: its conditions'],
  ["Node", { unschedulable: true }, { conditions: [isReady] }, 0, "it is cordoned: new pods stay Pending\n  Fix: kube"],
  ["Node", { unschedulable: true }, { conditions: [isReady] }, 0, 'x "web" is not ready: its conditions'],
  ["Node", {}, { conditions: [isDown] }, 0, "Ready is False: docker is"],
  ["Node", {}, { conditions: [isFull] }, 0, "not ready: pods may not run\n\nDiskPressure is True"],
  ["PersistentVolume", {}, { phase: "Available" }, 0, 'x "web" is ready: Available'],
  ["PersistentVolumeClaim", {}, {}, 0, 'x "web" is not ready: Pending'],
  ["PersistentVolumeClaim", { volumeName: "v" }, {}, 0, 'it names the volume "v", which is not there'],
])("%s %j %j", (kind, spec, status, podCount, text) => {
  const pods = Array.from({ length: podCount }, () => READY);
  const object = { metadata: { name: "web" }, spec, status };
  const explanation = explainObject(kind, { kind: "x", object, pods, events: [] });
  expect(renderObjectExplanation(explanation!)).toContain(text);
});

const aJob = (name: string, creationTimestamp: string, ...conditions: object[]) => ({
  metadata: { name, creationTimestamp },
  status: { conditions },
});

test("a CronJob is not ready while its last Job failed", () => {
  const object = { metadata: { name: "web" }, spec: {}, status: { lastScheduleTime: "T" } };
  const first = aJob("web-1", "2026-01-01T00:00:00Z", failed);
  const second = aJob("web-2", "2026-01-02T00:00:00Z", { type: "Complete", status: "True" });
  const render = (...jobs: object[]) =>
    renderObjectExplanation(
      explainObject("CronJob", { kind: "x", object, pods: [], events: [], jobs: jobs as never })!,
    );
  expect(render(first)).toStartWith(
    'x "web" is not ready: last run T failed\n\nits last Job "web-1" failed: BackoffLimitExceeded\n  three times\n  Fix: ',
  );
  expect(render(second, first)).toBe('x "web" is ready: last run T');
});

test("a CronJob is not ready while its last run keeps the others from running", () => {
  const object = { metadata: { name: "web" }, spec: {}, status: { lastScheduleTime: "T" } };
  const skipped = [{ type: "Normal", reason: "JobAlreadyActive", message: "Not starting job" }] as never;
  const render = (jobs: object[], events: never) =>
    renderObjectExplanation(explainObject("CronJob", { kind: "x", object, pods: [], events, jobs: jobs as never })!);
  const running = aJob("web-1", "2026-01-01T00:00:00Z");
  expect(render([running], skipped)).toBe(
    'x "web" is not ready: last run T\n\nits last run has not ended, and concurrencyPolicy Forbid skips the ones after it\n' +
      "  Fix: kubelet-ts explain job/web-1 says what it does; activeDeadlineSeconds of spec.jobTemplate.spec bounds it",
  );
  expect(render([running], [] as never)).toContain("is ready");
});

test("a CronJob is not ready while the pods of its run have not begun", () => {
  const object = { metadata: { name: "web" }, spec: {}, status: { lastScheduleTime: "T" } };
  const jobs = [aJob("web-1", "2026-01-01T00:00:00Z")];
  const pods = [{ spec: { containers: [] }, metadata: {}, status: { phase: "Pending" } }] as never;
  expect(renderObjectExplanation(explainObject("CronJob", { kind: "x", object, pods, events: [], jobs })!)).toBe(
    'x "web" is not ready: last run T\n\nthe pods of its Job "web-1" have not begun\n  Fix: correct what its pods say: kubelet-ts explain',
  );
});

test("a Job whose pods have not begun is not ready", () => {
  const object = { metadata: { name: "web" }, spec: {}, status: { active: 1 } };
  const pod = { spec: { containers: [] }, metadata: {}, status: { phase: "Pending" } } as never;
  expect(renderObjectExplanation(explainObject("Job", { kind: "x", object, pods: [pod], events: [] })!)).toBe(
    'x "web" is not ready: 0 of 1 completions, 1 pod is active\n\nits pods have not begun\n  Fix: correct what its pods say: kubelet-ts explain',
  );
});

test("an Ingress is not ready while a part of it does not work; its events are not told again, nor old ones", () => {
  const object = { metadata: { name: "web" }, spec: {}, status: { loadBalancer: { ingress: [{ ip: "1.2.3.4" }] } } };
  const problem = { reason: "BackendNotFound", message: 'there is no Service "a/b"' } as const;
  const events = [
    { type: "Warning", ...problem },
    { type: "Warning", reason: "CertificateNotUsable", message: "old" },
  ] as never;
  const found = explainObject("Ingress", { kind: "x", object, pods: [], events, problems: [problem] });
  expect(renderObjectExplanation(found!)).toBe(
    'x "web" is not ready: served at 1.2.3.4, but not all of it\n\n' +
      'there is no Service "a/b"\n  Fix: correct the name and the port of the backend, or add the Service: kubelet-ts get services',
  );
});

test("an Ingress without Ready pods behind it names the Service to look at", () => {
  const object = { metadata: { name: "web" }, spec: {}, status: { loadBalancer: {} } };
  const problem = { reason: "NoReadyPods", message: "none is Ready", service: "a/b" } as const;
  const found = explainObject("Ingress", { kind: "x", object, pods: [], events: [], problems: [problem] });
  expect(found?.causes[0]?.fix).toBe("kubelet-ts explain service/b -n a says why: its selector, or its pods");
});

test("a warning that a condition tells is not told twice", () => {
  const object = { metadata: { name: "web" }, spec: {}, status: { conditions: [failed] } };
  const events = [{ type: "Warning", reason: "BackoffLimitExceeded", message: "three times" } as never];
  const found = explainObject("Job", { kind: "x", object, pods: [], events });
  expect(found?.causes.map(({ problem }) => problem)).toEqual(["Failed is True: BackoffLimitExceeded"]);
});

test("warnings are causes, the latest three; a kind without a state has no explanation", () => {
  const object = { metadata: { name: "data" } };
  const events = [1, 2, 3, 4].map((n) => ({ type: "Warning", reason: `R${n}`, message: `m${n}` }) as never);
  const found = explainObject("PersistentVolumeClaim", { kind: "x", object, pods: [], events });
  expect(found?.causes.map(({ problem }) => problem)).toEqual(["R2", "R3", "R4"]);
  expect(explainObject("ConfigMap", { kind: "x", object, pods: [], events })).toBeUndefined();
});

test.each([
  ["default", "Fix: start the kubelet with --local-api-address="],
  ["other", "Fix: write Endpoints"],
])("the Service kubernetes of the namespace %s without an address: %s", (namespace, fix) => {
  const object = { metadata: { name: "kubernetes", namespace }, spec: {} };
  const explanation = explainObject("Service", { kind: "x", object, pods: [], events: [] });
  expect(renderObjectExplanation(explanation!)).toContain(fix);
});
