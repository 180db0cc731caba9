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

  async function print(...flags: string[]) {
    const at = capturedIo();
    const code = await runConfig(flags, at, "/");
    return { code, out: at.out, err: at.err };
  }

  test("YAML says where each value comes from and is itself a file for --config", async () => {
    const { code, out } = await print(...FLAGS);
    expect(code).toBe(0);
    expect(out).toContain("maxPods: 3 # --max-pods\n");
    expect(out).toContain("syncFrequency: 1m0s # default\n");
    const path = join(tempDir(), "again.yaml");
    writeFileSync(path, out);
    const options = { maxPods: 3, clusterDns: ["10.0.0.1"] };
    expect(await resolveOptions(["--config", path], "/")).toMatchObject({ warnings: [], errors: [], options });
  });

  test("JSON has the same, with the origins apart", async () => {
    const { code, out } = await print(...FLAGS, "-o", "json");
    expect(code).toBe(0);
    const { config, origins } = JSON.parse(out);
    expect(config).toMatchObject({ kind: "KubeletConfiguration", maxPods: 3, clusterDNS: ["10.0.0.1"] });
    expect(origins).toMatchObject({ maxPods: "--max-pods", syncFrequency: "default" });
    expect(parse((await print(...FLAGS)).out)).toEqual(config);
  });

  test.each(["yaml", "json"])("secrets are not in %s", async (format) => {
    const { out, err } = await print(...FLAGS, "-o", format);
    expect(out + err).not.toMatch(/s3cret|me:pw/);
    expect(out).toContain("<masked>");
  });

  test("mistakes end with 2", async () => {
    const err = `kubelet-ts config: warning: --docker-exec-handler has no effect: there are no docker settings beyond --docker-endpoint
kubelet-ts config: --max-podz: no such flag; did you mean --max-pods?
`;
    expect(await print("--max-podz=1", "--docker-exec-handler=x")).toEqual({ code: 2, out: "", err });
  });
});

describe("kubelet-ts version", () => {
  async function print(...argv: string[]) {
    const at = capturedIo();
    const code = await runSubCommand(findCommand("version")!, argv, at);
    return { code, out: at.out, err: at.err };
  }

  test("one line", async () => {
    expect(await print()).toMatchObject({ code: 0, out: expect.stringMatching(/^kubelet-ts /) });
  });

  test.each([["-o json"], ["-o=json"], ["--output=json"]])("an object: %s", async (flags) => {
    const { code, out } = await print(...flags.split(" "));
    expect(code).toBe(0);
    expect(Object.keys(JSON.parse(out))).toContain("gitCommit");
  });

  test.each([
    ["--ouput=json", "--ouput: no such flag of version; did you mean --output?"],
    ["-o yml", '--output must be text or json (found "yml")'],
    ["1", 'takes no arguments (found "1")'],
  ])("%s is refused", async (flags, problem) => {
    const err = `kubelet-ts version: ${problem}\nTry 'kubelet-ts version --help'.\n`;
    expect(await print(...flags.split(" "))).toEqual({ code: 2, out: "", err });
  });
});
