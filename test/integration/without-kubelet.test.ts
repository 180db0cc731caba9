import { expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import { engineSocketPath, type TestNode } from "../support/test-node.ts";

/** Runs a command on the node's root directory to its end. */
const run = (node: TestNode, line: string, ...more: string[]) =>
  node.run(`--docker-endpoint=unix://${engineSocketPath()} ${line}`, ...more);

describeWithEngine("commands while no kubelet runs", () => {
  test("a pod of --runonce is listed, entered and deleted, and a kubelet does not start it again", async () => {
    const node = testNode();
    const web = sleeper("web", shell(`echo hello; ${STOPPABLE}`), { terminationGracePeriodSeconds: 5 });
    await node.runOnce([node.writeManifest("web.json", web), node.writeManifest("db.json", sleeper("db"))]);

    expect((await run(node, "get pods --no-headers")).stdout).toMatch(/^db-\S+ +1\/1 +Running .*\nweb-\S+ +1\/1 /);
    expect((await run(node, "describe pod web")).stdout).toMatch(new RegExp(`^Name: +web-${node.name}\n`));
    expect(await run(node, "logs web")).toMatchObject({ exitCode: 0, stdout: "hello\n" });
    expect(await run(node, "exec web -- sh -c", "echo in; exit 3")).toMatchObject({
      exitCode: 3,
      stdout: "in\n",
    });
    expect(await run(node, "delete pod nope")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('pod "nope" not found'),
    });

    const deleted = await run(node, "delete pod web");
    expect(deleted).toMatchObject({ exitCode: 0, stdout: `pod "web-${node.name}" deleted\n` });
    expect((await run(node, "get pods -o name")).stdout).toBe(`pod/db-${node.name}\n`);
    expect(readdirSync(join(node.rootDir, "pods"))).toHaveLength(1);

    expect(await run(node, "down --all")).toMatchObject({ exitCode: 0, stdout: `pod "db-${node.name}" deleted\n` });
    expect(await node.listAll()).toEqual([]);
    expect(readdirSync(join(node.rootDir, "pods"))).toEqual([]);
    expect(existsSync(node.rootDir)).toBe(true);
  });

  test("a pod of a running kubelet is removed with its manifest, and the answer reports it", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web"));
    await node.start();
    await node.runningContainer("app");
    const { exitCode, stderr } = await run(node, "delete pod web");
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining(`pod "web-${node.name}" comes from`),
    });
    expect(await node.containers("app")).toHaveLength(1);
  });

  test("a pod of --runonce is supervised by the kubelet that comes later, which also deletes it", async () => {
    const node = testNode();
    const elsewhere = join(node.directory, "once.json");
    writeFileSync(elsewhere, JSON.stringify(sleeper("once")));
    await node.runOnce([elsewhere]);
    node.writeManifest("web.json", sleeper("web"));
    await node.start();
    await node.until("both pods", async () => (await node.pods()).length === 2);
    await node.untilRunning(2);
    expect(await run(node, "delete pod", `once-${node.name}`)).toMatchObject({ exitCode: 0, stderr: "" });
    await node.until(
      "one pod",
      async () => (await node.pods()).length === 1 && (await node.containers("app")).length === 1,
    );
    expect((await run(node, "get pods -o name")).stdout).toBe(`pod/web-${node.name}\n`);
  });

  test("-f names the pods of a manifest", async () => {
    const node = testNode();
    const manifest = node.writeManifest("web.json", sleeper("web"));
    await node.runOnce([manifest]);
    expect(await run(node, "delete --now -f", manifest)).toMatchObject({ exitCode: 0 });
    expect(await node.containers("app")).toEqual([]);
  });
});
