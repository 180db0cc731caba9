import { describe, expect, test } from "bun:test";
import { chooseContainers, findLogTarget } from "../../../src/cli/client/choose-pod.ts";
import { ended, has, running, shown, waiting } from "../print/pods.ts";

const TWO = shown({ mains: [has("app", running), has("side", running)], init: [has("prep", ended("Completed"))] });

describe("which container", () => {
  test.each([
    ["the only one", shown(), undefined, false, ["app"]],
    ["the first of several, saying so", TWO, undefined, false, ["app"]],
    ["a named one", TWO, "side", false, ["side"]],
    ["an init container", TWO, "prep", false, ["prep"]],
    ["all, init containers first", TWO, undefined, true, ["prep", "app", "side"]],
    [
      "the one an annotation says",
      { ...TWO, metadata: { ...TWO.metadata, annotations: { "kubectl.kubernetes.io/default-container": "side" } } },
      undefined,
      false,
      ["side"],
    ],
  ])("%s", (_, pod, named, all, want) => {
    expect(chooseContainers(pod, named, all)).toMatchObject({ names: want });
  });

  test("the choice is reported", () => {
    expect(chooseContainers(TWO, undefined, false)).toHaveProperty(
      "note",
      'Defaulted container "app" out of: app, side, prep (init)',
    );
    expect(chooseContainers(shown(), undefined, false)).not.toHaveProperty("note");
  });

  test("one that is not there", () => {
    expect(chooseContainers(TWO, "sied", false)).toEqual({
      problem: 'container "sied" is not in pod "web-node1": it has app, side, prep (init); did you mean side?',
    });
  });
});

const dead = (id: string) => ended("Error", 1, { containerID: `docker://${id}` });

describe("which of its attempts", () => {
  test.each([
    ["it runs", has("app", running), false, "app-0"],
    ["it has ended", has("app", dead("app-0")), false, "app-0"],
    [
      "it waits to be started again",
      has("app", waiting("CrashLoopBackOff"), { lastState: dead("app-3") }),
      false,
      "app-3",
    ],
    ["the one before", has("app", running, { lastState: dead("app-2") }), true, "app-2"],
    [
      "the one before one that waits",
      has("app", waiting("CrashLoopBackOff"), { lastState: dead("app-3") }),
      true,
      "app-3",
    ],
  ])("%s", (_, status, previous, want) => {
    expect(findLogTarget(shown({ mains: [status] }), "app", previous)).toMatchObject({ containerId: want });
  });

  test.each([
    [
      "it was not started",
      has("app", { waiting: { reason: "ErrImagePull", message: "no such image\n" } }),
      false,
      "ErrImagePull: no such image",
    ],
    ["nothing is known", has("app", waiting()), false, "no logs yet"],
    ["it was never restarted", has("app", running), true, "no previous one"],
  ])("%s", (_, status, previous, message) => {
    const found = findLogTarget(shown({ mains: [status] }), "app", previous);
    expect(found).toHaveProperty("problem", expect.stringContaining(message));
  });

  test("the node refused the pod", () => {
    const refused = shown({
      mains: [],
      spec: { containers: shown().spec.containers },
      status: { reason: "OutOfpods" },
    });
    expect(findLogTarget(refused, "app", false)).toHaveProperty("problem", expect.stringContaining("OutOfpods"));
  });
});
