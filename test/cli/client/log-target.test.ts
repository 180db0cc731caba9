import { describe, expect, test } from "bun:test";
import {
  chooseContainers,
  findListedTargets,
  findLogTarget,
  type ListedContainer,
} from "../../../src/cli/client/log-target.ts";
import { LABEL } from "../../../src/runtime/labels.ts";
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

  test("the choice is told", () => {
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
  ])("%s", (_, status, previous, told) => {
    const found = findLogTarget(shown({ mains: [status] }), "app", previous);
    expect(found).toHaveProperty("problem", expect.stringContaining(told));
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

let created = 1_700_000_000;
const listed = (pod: string, container: string, attempt = 0, over: Record<string, string> = {}): ListedContainer => ({
  Id: `${pod}/${container}/${attempt}`,
  Created: created++,
  Labels: {
    [LABEL.type]: "container",
    [LABEL.podName]: pod,
    [LABEL.podNamespace]: "default",
    [LABEL.podUid]: pod,
    [LABEL.containerName]: container,
    [LABEL.restartCount]: String(attempt),
    [LABEL.node]: "node1",
    ...over,
  },
});

describe("by labels alone", () => {
  const containers = [
    listed("web-node1", "POD", 0, { [LABEL.type]: "podsandbox" }),
    listed("web-node1", "app", 2),
    listed("web-node1", "app", 1),
    listed("two-node1", "a"),
    listed("two-node1", "b"),
  ];
  const web = { pod: "web", namespace: undefined, container: undefined, all: false, previous: false };

  test.each([
    ["the newest attempt", web, ["web-node1/app/2"]],
    ["the one before", { ...web, previous: true }, ["web-node1/app/1"]],
    ["by its whole name", { ...web, pod: "web-node1" }, ["web-node1/app/2"]],
    ["a named container", { ...web, pod: "two", container: "b" }, ["two-node1/b/0"]],
    ["all", { ...web, pod: "two", all: true }, ["two-node1/a/0", "two-node1/b/0"]],
  ])("%s", (_, wanted, want) => {
    const found = findListedTargets(containers, wanted);
    expect("problem" in found ? found : found.map(({ containerId }) => containerId)).toEqual(want);
  });

  test.each([
    ["several containers", { ...web, pod: "two" }, "-c: a, b"],
    ["no such pod", { ...web, pod: "wbe-node1" }, 'did you mean "web-node1"?'],
    ["no such namespace", { ...web, namespace: "prod" }, 'no container of a pod "web"'],
    ["no such container", { ...web, container: "x" }, "it has app"],
    ["no attempt before", { ...web, pod: "two", container: "a", previous: true }, "no previous one"],
  ])("%s", (_, wanted, told) => {
    expect(findListedTargets(containers, wanted)).toHaveProperty("problem", expect.stringContaining(told));
  });

  test("pods of the same name in two namespaces", () => {
    const twin = listed("web-node1", "app", 0, { [LABEL.podNamespace]: "prod", [LABEL.podUid]: "other" });
    expect(findListedTargets([...containers, twin], web)).toHaveProperty("problem", expect.stringContaining("-n"));
    expect(findListedTargets([...containers, twin], { ...web, namespace: "prod" })).toHaveLength(1);
  });
});
