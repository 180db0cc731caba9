import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS, flagTakesValue } from "../../../src/cli/command-line.ts";
import { completeWords, renderCandidates, runComplete, SCRIPTS } from "../../../src/cli/commands/completion.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { capturedIo } from "../captured-io.ts";

const tempDir = tempDirs();
const CONTEXT = { commands: COMMANDS, takesValue: flagTakesValue };

/** The words a shell is given, and what it adds of its own. */
function complete(...words: string[]): [string[], string] {
  const lines = renderCandidates(completeWords(words, CONTEXT)).trimEnd().split("\n");
  return [lines.slice(0, -1).map((line) => line.split("\t")[0] ?? ""), lines.at(-1) ?? ""];
}

describe("words", () => {
  test.each([
    [["conf"], ["config"], ":files"],
    [["--root-dir", "/srv/a", "conf"], ["config"], ":files"],
    [["--root-dir", ""], [], ":directories"],
    [["--config", ""], [], ":files"],
    [["--log-format", ""], ["text", "json", "journald"], ":none"],
    [["--log-format", "="], ["text", "json", "journald"], ":none"],
    [["--log-format", "=", "j"], ["json", "journald"], ":none"],
    [["--log-format=j"], ["--log-format=json", "--log-format=journald"], ":none"],
    [["--max-pods", ""], [], ":none"],
    [["get", "p"], ["pods"], ":none"],
    [["--server", "1", "get", "p"], ["pods"], ":none"],
    [["get", "--root-dir", ""], [], ":directories"],
    [["get", "pods", "--output", "=", "y"], ["yaml"], ":none"],
    [["get", "-o", "w"], ["wide"], ":none"],
    [["logs", "--all"], ["--all-containers"], ":none"],
    [["get", "--no"], ["--no-headers"], ":none"],
    [["top", "pods", "--sort-by", ""], ["cpu", "memory"], ":none"],
    [["get", "--max-p"], [], ":none"],
    [["config", "--max-pod"], ["--max-pods"], ":none"],
    [["validate", "w"], [], ":files"],
    [["completion", "z"], ["zsh"], ":none"],
  ] as const)("%j", (words, want, paths) => {
    expect(complete(...words)).toEqual([[...want], paths]);
  });

  test("manifests and commands are both possible at first", () => {
    expect(complete("")[0]).toContain("get");
    expect(complete("web.yaml", "g")).toEqual([[], ":files"]);
  });

  test.each([
    [["describe", "pod", ""], "name"],
    [["logs", ""], "pod"],
    [["logs", "web", ""], "container"],
    [["logs", "web", "-c", ""], "container"],
    [["get", "pods", "-n", ""], "namespace"],
    [["top", "nodes", ""], undefined],
    [["get", "nodes", ""], "name"],
    [["get", ""], "kind"],
    [["delete", "deploy", ""], "name"],
    [["wait", "--for", "delete", ""], "kind"],
    [["cp", ""], "pod-path"],
    [["use", ""], "kubelet"],
  ] as const)("%j asks for the names of %s", (words, names) => {
    expect(completeWords(words, CONTEXT).names).toBe(names);
  });
});

test("names come from the kubelet of the flags", async () => {
  const pod = (name: string, namespace: string) => ({
    metadata: { name, namespace },
    spec: { nodeName: "node1", containers: [{ name: "app", image: "busybox:1" }, { name: "log" }] },
    status: { phase: "Running" },
  });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ items: [pod("web-node1", "default"), pod("db-node1", "prod")] }),
  });
  const ask = async (...words: string[]) => {
    const io = capturedIo();
    expect(await runComplete(words, CONTEXT, io)).toBe(0);
    return io.out.trimEnd().split("\n");
  };
  const { port } = server;
  expect(await ask("logs", `--server=${port}`, "w")).toEqual(["web-node1\tRunning", ":none"]);
  expect(await ask("--server", "=", `${port}`, "logs", "-n", "prod", "")).toEqual(["db-node1\tRunning", ":none"]);
  expect(await ask("-s", `${port}`, "logs", "web", "-c", "a")).toEqual(["app\tbusybox:1", ":none"]);
  expect(await ask("get", "pods", "-s", `${port}`, "--namespace=p")).toEqual(["--namespace=prod\t", ":none"]);
  await server.stop(true);
  expect(await ask("logs", `--server=${port}`, "w")).toEqual([":none"]);
});

/** A program in place of the binary: it prints its arguments as one word. */
function fakeProgram(): string {
  const bin = tempDir();
  writeFileSync(
    join(bin, "kubelet-ts"),
    '#!/bin/sh\nshift; printf "%s\\tdescription\\n:none\\n" "$(printf "%s|" "$@")"\n',
    { mode: 0o755 },
  );
  return bin;
}

async function shell(argv: string[], env: Record<string, string>): Promise<string[]> {
  const child = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe", env: { ...process.env, ...env } });
  expect(await new Response(child.stderr).text()).toBe("");
  return (await new Response(child.stdout).text()).trim().split("\n");
}

test("bash asks the program", async () => {
  const bin = fakeProgram();
  const script = `${SCRIPTS.bash!}
COMP_WORDS=(${join(bin, "kubelet-ts")} logs --root-dir = /srv/a ""); COMP_CWORD=5; _kubelet_ts; printf '%s\n' "\${COMPREPLY[@]}"`;
  expect(await shell(["bash", "-c", script], {})).toEqual(["logs|--root-dir|=|/srv/a||"]);
});

test.skipIf(Bun.which("zsh") === null)("zsh takes the script by source and asks the program", async () => {
  const bin = fakeProgram();
  const path = join(tempDir(), "script.zsh");
  writeFileSync(path, SCRIPTS.zsh!);
  const script = `compdef() { print "compdef $*" }
source ${path}
_describe() { print -l -- "\${(@P)2}" }; words=(${join(bin, "kubelet-ts")} --root-dir=/srv/a get ""); CURRENT=4; _kubelet_ts`;
  expect(await shell(["zsh", "-f", "-c", script], {})).toEqual([
    "compdef _kubelet_ts kubelet-ts",
    "--root-dir=/srv/a|get||:description",
  ]);
});

test.skipIf(Bun.which("zsh") === null)("zsh with its own completion functions completes a word", async () => {
  const bin = tempDir();
  writeFileSync(join(bin, "kubelet-ts"), '#!/bin/sh\nprintf "deployments\\tDeployment\\n:none\\n"\n', { mode: 0o755 });
  const path = join(tempDir(), "script.zsh");
  writeFileSync(path, SCRIPTS.zsh!);
  // zpty is a terminal of zsh's own: reading waits for the pattern.
  const script = `zmodload zsh/zpty
zpty z "zsh -f -i"
zpty -w z "PS1=; autoload -Uz compinit; compinit -u -D; source ${path}; print rea''dy"
zpty -r z before '*ready*'
zpty -w -n z $'kubelet-ts get dep\t'
zpty -r z after '*dep*loyments*'
print -r -- "$after"
zpty -d z`;
  const env = { PATH: `${bin}:${process.env.PATH}`, TERM: "dumb", HOME: tempDir() };
  expect((await shell(["zsh", "-f", "-c", script], env)).join("\n")).toContain("deployments");
});

test.skipIf(Bun.which("fish") === null)("fish asks the program", async () => {
  const bin = fakeProgram();
  const path = join(tempDir(), "script.fish");
  writeFileSync(path, SCRIPTS.fish!);
  const line = "kubelet-ts --root-dir=/srv/a get ";
  expect(
    await shell(["fish", "--no-config", "-c", `source ${path}; complete -C ${JSON.stringify(line)}`], {
      HOME: tempDir(),
      PATH: `${bin}:${process.env.PATH}`,
    }),
  ).toEqual(["--root-dir=/srv/a|get||\tdescription"]);
});
