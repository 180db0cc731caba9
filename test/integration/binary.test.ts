import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { BINARY } from "../support/kubelet-process.ts";
import { sleeper } from "../support/manifests.ts";

const POD = sleeper("p", { command: ["true"] }, { restartPolicy: "Never" });

describeWithEngine("the compiled binary", () => {
  test("reports its version and the commit it was built from", async () => {
    const { exitCode, stdout } = await testNode().spawn(["--version"]).finished();
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^kubelet-ts \d+\.\d+\.\d+ \([0-9a-f]{12}(-dirty)?\)\n$/);
    expect(stdout).toStartWith(`kubelet-ts ${packageJson.version} `);
  });

  test("starts with an empty environment", () => {
    const { exitCode, stderr } = Bun.spawnSync({ cmd: [BINARY, "--version"], env: {} });
    expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
  });

  // Both are defaults of Bun, and would hand the program to any user who can write to a directory.
  test("takes neither settings nor code from the directory it is started in", async () => {
    const node = testNode();
    const trace = join(node.directory, "preloaded");
    writeFileSync(join(node.directory, ".env"), "DOCKER_HOST=unix:///from-dotenv.sock\n");
    writeFileSync(join(node.directory, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
    writeFileSync(
      join(node.directory, "preload.ts"),
      `require("node:fs").writeFileSync(${JSON.stringify(trace)}, "");\n`,
    );
    const manifest = node.writeManifest("p.json", POD);
    const flags = node.identityFlags().filter((flag) => !flag.startsWith("--docker-endpoint"));
    const env: Record<string, string> = process.env.DOCKER_HOST ? { DOCKER_HOST: process.env.DOCKER_HOST } : {};
    const { exitCode, stderr } = await node.spawn(["--runonce", ...flags, manifest], { env }).finished();
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(existsSync(trace)).toBe(false);
  });

  test("comes from a plain `bun build --compile` as well, which knows no commit", async () => {
    const node = testNode();
    const plain = join(node.directory, "kubelet-ts");
    const build = Bun.spawnSync({
      cmd: [process.execPath, "build", "--compile", "src/main.ts", `--outfile=${plain}`],
      cwd: join(import.meta.dir, "..", ".."),
      stderr: "pipe",
    });
    expect({ exitCode: build.exitCode, stderr: build.stderr.toString() }).toMatchObject({ exitCode: 0 });
    expect(Bun.spawnSync([plain, "--version"]).stdout.toString()).toBe(`kubelet-ts ${packageJson.version}\n`);
  });
});
