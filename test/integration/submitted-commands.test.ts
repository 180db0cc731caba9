import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

const run = (node: TestNode, ...words: string[]) => node.spawn([`--root-dir=${node.rootDir}`, ...words]).finished();

describeWithEngine("commands over the local API", () => {
  test("a submitted pod is applied, waited for and deleted; one of a file is left to its file", async () => {
    const node = testNode();
    const fromFile = node.writeManifest("web.json", sleeper("web"));
    await node.start();
    await node.runningContainer("app");

    const manifest = join(node.rootDir, "job.json");
    writeFileSync(manifest, JSON.stringify(sleeper("db")));
    expect(await run(node, "apply", "-f", manifest)).toMatchObject({ exitCode: 0, stdout: "pod/db created\n" });
    expect(await run(node, "apply", "-f", manifest)).toMatchObject({ exitCode: 0, stdout: "pod/db unchanged\n" });
    expect(await run(node, "create", "-f", manifest)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("already exists"),
    });
    expect(await run(node, "wait", "pod/db", "--for=condition=Ready")).toMatchObject({ exitCode: 0 });
    expect(await run(node, "wait", "pod", "db", "--for=condition=Ready=False", "--timeout=0s")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("timed out"),
    });

    const refused = await run(node, "delete", "pod", "web");
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(fromFile) });

    expect(await run(node, "delete", "pod", "db", "--now")).toMatchObject({
      exitCode: 0,
      stdout: 'pod "db" deleted\n',
    });
    expect(await run(node, "delete", "pod", "db")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("not found"),
    });
    expect((await run(node, "kubeconfig")).stderr + (await run(node, "kubeconfig")).stdout).toMatch(
      /kind: Config|admin.conf/,
    );
  });
});
