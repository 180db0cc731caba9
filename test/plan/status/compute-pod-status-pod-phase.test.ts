import { expect, test } from "bun:test";
import type { Container, ContainerStatus, PodPhase } from "../../../src/base/api/pod.ts";
import { computePhase } from "../../../src/plan/status/compute-pod-status.ts";
import { aContainer, aPod } from "../../support/builders.ts";

/** A container without `state` was removed from the engine, or never made. */
interface One {
  state?: ContainerStatus["state"];
  lastState?: ContainerStatus["lastState"];
  started?: boolean;
  spec?: Partial<Container>;
}

const gone: One = {};
const waiting = (reason = "ContainerCreating"): One => ({ state: { waiting: { reason } } });
const running: One = { state: { running: {} } };
const ended = (exitCode: number, spec: Partial<Container> = {}): One => ({ state: { terminated: { exitCode } }, spec });
const crashLoop = (exitCode: number): One => ({
  ...waiting("CrashLoopBackOff"),
  lastState: { terminated: { exitCode } },
});
const sidecar = (started: boolean): One => ({ ...running, spec: { restartPolicy: "Always" }, started });
const own = (restartPolicy: Container["restartPolicy"] & string): Partial<Container> => ({ restartPolicy });
const rule = (action: "Restart" | "RestartAllContainers", ...values: number[]): Partial<Container> => ({
  restartPolicy: "Never",
  restartPolicyRules: [{ action, exitCodes: { operator: "In", values } }],
});

const partsOf = (kind: string, ones: readonly One[]) => ({
  containers: ones.map(({ spec }, index) => aContainer({ name: `${kind}${index}`, ...spec })),
  statuses: ones.flatMap(({ state, lastState = {}, started = state?.running !== undefined }, index) =>
    state === undefined
      ? []
      : { name: `${kind}${index}`, state, lastState, started, ready: false, restartCount: 0, image: "", imageID: "" },
  ),
});

test.each<[when: string, "Always" | "OnFailure" | "Never", inits: One[], mains: One[], want: PodPhase]>([
  ["nothing is known yet", "Always", [], [gone], "Pending"],
  ["one waits for its first start although another runs", "Always", [], [running, waiting()], "Pending"],
  ["all run", "Always", [], [running, running], "Running"],
  ["one backs off, one runs", "Always", [], [running, crashLoop(3)], "Running"],
  ["one backs off, one has no image", "Always", [], [crashLoop(2), waiting("ImagePullBackOff")], "Pending"],
  ["all back off after success", "Always", [], [crashLoop(0)], "Running"],
  ["all back off after a failure", "Always", [], [crashLoop(1)], "Running"],
  ["all ended well a moment ago", "Always", [], [ended(0)], "Running"],
  ["all ended well", "Never", [], [ended(0), ended(0)], "Succeeded"],
  ["one failed", "Never", [], [ended(0), ended(137)], "Failed"],
  ["one failed and one runs", "Never", [], [ended(137), running], "Running"],
  ["one failed: it runs again", "OnFailure", [], [ended(1)], "Running"],
  ["one is done, one runs", "OnFailure", [], [ended(0), running], "Running"],
  ["one backs off next to one that is done", "OnFailure", [], [crashLoop(1), ended(0)], "Running"],
  ["all ended well", "OnFailure", [], [ended(0)], "Succeeded"],
  ["an init container runs", "Always", [running], [waiting()], "Pending"],
  ["an init container failed", "Never", [ended(1)], [waiting()], "Failed"],
  ["an init container backs off", "Always", [crashLoop(1)], [waiting()], "Pending"],
  ["init containers are done", "Always", [ended(0)], [running], "Running"],
  ["init containers were removed from the engine", "Always", [gone], [running], "Running"],
  ["a sidecar is not up yet", "Always", [sidecar(false)], [waiting()], "Pending"],
  ["a sidecar outlives the mains", "Never", [sidecar(true)], [ended(0)], "Succeeded"],
  // The container's own policy and rules.
  ["own Never, ended well", "Always", [], [ended(0, own("Never"))], "Succeeded"],
  ["own Never, failed", "Always", [], [ended(1, own("Never"))], "Failed"],
  ["own OnFailure, failed a moment ago", "Always", [], [ended(1, own("OnFailure"))], "Running"],
  ["own Always", "Never", [], [ended(0, own("Always"))], "Running"],
  ["a rule brings it back", "Never", [], [ended(42, rule("Restart", 42))], "Running"],
  ["a rule brings all back", "Never", [], [ended(42, rule("RestartAllContainers", 42))], "Running"],
  ["no rule matches", "Never", [], [ended(1, rule("Restart", 42))], "Failed"],
  ["an init container with own OnFailure", "Never", [ended(1, own("OnFailure"))], [waiting()], "Pending"],
  ["an init container with own Never", "Always", [ended(1, own("Never"))], [waiting()], "Failed"],
])("phase: %s, under %s", (_when, restartPolicy, inits, mains, want) => {
  const [init, main] = [partsOf("i", inits), partsOf("c", mains)];
  const { spec } = aPod({ restartPolicy, initContainers: init.containers, containers: main.containers });
  expect(computePhase(spec, init.statuses, main.statuses)).toBe(want);
});
