import { describe, expect, test } from "bun:test";
import type { ContainerStatus, PodSpec } from "../../../src/base/api/pod.ts";
import { computePhase } from "../../../src/plan/status/compute-pod-status.ts";
import { aContainer, aPod } from "../../support/builders.ts";

type State = "waiting" | "running" | "crashed" | "ok" | "failed" | "unknown";

function statusOf(name: string, state: State): ContainerStatus | undefined {
  const base = {
    name,
    ready: false,
    restartCount: 0,
    image: "",
    imageID: "",
    lastState: {},
    started: state === "running",
  };
  const ended = (exitCode: number) => ({ terminated: { exitCode } });
  switch (state) {
    case "waiting":
      return { ...base, state: { waiting: { reason: "ContainerCreating" } } };
    case "running":
      return { ...base, state: { running: {} } };
    case "crashed":
      return { ...base, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: ended(1) };
    case "ok":
      return { ...base, state: ended(0) };
    case "failed":
      return { ...base, state: ended(1) };
    case "unknown":
      return undefined;
  }
}

const statuses = (states: readonly State[], prefix: string) =>
  states.map((state, index) => statusOf(`${prefix}${index}`, state)).filter((status) => status !== undefined);

interface Row {
  when: string;
  policy?: PodSpec["restartPolicy"];
  own?: "Never" | "OnFailure" | "Always";
  inits?: State[];
  mains: State[];
  want: string;
}

describe("phase", () => {
  test.each<Row>([
    { when: "nothing is known yet", mains: ["unknown"], want: "Pending" },
    { when: "one waits for its first start although another runs", mains: ["running", "waiting"], want: "Pending" },
    { when: "all run", mains: ["running", "running"], want: "Running" },
    { when: "one is in CrashLoopBackOff", mains: ["running", "crashed"], want: "Running" },
    { when: "all are in CrashLoopBackOff", mains: ["crashed"], want: "Running" },
    { when: "all ended well under Always", mains: ["ok"], want: "Running" },
    { when: "all ended well under Never", policy: "Never", mains: ["ok", "ok"], want: "Succeeded" },
    { when: "one failed under Never", policy: "Never", mains: ["ok", "failed"], want: "Failed" },
    { when: "one failed and one runs under Never", policy: "Never", mains: ["running", "failed"], want: "Running" },
    { when: "one failed under OnFailure: it runs again", policy: "OnFailure", mains: ["failed"], want: "Running" },
    { when: "all ended well under OnFailure", policy: "OnFailure", mains: ["ok"], want: "Succeeded" },
    { when: "containers may end by their own policy under Always", own: "Never", mains: ["ok"], want: "Succeeded" },
    { when: "and fail by it", own: "Never", mains: ["failed"], want: "Failed" },
    { when: "an init container runs", inits: ["running"], mains: ["waiting"], want: "Pending" },
    {
      when: "an init container failed under Never",
      policy: "Never",
      inits: ["failed"],
      mains: ["waiting"],
      want: "Failed",
    },
    { when: "an init container failed under Always", inits: ["crashed"], mains: ["waiting"], want: "Pending" },
    { when: "init containers are done", inits: ["ok"], mains: ["running"], want: "Running" },
    { when: "init containers were removed from the engine", inits: ["unknown"], mains: ["running"], want: "Running" },
  ])("$when: $want", ({ policy = "Always", own, inits = [], mains, want }) => {
    const { spec } = aPod({
      restartPolicy: policy,
      initContainers: inits.map((_, index) => aContainer({ name: `i${index}` })),
      containers: mains.map((_, index) => aContainer({ name: `c${index}`, ...(own && { restartPolicy: own }) })),
    });
    expect(computePhase(spec, statuses(inits, "i"), statuses(mains, "c"))).toBe(want as never);
  });
});
