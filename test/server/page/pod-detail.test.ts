import { expect, test } from "bun:test";
import type { CoreEvent } from "../../../src/base/api/event.ts";
import type { Container, ContainerStatus, Pod } from "../../../src/base/api/pod.ts";
import type { Finding } from "../../../src/base/model/finding.ts";
import type { PodRow } from "../../../src/page/pod-row.ts";
import type { ProbeAttempt } from "../../../src/page/wire.ts";
import {
  hideLogEnds,
  hideProbeOutput,
  type PodDetailFacts,
  toManifestView,
  toPodDetail,
} from "../../../src/server/page/pod-detail.ts";
import type { CgroupStats } from "../../../src/stats/cgroups/cgroup-figures.ts";
import { aContainer, aPod } from "../../support/builders.ts";

const UID = "u".repeat(32);
const AT = "2026-11-22T12:00:00Z";

function detailOf(pod: Pod, more: Partial<PodDetailFacts> = {}) {
  return toPodDetail({
    row: {} as PodRow,
    pod,
    usage: undefined,
    events: [],
    services: [],
    explanation: { causes: [], recent: [] } as unknown as PodDetailFacts["explanation"],
    probeAttempts: () => [],
    manifest: { text: "", isSource: true, firstLine: 1, findings: [] },
    imageUpdates: [],
    counters: () => undefined,
    ...more,
  });
}

const podWith = (
  container: Partial<Container>,
  status: Partial<ContainerStatus> = {},
  spec: Partial<Pod["spec"]> = {},
) =>
  ({
    ...aPod({ containers: [aContainer(container)], ...spec }),
    status: { containerStatuses: [{ name: "app", ready: false, restartCount: 0, ...status }] },
  }) as unknown as Pod;

const usageOf = (measured: object) =>
  ({ podRef: { name: "", namespace: "", uid: UID }, startTime: "", containers: [], ...measured }) as NonNullable<
    PodDetailFacts["usage"]
  >;

const containerOf = (pod: Pod, more: Partial<PodDetailFacts> = {}) => detailOf(pod, more).containers[0]!;

test.each<[string, Partial<ContainerStatus>]>([
  ["running", { ready: true, state: { running: { startedAt: AT } } }],
  ["running, not ready", { state: { running: { startedAt: AT } } }],
  ["CrashLoopBackOff", { state: { waiting: { reason: "CrashLoopBackOff" } } }],
  ["waiting", {}],
  ["OOMKilled (exit code 137)", { state: { terminated: { reason: "OOMKilled", exitCode: 137 } } } as never],
  ["terminated (exit code 1)", { state: { terminated: { exitCode: 1 } } } as never],
])("a container in the state %p", (state, status) => {
  expect(containerOf(podWith({}, status))).toMatchObject({ state, status });
});

test("limits with the use, throttling and OOM kills", () => {
  const pod = podWith({ resources: { limits: { cpu: "250m", memory: "64Mi" } } });
  const cpu = { time: "", usageNanoCores: 1e8 };
  const memory = { time: "", workingSetBytes: 5000, usageBytes: 9000 };
  const usage = usageOf({ containers: [{ name: "app", startTime: "", cpu, memory }] });
  const counters = (name: string) =>
    (name === "app" ? { cpu: { periods: 40, throttledPeriods: 10 }, memory: { oomKills: 2 } } : undefined) as
      | CgroupStats
      | undefined;
  expect(containerOf(pod, { usage, counters })).toMatchObject({
    cpuLimitCores: 0.25,
    memoryLimitBytes: 64 * 2 ** 20,
    cpuCores: 0.1,
    memoryBytes: 5000,
    throttling: { periods: 40, throttled: 10 },
    oomKills: 2,
  });
  expect(containerOf(podWith({}))).toMatchObject({
    cpuLimitCores: 0,
    memoryLimitBytes: 0,
    throttling: null,
    oomKills: null,
  });
});

test("each probe has its attempts", () => {
  const attempt: ProbeAttempt = { time: 1, result: "failure", output: "503", durationMs: 2 };
  const probeAttempts = (container: string, kind: string) =>
    container === "app" && kind === "readiness" ? [attempt] : [];
  const detail = containerOf(podWith({}), { probeAttempts });
  expect(detail.probeAttempts).toEqual({ startup: [], readiness: [attempt], liveness: [] });
});

test("containers in the order init, sidecar, main, ephemeral, each with its own status", () => {
  const pod = {
    ...aPod({
      initContainers: [aContainer({ name: "init" }), aContainer({ name: "proxy", restartPolicy: "Always" })],
      containers: [aContainer({ name: "app" })],
      ephemeralContainers: [aContainer({ name: "debugger" })] as never,
    }),
    status: {
      initContainerStatuses: [{ name: "proxy", ready: true, state: { running: { startedAt: AT } } }],
      ephemeralContainerStatuses: [{ name: "debugger", state: { terminated: { exitCode: 0, reason: "Completed" } } }],
    },
  } as unknown as Pod;
  expect(detailOf(pod).containers.map(({ spec, kind, state }) => [spec.name, kind, state])).toEqual([
    ["init", "init", "waiting"],
    ["proxy", "sidecar", "running"],
    ["app", "main", "waiting"],
    ["debugger", "ephemeral", "Completed (exit code 0)"],
  ]);
});

test("volumes with their type and fill: the limit of an emptyDir counts, else the size of its disk", () => {
  const pod = podWith({}, {}, {
    volumes: [
      { name: "cache", emptyDir: { sizeLimit: "1Mi" } },
      { name: "data", emptyDir: {} },
      { name: "config", configMap: { name: "x" } },
    ],
  } as never);
  const volume = (name: string) => ({ name, usedBytes: 100, capacityBytes: 5e9, availableBytes: 1, time: "" });
  const usage = usageOf({ volume: [volume("cache"), volume("data")] });
  expect(detailOf(pod, { usage }).volumes).toEqual([
    { name: "cache", type: "emptyDir", usedBytes: 100, capacityBytes: 2 ** 20 },
    { name: "data", type: "emptyDir", usedBytes: 100, capacityBytes: 5e9 },
    { name: "config", type: "configMap x", usedBytes: 0, capacityBytes: 0 },
  ]);
});

test("conditions with their time, events of this pod only, and why it is not ready with what to do", () => {
  const event = (uid: string) => ({ involvedObject: { kind: "Pod", uid } }) as unknown as CoreEvent;
  const conditions = [{ type: "Ready", status: "False", reason: "X", lastTransitionTime: AT }];
  const pod = { ...aPod(), status: { conditions } } as unknown as Pod;
  const why = { facts: ["exit code 3"], fix: "see its log" };
  const cause = { subject: "container app", problem: "its program failed", ...why };
  const detail = detailOf(pod, {
    events: [event("other"), event(pod.metadata.uid!)],
    explanation: { causes: [cause], recent: [] } as never,
  });
  expect(detail.status).toEqual(pod.status);
  expect(detail.events).toEqual([event(pod.metadata.uid!)]);
  expect(detail.explanation).toEqual([{ problem: "container app: its program failed", ...why }]);
});

const SECRET = "password=hunter2";
const ended = { terminated: { exitCode: 1, reason: "Error", message: SECRET } };

function pod(policy: string | undefined): Pod {
  const containers = [{ name: "app", ...(policy && { terminationMessagePolicy: policy }) }];
  const statuses = [{ name: "app", state: ended, lastState: ended }];
  return {
    metadata: { name: "web" },
    spec: { initContainers: containers, containers },
    status: { phase: "Failed", initContainerStatuses: statuses, containerStatuses: statuses },
  } as unknown as Pod;
}

test("a termination message that may be the end of a log is left out, and nothing else", () => {
  const shown = hideLogEnds(pod("FallbackToLogsOnError"));
  expect(JSON.stringify(shown)).not.toContain(SECRET);
  const { state } = shown.status!.containerStatuses![0]!;
  expect(state).toEqual({ terminated: { exitCode: 1, reason: "Error" } } as never);
});

test.each([undefined, "File"])("a message that the program wrote to its file is shown: %p", (policy) => {
  const given = pod(policy);
  expect(hideLogEnds(given)).toBe(given);
});

test("what a probe that succeeded has read is left out", () => {
  const answer = { time: 1, durationMs: 2, output: SECRET };
  expect(
    hideProbeOutput([
      { ...answer, result: "success" },
      { ...answer, result: "failure" },
    ]),
  ).toEqual([
    { ...answer, result: "success", output: "" },
    { ...answer, result: "failure" },
  ]);
});

const FILE = "/etc/kubernetes/manifests/web.yaml";
const finding = (line: number, file = FILE) =>
  ({ file, line, column: 3, severity: "error", field: "spec.x", message: "bad" }) as Finding;

const view = (text: string | undefined, line: number, findings: readonly Finding[] = []) =>
  toManifestView({ file: FILE, line, text, findings, rendered: "kind: Pod" });

const TWO = "kind: Pod\nname: a\n---\nkind: Pod\nname: b\n";

test("only the document of the pod is shown, with the numbers of its lines in the file", () => {
  expect(view(TWO, 4)).toMatchObject({ text: "kind: Pod\nname: b", firstLine: 4, isSource: true });
  expect(view(TWO, 1)).toMatchObject({ text: "kind: Pod\nname: a", firstLine: 1 });
  expect(view(TWO, 3)).toMatchObject({ firstLine: 4 });
  expect(view("{}", 99)).toMatchObject({ text: "{}", firstLine: 1 });
});

test("findings are those of the document", () => {
  const findings = [finding(2), finding(5), finding(5, "/other.yaml")];
  const bad = { column: 3, isError: true, message: "spec.x: bad" };
  expect(view(TWO, 4, findings).findings).toEqual([{ line: 5, ...bad }]);
  expect(view(TWO, 1, findings).findings).toEqual([{ line: 2, ...bad }]);
});

test("without the text the pod is shown, with all findings of the file", () => {
  expect(view(undefined, 4, [finding(2), finding(5)])).toMatchObject({
    text: "kind: Pod",
    isSource: false,
    findings: [{ line: 2 }, { line: 5 }],
  });
});

test.each(["kind: Secret\n", '{"kind":"List","items":[]}', "kind: 'SecretList'"])("%s is not shown", (text) => {
  expect(view(text, 1).isSource).toBe(false);
});
