import { expect, test } from "bun:test";
import type { CoreEvent } from "../../../src/base/api/event.ts";
import type { Pod, PodStatus } from "../../../src/base/api/pod.ts";
import { explainPod, renderExplanation } from "../../../src/plan/status/explain-pod.ts";
import { ago, ended, has, NOW, running, type ShownPod, shown, waiting } from "../../cli/print/pods.ts";

const event = (reason: string, container = "app", message = ""): CoreEvent =>
  ({
    reason,
    message,
    count: 1,
    lastTimestamp: ago(5),
    involvedObject: { fieldPath: `spec.containers{${container}}` },
  }) as CoreEvent;

const explain = (pod: Pod, events: CoreEvent[] = [], log: string[] = []) =>
  explainPod({ pod, events, logs: new Map([["app", log]]), pods: [pod], now: NOW });

const conditions = (type: string, status: "True" | "False", message?: string) =>
  [{ type, status, ...(message && { message }) }] as NonNullable<PodStatus["conditions"]>;

const creating = (it: ShownPod = {}) => shown({ mains: [has("app", waiting("ContainerCreating"))], ...it });

test.each([
  ["Pulling", 'its image "busybox:test" is being pulled', [`since ${ago(5)}`]],
  ["Pulled", "it is being created", []],
  ["Created", "it is being started", []],
])("a container after the event %s says what it waits for", (reason, problem, facts) => {
  const pod = creating();
  pod.spec.containers[0]!.image = "busybox:test";
  const { causes } = explain(pod, [event("Pulled", "other"), event(reason)]);
  expect(causes).toEqual([{ subject: "container app", problem, facts, fix: "" }]);
});

test("the volumes and the network of a pod are one cause, however many containers wait for them", () => {
  const status = { phase: "Pending" as const, conditions: conditions("PodReadyToStartContainers", "False") };
  const pod = creating({ mains: ["a", "b"].map((name) => has(name, waiting("ContainerCreating"))), status });
  expect(explain(pod).causes).toEqual([
    { subject: "pod", problem: "its volumes and its network are being set up", facts: [], fix: "" },
  ]);
});

test("a volume that failed before the network was made is not the cause any more", () => {
  const isMade = { phase: "Pending" as const, conditions: conditions("PodReadyToStartContainers", "True") };
  const mount = { ...event("FailedMount"), message: 'secret "tls" not found', involvedObject: {} } as CoreEvent;
  expect(explain(creating({ status: isMade }), [mount]).causes.map(({ subject }) => subject)).toEqual([
    "container app",
  ]);
});

test("a volume that an edit gave to a pod that runs is the cause, for all its containers", () => {
  const waitsForIt = { waiting: { reason: "FailedMount", message: 'secret "tls" not found' } };
  const pod = creating({ mains: ["a", "b"].map((name) => has(name, waitsForIt)) });
  const mount = { ...event("FailedMount"), message: 'secret "tls" not found', involvedObject: {} } as CoreEvent;
  expect(explain(pod, [mount]).causes.map(({ subject, problem }) => `${subject}: ${problem}`)).toEqual([
    'pod: the Secret "tls" is missing',
  ]);
  // Events are lost when the kubelet is restarted.
  expect(explain(pod).causes).toMatchObject([
    { facts: ['secret "tls" not found'], fix: expect.stringContaining('Secret "tls"') },
  ]);
});

test("containers that wait for an init container leave the cause to it", () => {
  const inits = [has("done", ended("Completed"), { ready: true }), has("migrate", running, { ready: false })];
  const pod = shown({ init: inits, mains: ["a", "b"].map((name) => has(name, waiting("PodInitializing"))) });
  expect(explain(pod).causes.map(({ subject, problem }) => `${subject}: ${problem}`)).toEqual([
    "init container migrate: it still runs; the next container waits for its end",
  ]);
});

test("the first of several init containers is being created", () => {
  const inits = ["first", "second"].map((name) => has(name, waiting("PodInitializing")));
  const pod = shown({ init: inits, mains: [has("app", waiting("PodInitializing"))] });
  expect(
    explain(pod, [event("Pulling", "first")]).causes.map(({ subject, problem }) => `${subject}: ${problem}`),
  ).toEqual(['init container first: its image "busybox:test" is being pulled']);
});

test.each<[string, PodStatus, string, string[]]>([
  [
    "waits for a pod of its name",
    { phase: "Pending", message: 'waits until pod "default/web" is gone' },
    'it waits until pod "default/web" is gone',
    [],
  ],
  [
    "is not assigned to the node",
    { phase: "Pending", conditions: conditions("PodScheduled", "False", "1 node(s) were unschedulable") },
    "it is not assigned to the node",
    ["1 node(s) were unschedulable"],
  ],
  ["is new", { phase: "Pending" }, "the kubelet has not started it yet", []],
])("a pod without containers %s", (_, status, problem, facts) => {
  const pod = { ...shown({ mains: [] }), status };
  expect(explain(pod).causes).toEqual([{ subject: "pod", problem, facts, fix: "" }]);
});

test("a pod that is being removed says what it waits for, and nothing else", () => {
  const metadata = { deletionTimestamp: ago(-20), deletionGracePeriodSeconds: 30 };
  const pod = shown({ mains: [has("app", running), has("done", ended("Error", 1))], ready: true, metadata });
  const explanation = explain(pod);
  expect(explanation.isReady).toBe(false);
  expect(renderExplanation(explanation)).toBe(
    [
      'pod "default/web-node1" is Terminating, not Ready',
      `\n\npod: it is being removed, and waits for the end of app\n  its grace period of 30 s ends at ${ago(-20)}`,
    ].join(""),
  );
});

test("a pod whose container the engine does not remove says why", () => {
  const refusal = "Error: cannot remove a container: device or resource busy";
  const pod = shown({ mains: [has("app", ended("Completed", 0))], metadata: { deletionTimestamp: ago(20) } });
  const [cause] = explain(pod, [{ ...event("FailedKillPod", "app", refusal), involvedObject: {} as never }]).causes;
  expect(cause?.facts).toEqual([refusal]);
  expect(cause?.fix).toContain("restart it");
});

test("a hook of the container's start that has not ended, and one that failed", () => {
  const inHook = explain(creating({ mains: [has("app", running, { ready: false, started: false })] }));
  expect(inHook.causes[0]?.problem).toBe("its postStart hook has not ended");
  const crashed = has("app", waiting("CrashLoopBackOff"), { restartCount: 1, lastState: ended("Error", 137) });
  const failed = explain(creating({ mains: [crashed] }), [
    event("FailedPostStartHook", "app", "Exec lifecycle hook failed: exit code 1"),
    event("Killing", "app", "FailedPostStartHook"),
  ]);
  expect(failed.causes[0]?.problem).toBe("its postStart hook failed, so it was restarted");
  expect(failed.causes[0]?.facts).toContain("Exec lifecycle hook failed: exit code 1");
});

test.each([
  ["wget: bad address 'db'", {}, "the name of a Service, while a pod of it is Ready"],
  [
    ";; connection timed out; no servers could be reached",
    { dnsPolicy: "None" as const },
    "spec.dnsConfig.nameservers",
  ],
  ["getaddrinfo ENOTFOUND db", { dnsPolicy: "Default" as const }, "set dnsPolicy: ClusterFirst,"],
  ["exec /v/run: exec format error", {}, "add #!/bin/sh to the script"],
  ["no such host", { hostNetwork: true }, "set dnsPolicy: ClusterFirstWithHostNet,"],
  ["dial tcp 172.17.0.3:5432: connect: connection refused", {}, "explain service"],
])("a program that ends because of %j", (line, spec, fix) => {
  const crashed = has("app", waiting("CrashLoopBackOff"), { restartCount: 1, lastState: ended("Error", 1) });
  const pod = shown({ mains: [crashed], spec });
  expect(explain({ ...pod, spec: { ...pod.spec, ...spec } }, [], [line]).causes[0]?.fix).toContain(fix);
});

test("what a program writes does not control the reader's terminal", () => {
  const crashed = has("app", waiting("CrashLoopBackOff"), { restartCount: 1, lastState: ended("Error", 1) });
  const log = [`\x1b[31mfailed\x1b[0m\x1b]0;title\x07 \u202e${"x".repeat(10_000)}`];
  const [cause] = explain(shown({ mains: [crashed] }), [], log).causes;
  expect(cause?.facts.at(-1)).toMatch(/^ {2}failed x{400,500}…$/);
});

test.each([
  ["Evicted", "the node ran short of memory and evicted it (Evicted)"],
  ["NodeAffinity", "the labels of the node are not those it asks for (NodeAffinity)"],
  ["OutOfpods", "the node has as many pods as it may have (OutOfpods)"],
  ["SysctlForbidden", "it sets a sysctl that pods may not set here (SysctlForbidden)"],
  ["OfAnotherKubelet", "the node ended or refused the pod (OfAnotherKubelet)"],
])("a pod that the node refused or ended: %s", (reason, problem) => {
  const pod = { ...shown({ mains: [] }), status: { phase: "Failed" as const, reason, message: "" } };
  expect(explain(pod).causes[0]?.problem).toBe(problem);
});
