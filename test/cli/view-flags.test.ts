import { describe, expect, test } from "bun:test";
import { GET, LOGS, VIEW_COMMANDS } from "../../src/cli/view-commands.ts";
import { findObject, flagsOf, parseViewArguments, renderViewHelp } from "../../src/cli/view-flags.ts";

function parsed(argv: string[], command = GET): unknown {
  const result = parseViewArguments(command, argv);
  if ("problem" in result) return result.problem;
  return result.help ? "help" : [Object.fromEntries(result.values), ...result.positionals];
}

describe("arguments", () => {
  test.each([
    [
      ["pods", "-o", "wide"],
      [{ output: "wide" }, "pods"],
    ],
    [
      ["-owide", "pods"],
      [{ output: "wide" }, "pods"],
    ],
    [
      ["-o=wide", "pods"],
      [{ output: "wide" }, "pods"],
    ],
    [
      ["pods", "--output=json", "web"],
      [{ output: "json" }, "pods", "web"],
    ],
    [
      ["pods", "--output", "json", "--output", "yaml"],
      [{ output: "yaml" }, "pods"],
    ],
    [
      ["pods", "-Aw"],
      [{ "all-namespaces": "true", watch: "true" }, "pods"],
    ],
    [
      ["pods", "-wn", "kube-system"],
      [{ watch: "true", namespace: "kube-system" }, "pods"],
    ],
    [
      ["pods", "--watch=false"],
      [{ watch: "false" }, "pods"],
    ],
    [
      ["pods", "-w=false"],
      [{ watch: "false" }, "pods"],
    ],
    [
      ["pods", "--", "--odd"],
      [{}, "pods", "--odd"],
    ],
    [
      ["pods", "-l", "a=b"],
      [{ selector: "a=b" }, "pods"],
    ],
    [
      ["pods", "-l=a=b"],
      [{ selector: "a=b" }, "pods"],
    ],
    [["pods", "--help"], "help"],
    [["-h"], "help"],
    [["pods", "-o"], "--output needs a value: wide|json|yaml|name"],
    [["pods", "-o", "ymal"], '--output must be wide, json, yaml or name (found "ymal"; did you mean yaml?)'],
    [["pods", "--watch=maybe"], '--watch must be true or false (found "maybe")'],
    [["pods", "--ouptut=json"], "--ouptut: no such flag of get; did you mean --output?"],
    [["pods", "-z"], "-z: no such flag of get"],
  ])("%j", (argv, want) => {
    expect(parsed(argv)).toEqual(want);
  });

  test("switches can be written together", () => {
    expect(parsed(["web", "-fp"], LOGS)).toEqual([{ follow: "true", previous: "true" }, "web"]);
  });
});

test.each([
  ["po", "pods"],
  ["pod", "pods"],
  ["pods", "pods"],
  ["no", "nodes"],
  ["ev", "events"],
])("%s are %s", (written, want) => {
  expect(findObject(GET, written)).toBe(want);
});

test("what is not known has a nearest name", () => {
  expect(findObject(GET, "pdos")).toEqual({
    problem: '"pdos" is nothing get knows: pods, nodes, events; did you mean pods?',
  });
  expect(findObject(GET, undefined)).toEqual({ problem: "get what? Name one of: pods, nodes, events" });
});

test.each(VIEW_COMMANDS.map((command) => [command.name, command] as const))("%s --help", (_, command) => {
  const help = renderViewHelp(command);
  for (const line of help.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  for (const { name } of flagsOf(command)) expect(help).toContain(`--${name}`);
  const shorts = flagsOf(command).flatMap(({ short }) => short ?? []);
  expect(new Set(shorts).size).toBe(shorts.length);
});
