import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { startWithApi } from "../support/local-api.ts";
import type { TestNode } from "../support/test-node.ts";

/** Debian's Python, which has Debian's modules. */
const PYTHON = "/usr/bin/python3";
const hasClient = Bun.spawnSync([PYTHON, "-c", "import kubernetes"]).exitCode === 0;
const FIXTURES = join(import.meta.dir, "..", "fixtures");

/** Lines that a program prints which gets a kubeconfig of a new node. */
async function linesOf(command: (node: TestNode, port: number) => string[]): Promise<string[]> {
  const node = testNode();
  const tokens = join(node.directory, "tokens.csv");
  writeFileSync(tokens, 'test-token,test,1,"system:masters"\n', { mode: 0o600 });
  const { port } = await startWithApi(node, [`--token-auth-file=${tokens}`]);
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(node.rootDir, "apiserver", "ca.crt") };
  const child = Bun.spawn(command(node, port), { env, stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect(stderr).toBe("");
  return stdout.trim().split("\n");
}

describeWithEngine("client libraries", () => {
  test.skipIf(!hasClient)(
    "Python's creates, watches, lists, reads logs, runs commands, patches and deletes",
    async () => {
      expect(
        await linesOf((node) => [PYTHON, join(FIXTURES, "python-client.py"), join(node.rootDir, "admin.conf")]),
      ).toEqual([
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

  test("@kubernetes/client-node informs, logs, executes, attaches, forwards, copies and measures", async () => {
    expect(
      await linesOf((_, port) => [
        process.execPath,
        join(FIXTURES, "node-client.mjs"),
        `https://127.0.0.1:${port}`,
        "test-token",
      ]),
    ).toEqual([
      "created js",
      "informer add",
      "log hello",
      "exec out err 7",
      "exec with input typed  Success",
      "attach echoed",
      "port-forward HTTP/1.1 200 OK page",
      "copied to the pod",
      "copied from the pod",
      "metrics app",
      "deleted",
      "gone 404",
    ]);
  });
});
