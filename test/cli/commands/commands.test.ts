import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { runCompletion } from "../../../src/cli/commands/completion-command.ts";
import { runConfig } from "../../../src/cli/commands/config-command.ts";
import { runVersion } from "../../../src/cli/commands/version-command.ts";
import { renderCompletion, SHELLS } from "../../../src/cli/completion.ts";
import { resolveOptions } from "../../../src/config/resolve-options.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();
const COMMANDS = [
  { name: "validate", description: "check manifests without an engine" },
  { name: "config", description: "show what's set" },
];

function io() {
  const written = { out: "", err: "" };
  return {
    written,
    stdout: (text: string) => {
      written.out += text;
    },
    stderr: (text: string) => {
      written.err += text;
    },
  };
}

describe("kubelet-ts config", () => {
  const FLAGS = [
    "--max-pods=3",
    "--manifest-url=http://me:pw@h/?t=s3cret",
    "--manifest-url-header=Authorization: s3cret",
    "--cluster-dns=10.0.0.1",
  ];

  test("YAML says where each value comes from and is itself a file for --config", async () => {
    const at = io();
    expect(await runConfig(FLAGS, at, "/")).toBe(0);
    expect(at.written.out).toContain("maxPods: 3 # --max-pods\n");
    expect(at.written.out).toContain("syncFrequency: 1m0s # default\n");
    const path = join(tempDir(), "again.yaml");
    writeFileSync(path, at.written.out);
    const { options, warnings, errors } = await resolveOptions(["--config", path], "/");
    expect({ warnings, errors, maxPods: options.maxPods, dns: options.clusterDns }).toEqual({
      warnings: [],
      errors: [],
      maxPods: 3,
      dns: ["10.0.0.1"],
    });
  });

  test("JSON has the same, with the origins apart", async () => {
    const at = io();
    expect(await runConfig([...FLAGS, "-o", "json"], at, "/")).toBe(0);
    const { config, origins } = JSON.parse(at.written.out);
    expect(config).toMatchObject({ kind: "KubeletConfiguration", maxPods: 3, clusterDNS: ["10.0.0.1"] });
    expect(origins).toMatchObject({ maxPods: "--max-pods", syncFrequency: "default" });
    const yaml = io();
    await runConfig(FLAGS, yaml, "/");
    expect(parse(yaml.written.out)).toEqual(config);
  });

  test("secrets are in neither", async () => {
    for (const format of ["yaml", "json"]) {
      const at = io();
      await runConfig([...FLAGS, "-o", format], at, "/");
      expect(at.written.out + at.written.err).not.toMatch(/s3cret|me:pw/);
      expect(at.written.out).toContain("<masked>");
    }
  });

  test("mistakes end with 2", async () => {
    const at = io();
    expect(await runConfig(["--max-podz=1", "--cni-bin-dir=/x"], at, "/")).toBe(2);
    expect(at.written).toEqual({
      out: "",
      err: "kubelet-ts config: warning: --cni-bin-dir has no effect: the network of pods is Docker's\nkubelet-ts config: --max-podz: no such flag; did you mean --max-pods?\n",
    });
  });
});

describe("kubelet-ts version", () => {
  test("one line, or an object", () => {
    const at = io();
    expect(runVersion([], at)).toBe(0);
    expect(at.written.out).toStartWith("kubelet-ts ");
    for (const argv of [["-o", "json"], ["-o=json"], ["--output=json"]]) {
      const json = io();
      expect(runVersion(argv, json)).toBe(0);
      expect(Object.keys(JSON.parse(json.written.out))).toContain("gitCommit");
    }
  });

  test("what it does not know is refused", () => {
    for (const [argv, problem] of [
      [["--ouput=json"], "--ouput: no such flag of version; did you mean --output?"],
      [["-o", "yml"], '--output must be text or json (found "yml")'],
      [["1"], 'takes no arguments (found "1")'],
    ] as const) {
      const at = io();
      expect(runVersion(argv, at)).toBe(2);
      expect(at.written).toEqual({
        out: "",
        err: `kubelet-ts version: ${problem}\nTry 'kubelet-ts version --help'.\n`,
      });
    }
  });
});

describe("kubelet-ts completion", () => {
  test("names one shell", () => {
    const at = io();
    expect(runCompletion(["bsh"], COMMANDS, at)).toBe(2);
    expect(at.written.err).toBe("kubelet-ts completion: name one shell: bash, zsh, fish; did you mean bash?\n");
    expect(runCompletion([], COMMANDS, at)).toBe(2);
    for (const shell of SHELLS) expect(runCompletion([shell], COMMANDS, io())).toBe(0);
  });

  const complete = (...words: string[]) => completeLine("kubelet-ts", ...words);

  async function completeLine(...words: string[]): Promise<string[]> {
    const script = `${renderCompletion("bash", COMMANDS)}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kubelet_ts; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const child = Bun.spawn(["bash", "-c", script, "bash", ...words], { cwd: tempDir(), stdout: "pipe" });
    return (await new Response(child.stdout).text()).trim().split("\n").filter(Boolean);
  }

  test("bash completes commands, flags and values", async () => {
    expect(await complete("conf")).toEqual(["config"]);
    expect(await complete("--manifest-u")).toContain("--manifest-url-header");
    expect(await complete("--log-format", "")).toEqual(["text", "json"]);
    expect(await complete("--log-format", "=")).toEqual(["text", "json"]);
    expect(await complete("--log-format", "=", "j")).toEqual(["json"]);
    expect(await complete("-o", "y")).toEqual(["yaml"]);
    expect(await complete("--max-pods", "")).toEqual([]);
  });

  test("bash completes what looks at a running kubelet", async () => {
    expect(await complete("get", "p")).toEqual(["pods"]);
    expect(await complete("get", "-o", "")).toEqual(["wide", "json", "yaml", "name"]);
    expect(await complete("get", "pods", "--output", "=", "y")).toEqual(["yaml"]);
    expect(await complete("logs", "--all")).toEqual(["--all-containers"]);
    expect(await complete("top", "pods", "--sort-by", "")).toEqual(["cpu", "memory"]);
    expect(await complete("get", "--max-p")).toEqual([]);
  });

  test("bash completes names of pods, of the kubelet that is meant", async () => {
    const bin = tempDir();
    // Stands for the program: says what it was asked.
    writeFileSync(join(bin, "kubelet-ts"), '#!/bin/sh\nprintf "pod/web-node1\\npod/%s\\n" "$*" | tr " " _\n', {
      mode: 0o755,
    });
    const program = join(bin, "kubelet-ts");
    expect(await completeLine(program, "describe", "pod", "web")).toEqual(["web-node1"]);
    expect(await completeLine(program, "logs", "--root-dir", "=", "/srv/a", "-n", "prod", "get")).toEqual([
      "get_pods_-o_name_--root-dir_/srv/a_-n_prod",
    ]);
    expect(await completeLine(program, "get", "nodes", "")).toEqual([]);
  });

  test.skipIf(Bun.which("zsh") === null)("zsh takes the script", async () => {
    const path = join(tempDir(), "_kubelet-ts");
    writeFileSync(path, renderCompletion("zsh", COMMANDS));
    const child = Bun.spawn(
      [
        "zsh",
        "-f",
        "-c",
        `autoload -Uz compinit; compinit -u -D; source ${path} 2>&1 | grep -v 'can only be called' || true; zsh -n ${path}`,
      ],
      { stdout: "pipe", stderr: "pipe" },
    );
    expect(await new Response(child.stderr).text()).toBe("");
    expect(await child.exited).toBe(0);
  });

  test.skipIf(Bun.which("fish") === null)("fish completes flags, values and commands", async () => {
    const path = join(tempDir(), "c.fish");
    writeFileSync(path, renderCompletion("fish", COMMANDS));
    const complete = async (line: string) => {
      const child = Bun.spawn(["fish", "--no-config", "-c", `source ${path}; complete -C ${JSON.stringify(line)}`], {
        stdout: "pipe",
        stderr: "pipe",
        env: { ...process.env, HOME: tempDir() },
      });
      expect(await new Response(child.stderr).text()).toBe("");
      return (await new Response(child.stdout).text()).split("\n").map((word) => word.split("\t", 1)[0]);
    };
    expect(await complete("kubelet-ts --log-form")).toContain("--log-format");
    expect(await complete("kubelet-ts --log-format j")).toContain("json");
    expect(await complete("kubelet-ts val")).toContain("validate");
  });
});
