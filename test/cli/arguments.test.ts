import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { flagsOf, readArguments, writtenName } from "../../src/cli/arguments.ts";
import { COMMANDS, findCommand } from "../../src/cli/command-line.ts";
import { renderCommandHelp, renderHelp } from "../../src/cli/help.ts";
import { findObject } from "../../src/cli/sub-command.ts";

const ROOT = join(import.meta.dir, "../..");
const GET = findCommand("get")!;
const LOGS = findCommand("logs")!;

function parsed(argv: string[], command = GET): unknown {
  const result = readArguments(command.name, command.args, argv);
  if ("problem" in result) return result.problem;
  if (result.help) return "help";
  const values = [...result.values].map(([name, given]) => [name, given.at(-1)]);
  return [Object.fromEntries(values), ...result.positionals];
}

describe("arguments", () => {
  test.each([
    ["pods -o wide", [{ output: "wide" }, "pods"]],
    ["-owide pods", [{ output: "wide" }, "pods"]],
    ["-o=wide pods", [{ output: "wide" }, "pods"]],
    ["pods --output=json web", [{ output: "json" }, "pods", "web"]],
    ["pods --output json --output yaml", [{ output: "yaml" }, "pods"]],
    ["pods -Aw", [{ "all-namespaces": "true", watch: "true" }, "pods"]],
    ["pods -wn kube-system", [{ watch: "true", namespace: "kube-system" }, "pods"]],
    ["pods --watch=false", [{ watch: "false" }, "pods"]],
    ["pods -w=false", [{ watch: "false" }, "pods"]],
    ["pods -- --odd", [{}, "pods", "--odd"]],
    ["pods -l a=b", [{ selector: "a=b" }, "pods"]],
    ["pods -l=a=b", [{ selector: "a=b" }, "pods"]],
    ["pods --no-headers", [{ headers: "false" }, "pods"]],
    ["pods --no-headers=false", [{ headers: "true" }, "pods"]],
    ["--root-dir /srv/a pods -s 10255", [{ "root-dir": "/srv/a", server: "10255" }, "pods"]],
    ["pods --help", "help"],
    ["-h", "help"],
    ["pods -o", "--output needs a value: wide|json|yaml|name|jsonpath="],
    ["pods --watch=maybe", '--watch must be true or false (found "maybe")'],
    ["pods --ouptut=json", "--ouptut: no such flag of get; did you mean --output?"],
    ["pods -z", "-z: no such flag of get"],
    [
      "pods --show-labels",
      "--show-labels: no such flag of get; kubectl get shows labels in columns, after: kubelet-ts kubeconfig --merge",
    ],
    ["pods -namespace x", "-namespace: no such flag of get; did you mean --namespace?"],
    ["pods -sort-by=name", "-sort-by: no such flag of get; did you mean --sort-by?"],
    ["pods -zelector x", "-zelector: no such flag of get; did you mean --selector?"],
    ["pods --since=5m", "--since: no such flag of get; of events the latest is last: kubelet-ts events | tail"],
    ["pods --all", "--all: no such flag of get; did you mean --all-namespaces?"],
    ["pods -l=", "-l is empty: is a variable not set? Remove it if none is meant"],
    ["pods  -w", "an argument is empty: is a variable not set? Remove it if none is meant"],
    ["pods -nnamespace", [{ namespace: "namespace" }, "pods"]],
  ])("%s", (line, want) => {
    expect(parsed(line.split(" "))).toEqual(want);
  });

  test.each([
    ["-tail 5", "-tail: no such flag of logs; did you mean --tail?"],
    ["web -tail=5", "-tail: no such flag of logs; did you mean --tail?"],
    ["web -follow", "-follow: no such flag of logs; did you mean --follow?"],
    ["web --stream=Stdot", '--stream must be All, Stdout or Stderr (found "Stdot"; did you mean Stdout?)'],
    ["web -fp", [{ follow: "true", previous: "true" }, "web"]],
  ])("logs %s", (line, want) => {
    expect(parsed(line.split(" "), LOGS)).toEqual(want);
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

test("what follows the second positional belongs to another program", () => {
  const read = readArguments("exec", {}, ["web", "ls", "-l", "--help"], true);
  expect(read).toMatchObject({ positionals: ["web", "ls", "-l", "--help"] });
});

test("an unknown kind is refused with the nearest name", () => {
  expect(() => findObject(GET, "pdos")).toThrow("did you mean pods?");
  expect(() => findObject(GET, undefined)).toThrow("get what? Name one of: pods, nodes, events");
});

test("help fits a screen", () => {
  const lines = renderHelp(COMMANDS).trimEnd().split("\n");
  expect(lines.length).toBeLessThanOrEqual(40);
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  for (const { name } of COMMANDS.filter(({ section }) => section))
    expect(lines.join("\n")).toMatch(new RegExp(`^.{9}${name} `, "m"));
});

test.each(COMMANDS.map((command) => [command.name, command] as const))("%s --help", (_, command) => {
  const help = renderCommandHelp(command);
  const lines = help.split("\n");
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  expect(lines.length).toBeLessThanOrEqual(40);
  for (const flag of flagsOf(command.args)) expect(help).toContain(`--${writtenName(flag)}`);
  const shorts = flagsOf(command.args).flatMap(({ short }) => short ?? []);
  expect(new Set(shorts).size).toBe(shorts.length);
  for (const { def } of flagsOf(command.args)) expect(def.description ?? "negativeDescription" in def).toBeTruthy();
});

test("the commands that messages name take the flags that they name", () => {
  const refused = [...new Bun.Glob("src/{plan,kubelet,controllers,manifest,docker}/**/*.ts").scanSync(ROOT)].flatMap(
    (path) =>
      [...readFileSync(join(ROOT, path), "utf8").matchAll(/kubelet-ts ([a-z]+)((?: [^\s"'`;,:)]+)*)/g)].flatMap(
        ([said, name = "", rest = ""]) => {
          const command = findCommand(name);
          const flags = rest.split(" ").filter((word) => word.startsWith("-"));
          const result = command && readArguments(name, command.args, flags);
          return result && "problem" in result ? [`${path}: ${said}: ${result.problem}`] : [];
        },
      ),
  );
  expect(refused).toEqual([]);
});
