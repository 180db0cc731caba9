import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { findCommand } from "../../src/cli/command-line.ts";
import { runConfig } from "../../src/cli/commands/config-command.ts";
import { runSubCommand } from "../../src/cli/sub-command.ts";
import { resolveOptions } from "../../src/config/resolve-options.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { capturedIo } from "./captured-io.ts";

const tempDir = tempDirs();

describe("kubelet-ts config", () => {
  const FLAGS = [
    "--max-pods=3",
    "--manifest-url=http://me:pw@h/?t=s3cret",
    "--manifest-url-header=Authorization: s3cret",
    "--cluster-dns=10.0.0.1",
  ];

  test("YAML says where each value comes from and is itself a file for --config", async () => {
    const at = capturedIo();
    expect(await runConfig(FLAGS, at, "/")).toBe(0);
    expect(at.out).toContain("maxPods: 3 # --max-pods\n");
    expect(at.out).toContain("syncFrequency: 1m0s # default\n");
    const path = join(tempDir(), "again.yaml");
    writeFileSync(path, at.out);
    const { options, warnings, errors } = await resolveOptions(["--config", path], "/");
    expect({ warnings, errors, maxPods: options.maxPods, dns: options.clusterDns }).toEqual({
      warnings: [],
      errors: [],
      maxPods: 3,
      dns: ["10.0.0.1"],
    });
  });

  test("JSON has the same, with the origins apart", async () => {
    const at = capturedIo();
    expect(await runConfig([...FLAGS, "-o", "json"], at, "/")).toBe(0);
    const { config, origins } = JSON.parse(at.out);
    expect(config).toMatchObject({ kind: "KubeletConfiguration", maxPods: 3, clusterDNS: ["10.0.0.1"] });
    expect(origins).toMatchObject({ maxPods: "--max-pods", syncFrequency: "default" });
    const yaml = capturedIo();
    await runConfig(FLAGS, yaml, "/");
    expect(parse(yaml.out)).toEqual(config);
  });

  test("secrets are in neither", async () => {
    for (const format of ["yaml", "json"]) {
      const at = capturedIo();
      await runConfig([...FLAGS, "-o", format], at, "/");
      expect(at.out + at.err).not.toMatch(/s3cret|me:pw/);
      expect(at.out).toContain("<masked>");
    }
  });

  test("mistakes end with 2", async () => {
    const at = capturedIo();
    expect(await runConfig(["--max-podz=1", "--docker-exec-handler=x"], at, "/")).toBe(2);
    expect(at).toMatchObject({
      out: "",
      err: "kubelet-ts config: warning: --docker-exec-handler has no effect: there are no docker settings beyond --docker-endpoint\nkubelet-ts config: --max-podz: no such flag; did you mean --max-pods?\n",
    });
  });
});

describe("kubelet-ts version", () => {
  const runVersion = (argv: readonly string[], at: ReturnType<typeof capturedIo>) =>
    runSubCommand(findCommand("version")!, argv, at);

  test("one line, or an object", async () => {
    const at = capturedIo();
    expect(await runVersion([], at)).toBe(0);
    expect(at.out).toStartWith("kubelet-ts ");
    for (const argv of [["-o", "json"], ["-o=json"], ["--output=json"]]) {
      const json = capturedIo();
      expect(await runVersion(argv, json)).toBe(0);
      expect(Object.keys(JSON.parse(json.out))).toContain("gitCommit");
    }
  });

  test("what it does not know is refused", async () => {
    for (const [argv, problem] of [
      [["--ouput=json"], "--ouput: no such flag of version; did you mean --output?"],
      [["-o", "yml"], '--output must be text or json (found "yml")'],
      [["1"], 'takes no arguments (found "1")'],
    ] as const) {
      const at = capturedIo();
      expect(await runVersion(argv, at)).toBe(2);
      expect(at).toMatchObject({ out: "", err: `kubelet-ts version: ${problem}\nTry 'kubelet-ts version --help'.\n` });
    }
  });
});
