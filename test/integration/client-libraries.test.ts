import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { startWithApi } from "../support/local-api.ts";

/** Debian's Python, which has Debian's modules. */
const PYTHON = "/usr/bin/python3";
const hasClient = Bun.spawnSync([PYTHON, "-c", "import kubernetes"]).exitCode === 0;
const NODE = Bun.which("node");
const FIXTURES = join(import.meta.dir, "..", "fixtures");

/** Runs a program with the kubeconfig of a new node. */
async function linesOf(program: string, file: string): Promise<string[]> {
  const node = testNode();
  await startWithApi(node);
  const child = Bun.spawn([program, join(FIXTURES, file), join(node.rootDir, "admin.conf")], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect(stderr).toBe("");
  return stdout.trim().split("\n");
}

describeWithEngine("client libraries with admin.conf", () => {
  test.skipIf(!hasClient)(
    "Python's creates, watches, lists, reads logs, runs commands, patches and deletes",
    async () => {
      expect(await linesOf(PYTHON, "python-client.py")).toEqual([
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
    },
  );

  test.skipIf(!NODE)(
    "@kubernetes/client-node informs, logs, executes, attaches, forwards, copies and measures",
    async () => {
      expect(await linesOf(NODE!, "node-client.mjs")).toEqual([
        "created js",
        "informer add",
        "log hello",
        "exec out err 7",
        "exec with input typed  Success",
        "attach echoed",
        "port-forward HTTP/1.0 200 OK page",
        "copied to the pod",
        "copied from the pod",
        "metrics app",
        "deleted",
        "gone 404",
      ]);
    },
  );
});
