import { describe, expect, test } from "bun:test";
import { chooseContainers, findLogTarget, findPod, inScope } from "../../../src/cli/client/choose-pod.ts";
import { parseExit } from "../../../src/cli/client/container-streams.ts";
import { CommandError } from "../../../src/cli/sub-command.ts";
import { exitStatus, failureStatus } from "../../../src/server/channel-protocol.ts";
import { ended, has, running, shown, waiting } from "../print/pods.ts";

const WEB = shown({ name: "web-node1" });
const DB = shown({ name: "db-node1", namespace: "prod" });
const TWIN = shown({ name: "twin-node1" });
const OTHER_TWIN = shown({ name: "twin-node1", namespace: "prod" });
const ALL = [WEB, DB, TWIN, OTHER_TWIN];

describe("the pod that is meant", () => {
  test.each([
    ["web-node1", undefined, WEB],
    ["web", undefined, WEB],
    ["pod/web", undefined, WEB],
    ["pods/web-node1", "default", WEB],
    ["db", undefined, DB],
    ["twin", "prod", OTHER_TWIN],
  ])("%s in %p", (name, namespace, want) => {
    expect(findPod(ALL, name, { namespace })).toBe(want);
  });

  test("a full name is preferred to one without the node's", () => {
    const odd = shown({ name: "web" });
    expect(findPod([WEB, odd], "web", { namespace: undefined })).toBe(odd);
  });
});

describe("what is reported instead", () => {
  test.each([
    ["twin", undefined, ["default, prod", "-n"]],
    ["wbe", undefined, ['pod "wbe" not found;', 'did you mean "web"?']],
    ["pod", undefined, ['pod "pod" not found; a kind is written together with its name: pod/NAME']],
    ["we", undefined, ['did you mean "web-node1"?']],
    ["node", undefined, ['did you mean "web-node1"?']],
    ["e1", undefined, ["there are web-node1, db-node1, twin-node1"]],
    ["nothing-like-it", undefined, ["there are web-node1, db-node1, twin-node1"]],
    ["db", "default", ['not found in namespace "default"', 'it is in namespace "prod"']],
    ["wbe", "prod", ["there are db-node1, twin-node1"]],
    ["wbe", "prdo", ["the namespace has no pods; did you mean prod?"]],
    ["wbe", "elsewhere", ["the namespace has no pods; they are in default, prod"]],
  ])("%s in %p", (name, namespace, message) => {
    const found = findPod(ALL, name, { namespace });
    for (const part of message) expect((found as { problem: string }).problem).toContain(part);
  });

  test("there are none", () => {
    const problem = 'pod "web" not found; there are no pods';
    expect(findPod([], "web", { namespace: undefined })).toMatchObject({ problem });
  });

  test("of many pods ten are named", () => {
    const many = Array.from({ length: 30 }, (_, i) => shown({ name: `p${i}-node1` }));
    expect(findPod(many, "zzzzzz", { namespace: undefined })).toHaveProperty(
      "problem",
      expect.stringContaining("(30 in all)"),
    );
  });
});

test("a namespace, or all", () => {
  expect(inScope(ALL, { namespace: "prod" })).toEqual([DB, OTHER_TWIN]);
  expect(inScope(ALL, { namespace: undefined })).toHaveLength(4);
});

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
const CRASHED = has("app", waiting("CrashLoopBackOff"), { lastState: dead("app-3") });
const NOT_PULLED = { waiting: { reason: "ErrImagePull", message: "no such image\n" } };

describe("the instance of the container", () => {
  test.each([
    ["it runs", has("app", running), false, "app-0"],
    ["it has ended", has("app", dead("app-0")), false, "app-0"],
    ["it waits to be started again", CRASHED, false, "app-3"],
    ["the one before", has("app", running, { lastState: dead("app-2") }), true, "app-2"],
    ["the one before one that waits", CRASHED, true, "app-3"],
  ])("%s", (_, status, previous, want) => {
    expect(findLogTarget(shown({ mains: [status] }), "app", previous)).toMatchObject({ containerId: want });
  });

  test.each([
    ["it was not started", has("app", NOT_PULLED), false, "ErrImagePull: no such image"],
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

test.each([0, 1, 137])("exit code %d is read from the Status that carries it", (code) => {
  expect(parseExit(exitStatus(code))).toBe(code);
});

test("no Status: the end of the command is not known", () => expect(parseExit(undefined)).toBeUndefined());

test("a command that did not run is an error with the server's reason", () => {
  expect(() => parseExit(failureStatus("no such program"))).toThrow("no such program");
  expect(() => parseExit(failureStatus(""))).toThrow(CommandError);
});
