import { expect, test } from "bun:test";
import type { Container, ContainerStatus, Pod, PodPhase } from "../../../src/base/api/pod.ts";
import { computePhase } from "../../../src/plan/status/compute-pod-status.ts";
import { aContainer, aPod } from "../../support/builders.ts";

const TIMES = { startedAt: "2026-01-02T03:04:05Z", finishedAt: "2026-01-02T03:04:06Z" };
const ended = (exitCode: number) => ({
  terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error", ...TIMES },
});
const running = { running: { startedAt: TIMES.startedAt } };
const waiting = (reason = "ContainerCreating") => ({ waiting: { reason } });

interface One {
  state: ContainerStatus["state"];
  last?: ContainerStatus["lastState"];
  spec?: Partial<Container>;
  started?: boolean;
}

interface Row {
  when: string;
  policy?: "Always" | "OnFailure" | "Never";
  inits?: One[];
  mains: One[];
  want: PodPhase;
}

const crashLoop = (exitCode: number): One => ({ state: waiting("CrashLoopBackOff"), last: ended(exitCode) });
const sidecar = { restartPolicy: "Always" } as const;
const rules = (action: "Restart" | "RestartAllContainers", ...values: number[]) => ({
  restartPolicy: "Never" as const,
  restartPolicyRules: [{ action, exitCodes: { operator: "In" as const, values } }],
});

const ROWS: Row[] = [
  {
    when: "one of two has not started yet",
    mains: [{ state: running }, { state: waiting() }],
    want: "Pending",
  },
  { when: "one backs off, one runs", mains: [{ state: running }, crashLoop(3)], want: "Running" },
  {
    when: "one backs off, one has no image",
    mains: [crashLoop(2), { state: waiting("ImagePullBackOff") }],
    want: "Pending",
  },
  { when: "Always, all backing off", mains: [crashLoop(0)], want: "Running" },
  { when: "Always, ended well a moment ago", mains: [{ state: ended(0) }], want: "Running" },
  {
    when: "OnFailure, one done, one runs",
    policy: "OnFailure",
    mains: [{ state: ended(0) }, { state: running }],
    want: "Running",
  },
  { when: "OnFailure, failed a moment ago", policy: "OnFailure", mains: [{ state: ended(1) }], want: "Running" },
  {
    when: "OnFailure, backing off next to one that is done",
    policy: "OnFailure",
    mains: [crashLoop(1), { state: ended(0) }],
    want: "Running",
  },
  {
    when: "Never, one failed",
    policy: "Never",
    mains: [{ state: ended(0) }, { state: ended(137) }],
    want: "Failed",
  },
  {
    when: "Never, one failed, one runs",
    policy: "Never",
    mains: [{ state: ended(137) }, { state: running }],
    want: "Running",
  },
  {
    when: "an init container backs off",
    inits: [crashLoop(1)],
    mains: [{ state: waiting() }],
    want: "Pending",
  },
  {
    when: "an init container failed, Never",
    policy: "Never",
    inits: [{ state: ended(1) }],
    mains: [{ state: waiting() }],
    want: "Failed",
  },
  {
    when: "a sidecar is not up yet",
    inits: [{ state: running, spec: sidecar, started: false }],
    mains: [{ state: waiting() }],
    want: "Pending",
  },
  {
    when: "a sidecar outlives the mains",
    policy: "Never",
    inits: [{ state: running, spec: sidecar, started: true }],
    mains: [{ state: ended(0) }],
    want: "Succeeded",
  },
  // The container's own policy and rules.
  {
    when: "own OnFailure under Always, failed a moment ago",
    mains: [{ state: ended(1), spec: { restartPolicy: "OnFailure" } }],
    want: "Running",
  },
  {
    when: "own Always under Never",
    policy: "Never",
    mains: [{ state: ended(0), spec: { restartPolicy: "Always" } }],
    want: "Running",
  },
  {
    when: "a rule brings it back",
    policy: "Never",
    mains: [{ state: ended(42), spec: rules("Restart", 42) }],
    want: "Running",
  },
  {
    when: "a rule brings all back",
    policy: "Never",
    mains: [{ state: ended(42), spec: rules("RestartAllContainers", 42) }],
    want: "Running",
  },
  {
    when: "no rule matches",
    policy: "Never",
    mains: [{ state: ended(1), spec: rules("Restart", 42) }],
    want: "Failed",
  },
  {
    when: "an init container with own OnFailure under Never",
    policy: "Never",
    inits: [{ state: ended(1), spec: { restartPolicy: "OnFailure" } }],
    mains: [{ state: waiting() }],
    want: "Pending",
  },
  {
    when: "an init container with own Never under Always",
    inits: [{ state: ended(1), spec: { restartPolicy: "Never" } }],
    mains: [{ state: waiting() }],
    want: "Failed",
  },
];

function parts(kind: string, ones: readonly One[]): { containers: Container[]; statuses: ContainerStatus[] } {
  const containers = ones.map(({ spec }, index) => aContainer({ name: `${kind}${index}`, ...spec }));
  const statuses = ones.map(({ state, last = {}, started = false }, index) => ({
    ...{ name: `${kind}${index}`, state, lastState: last, started },
    ...{ ready: false, restartCount: 0, image: "", imageID: "" },
  }));
  return { containers, statuses };
}

test.each(ROWS)(
  "phase by recorded cases and restart rules: $when: $want",
  ({ policy = "Always", inits = [], mains, want }) => {
    const [init, main] = [parts("i", inits), parts("c", mains)];
    const pod: Pod = aPod({ restartPolicy: policy, initContainers: init.containers, containers: main.containers });
    expect(computePhase(pod.spec, init.statuses, main.statuses)).toBe(want);
  },
);
