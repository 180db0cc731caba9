import { describe, expect, test } from "bun:test";
import type { CoreEvent } from "../../../src/base/api/event.ts";
import type { Container, ContainerStatus, Pod } from "../../../src/base/api/pod.ts";
import { explainPod, renderExplanation, toPlainText } from "../../../src/plan/status/explain-pod.ts";
import { ago, ended, has, NOW, running, shown } from "../../cli/print/pods.ts";

const event = (reason: string, message: string, container?: string): CoreEvent =>
  ({
    reason,
    message,
    count: 3,
    lastTimestamp: ago(31),
    involvedObject: { ...(container && { fieldPath: `spec.containers{${container}}` }) },
  }) as CoreEvent;

interface Given {
  status: ContainerStatus;
  container?: Partial<Container>;
  events?: CoreEvent[];
  log?: string[];
  spec?: Partial<Pod["spec"]>;
}

function explain({ status, container = {}, events = [], log = [], spec = {} }: Given) {
  const pod = shown({ mains: [status] });
  const edited = { ...pod, spec: { ...pod.spec, ...spec, containers: [{ ...pod.spec.containers[0]!, ...container }] } };
  return explainPod({ pod: edited, events, logs: new Map([["app", log]]), pods: [edited], now: NOW });
}

const waitingFor = (reason: string, message = "") => has("app", { waiting: { reason, message } });
const crashed = (exitCode: number, reason = "Error", more: object = {}) =>
  has(
    "app",
    { waiting: { reason: "CrashLoopBackOff", message: "back-off 1m20s restarting failed container=app" } },
    { restartCount: 4, lastState: ended(reason, exitCode, more) },
  );

describe("the commonest mistakes have a way out", () => {
  test.each<[string, Given, string, string]>([
    [
      "an image that does not exist",
      {
        status: waitingFor("ImagePullBackOff", "Back-off"),
        events: [event("Failed", 'Failed to pull image "x": manifest unknown', "app")],
      },
      "manifest unknown",
      "name and tag",
    ],
    [
      "a registry that wants credentials",
      { status: waitingFor("ErrImagePull", "pull access denied") },
      "denied",
      "docker login",
    ],
    [
      "an unreachable registry",
      { status: waitingFor("ErrImagePull", "lookup r: no such host") },
      "no such host",
      "--images-dir",
    ],
    ["an image that is never pulled", { status: waitingFor("ErrImageNeverPull") }, "Never", "IfNotPresent"],
    [
      "a missing ConfigMap",
      { status: waitingFor("CreateContainerConfigError", 'configmap "conf" not found') },
      'ConfigMap "conf" is missing',
      "optional",
    ],
    [
      "a missing key",
      { status: waitingFor("CreateContainerConfigError", "couldn't find key k in Secret default/s") },
      'key "k" is missing',
      "add the key",
    ],
    [
      "root that is forbidden",
      { status: waitingFor("CreateContainerConfigError", "container has runAsNonRoot and image will run as root") },
      "runs as root",
      "runAsUser",
    ],
    ["exit code 127", { status: crashed(127) }, "exit code 127", "not in the image"],
    [
      "too little memory",
      { status: crashed(137, "OOMKilled"), container: { resources: { limits: { memory: "16Mi" } } } },
      "16Mi",
      "raise",
    ],
    ["success that is restarted", { status: crashed(0, "Completed") }, "restartPolicy is Always", "foreground"],
    [
      "a shell line as a command",
      { status: crashed(127, "ContainerCannotRun"), container: { command: ["a && b"] } },
      "cannot be started",
      '["sh", "-c", "a && b"]',
    ],
    [
      "a failed liveness probe",
      {
        status: crashed(143),
        events: [
          event("Unhealthy", "Liveness probe failed: 500", "app"),
          event("Killing", "failed liveness probe", "app"),
        ],
      },
      "Liveness probe failed: 500",
      "startupProbe",
    ],
    [
      "a failed liveness probe of a program that ends with success on its stop signal, while it is not ready",
      {
        status: has("app", running, { ready: false, restartCount: 2, lastState: ended("Completed", 0) }),
        container: { readinessProbe: { tcpSocket: { port: 80 } } } as unknown as Partial<Container>,
        events: [
          event("Unhealthy", "Readiness probe failed: refused", "app"),
          event("Unhealthy", "Liveness probe failed: refused", "app"),
          event("Killing", "Container app failed liveness probe, will be restarted", "app"),
        ],
      },
      "Liveness probe failed: refused",
      "startupProbe",
    ],
    [
      "success after an earlier run that its probe ended",
      {
        status: crashed(0, "Completed"),
        events: [{ ...event("Killing", "Container app failed liveness probe", "app"), lastTimestamp: ago(90) }],
      },
      "restartPolicy is Always",
      "foreground",
    ],
    [
      "an edit of a container that is not ready yet",
      {
        status: has("app", running, { ready: false, started: true, restartCount: 1, lastState: ended("Error", 137) }),
        events: [event("Killing", "Container app definition changed, will be restarted", "app")],
      },
      "not ready",
      "",
    ],
    [
      "a port that is taken",
      { status: crashed(1), log: ["bind: address already in use"] },
      "end of its log",
      "each its own",
    ],
    [
      "a probe of a closed port",
      {
        status: has("app", running, { ready: false }),
        container: { readinessProbe: { httpGet: { port: 81 } } } as unknown as Partial<Container>,
        events: [event("Unhealthy", "Readiness probe failed: connection refused", "app")],
      },
      "connection refused",
      "0.0.0.0",
    ],
    [
      "a readiness gate",
      { status: has("app", running, { ready: false }), spec: { readinessGates: [{ conditionType: "lb" }] } },
      "pod",
      "",
    ],
  ])("%s", (_, given, problem, fix) => {
    const explanation = explain(given);
    expect(explanation.isReady).toBe(false);
    const text = renderExplanation(explanation);
    expect(text).toContain(problem);
    expect(text).toContain(fix);
  });
});

test("the next restart is reported", () => {
  // Ended 30 s ago, back-off of 80 s.
  expect(renderExplanation(explain({ status: crashed(1) }))).toContain("restarted 4 times; next start in 50 s");
});

test.each([
  [crashed(3), ["boom"], "its log above says why; kubelet-ts logs --previous shows"],
  [has("app", ended("Error", 3)), ["boom"], "its log above says why; kubelet-ts logs shows"],
  [crashed(3), [], "its log says why"],
])("the log of a container that ended is found", (status, log, fix) => {
  expect(renderExplanation(explain({ status, log }))).toContain(fix);
});

test("a pod that is ready needs no explanation", () => {
  const pod = shown({ ready: true });
  const explanation = explainPod({ pod, events: [], logs: new Map(), pods: [pod], now: NOW });
  expect(renderExplanation(explanation)).toBe('pod "default/web-node1" is Ready');
});

test("a missing volume and a refused host port belong to the pod", () => {
  const pending = shown({ mains: [waitingFor("ContainerCreating")], status: { phase: "Pending" } });
  const mount = event("FailedMount", 'MountVolume.SetUp failed for volume "v" : secret "tls" not found');
  const first = explainPod({ pod: pending, events: [mount], logs: new Map(), pods: [], now: NOW });
  expect(first.causes).toMatchObject([{ subject: "pod", fix: expect.stringContaining('Secret "tls"') }]);

  const refused = shown({
    mains: [],
    status: { phase: "Failed", reason: "NodePorts", message: "host port 80 is held" },
  });
  const second = explainPod({ pod: refused, events: [], logs: new Map(), pods: [], now: NOW });
  expect(second.causes).toMatchObject([{ facts: ["host port 80 is held"], fix: expect.stringContaining("hostPort") }]);
});

test("a container that only waits is left out where another one has a cause", () => {
  const pod = shown({
    init: [has("init", ended("Error", 1))],
    mains: [waitingFor("PodInitializing")],
    status: { phase: "Pending" },
  });
  const { causes, condition } = explainPod({ pod, events: [], logs: new Map(), pods: [], now: NOW });
  expect(causes.map(({ subject }) => subject)).toEqual(["init container init"]);
  expect(condition).toStartWith("Initialized is False");
});

test("the problem of a pod that waits for another pod is the message of its wait", () => {
  const message = 'waits for pod "default/db" to be Ready';
  const { causes } = explain({ status: waitingFor("WaitingForDependency", message) });
  expect(causes.map(({ problem }) => problem)).toEqual([message]);
});

test("an init container that runs is what the pod waits for", () => {
  const pod = shown({
    mains: [has("app", { waiting: { reason: "PodInitializing" } }, { ready: false })],
    init: [has("init", running, { ready: false })],
  });
  const { causes } = explainPod({ pod, events: [], logs: new Map(), pods: [pod], now: NOW });
  expect(causes[0]).toMatchObject({ subject: "init container init", problem: expect.stringMatching(/still runs/) });
});

test("a ready pod is explained with why it was restarted a short time ago", () => {
  const events = [
    event("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", "app"),
    event("Killing", "Container app failed liveness probe, will be restarted", "app"),
  ];
  const pod = shown({
    mains: [has("app", running, { ready: true, restartCount: 2, lastState: ended("Error", 137) })],
    ready: true,
  });
  const explanation = explainPod({ pod, events, logs: new Map(), pods: [pod], now: NOW });
  expect([explanation.isReady, explanation.causes]).toEqual([true, []]);
  const text = renderExplanation(explanation);
  expect(text).toContain("is Ready; it was restarted a short time ago:");
  expect(text).toContain("a liveness or startup probe failed");
  expect(text).toContain("statuscode: 500");
  const later = explainPod({ pod, events, logs: new Map(), pods: [pod], now: new Date(NOW.getTime() + 3_600_000) });
  expect(later.recent).toEqual([]);
});

test("a misspelt image has a near name among those of other pods", () => {
  const other = shown({ mains: [has("app", running, { ready: true })] });
  const named = { ...other.status!.containerStatuses![0]!, image: "busybox:1", imageID: "sha256:1" };
  const spec = { containers: [{ name: named.name, image: "busybox:1.35" }] };
  const pods = [{ metadata: { ...other.metadata, uid: "other" }, spec, status: { containerStatuses: [named] } }];
  const waiting = shown({ mains: [waitingFor("ErrImagePull", "no such host")] });
  const pod = { ...waiting, spec: { ...waiting.spec, containers: [{ name: "app", image: "busybx:1.35" }] } } as Pod;
  const { causes } = explainPod({ pod, events: [], logs: new Map(), pods: pods as Pod[], now: NOW });
  expect(causes[0]?.facts).toContain('this machine has an image "busybox:1.35": is that the one?');
});

test("a host port of another program names the program", () => {
  const pending = shown({ mains: [waitingFor("ContainerCreating")] });
  const pod = { ...pending, status: { ...pending.status, phase: "Pending" } } as Pod;
  const failed = event("FailedCreatePodSandBox", "listen tcp4 0.0.0.0:18082: bind: address already in use");
  const portHolders = new Map([[18_082, "nginx (pid 812)"]]);
  const { causes } = explainPod({ pod, events: [failed], logs: new Map(), pods: [], portHolders, now: NOW });
  expect(causes[0]).toMatchObject({ problem: "host port 18082 is in use" });
  expect(causes[0]?.facts).toContain("port 18082 is held by nginx (pid 812)");
});

test.each([
  ["/data is not a directory", "DirectoryOrCreate"],
  ["/data is not a file", "FileOrCreate"],
])("a hostPath that is missing: %s", (text, type) => {
  const pending = shown({ mains: [waitingFor("ContainerCreating")] });
  const pod = { ...pending, status: { ...pending.status, phase: "Pending" } } as Pod;
  const mount = event("FailedMount", `MountVolume.SetUp failed for volume "d" : hostPath type check failed: ${text}`);
  const { causes } = explainPod({ pod, events: [mount], logs: new Map(), pods: [], now: NOW });
  expect(causes[0]?.fix).toContain(type);
});

test("requests beyond the node are reported from requests beyond what is left", () => {
  const refused = (requested: number) => {
    const message = `Pod Node didn't have enough resource: cpu, requested: ${requested}, used: 1500, capacity: 2000`;
    const pod = { ...shown({}), status: { phase: "Failed", reason: "OutOfcpu", message } } as Pod;
    return explainPod({ pod, events: [], logs: new Map(), pods: [], now: NOW }).causes[0]?.fix;
  };
  expect(refused(64_000)).toContain("more than the whole node has");
  expect(refused(1_000)).toContain("remove another pod");
});

test("a pod that waits for another one names it; a manifest that is not in force says why", () => {
  const pod = shown({ mains: [waitingFor("WaitingForDependency", "waits")] });
  const conditions = (type: string, message: string, ready: "True" | "False") => [
    { type, status: "False", message },
    { type: "ContainersReady", status: ready, message: "not ready: [app]" },
    { type: "Ready", status: ready },
  ];
  const render = (found: object[]) =>
    renderExplanation(
      explainPod({
        pod: { ...pod, status: { ...pod.status, conditions: found } } as Pod,
        events: [],
        logs: new Map(),
        pods: [],
        now: NOW,
      }),
    );
  expect(render(conditions("DependenciesMet", 'waits for pod "default/db"', "False"))).toContain(
    'not Ready: DependenciesMet is False: waits for pod "default/db"',
  );
  expect(render(conditions("ManifestLive", "waits for its turn", "True"))).toEndWith(
    "is Ready\n\nmanifest: its newest revision does not run\n  waits for its turn",
  );
});

test.each([
  ["WaitingForDependency", 'waits for pod "default/db" to be Ready', "kubelet-ts explain db"],
  ["DependencyNotFound", 'there is no pod "default/db"', "add that pod"],
  ["DependencyCycle", "the dependencies form a cycle: default/a -> default/a", "take one of these pods out"],
])("%s has a way out", (reason, message, fix) => {
  expect(renderExplanation(explain({ status: waitingFor(reason, message) }))).toContain(`Fix: ${fix}`);
});

test.each([
  ["plain\ttext\nof two lines", "plain\ttext\nof two lines"],
  ["\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b[2J", "red link"],
  ["10 %\r20 %\r\n", "10 % 20 %\n"],
  ["a\0b\x9bc\u202edesrever", "abcdesrever"],
])("%j", (text, plain) => {
  expect(toPlainText(text)).toBe(plain);
});
