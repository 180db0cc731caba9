import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { startWithApi } from "../support/local-api.ts";

/** Debian's Python, which has Debian's modules. */
const PYTHON = "/usr/bin/python3";
const hasClient = Bun.spawnSync([PYTHON, "-c", "import kubernetes"]).exitCode === 0;
const PROGRAM = join(import.meta.dir, "..", "fixtures", "python-client.py");

describeWithEngine("Python's kubernetes client", () => {
  test.skipIf(!hasClient)("creates, watches, lists, reads logs, runs commands, patches and deletes", async () => {
    const node = testNode();
    await startWithApi(node);
    const child = Bun.spawn([PYTHON, PROGRAM, join(node.rootDir, "admin.conf")], { stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect(stderr).toBe("");
    expect(stdout.trim().split("\n")).toEqual([
      "created py",
      expect.stringMatching(/^watched \w+ py$/),
      "listed ['py']",
      "log hello",
      "exec out",
      "exit 7",
      "patched front",
      "deleted py",
      "gone 404 Not Found",
    ]);
  });
});
