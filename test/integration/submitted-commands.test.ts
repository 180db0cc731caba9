import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { startWithApi } from "../support/local-api.ts";
import { sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";
import { until } from "../support/until.ts";

const run = (node: TestNode, ...words: string[]) => node.spawn([`--root-dir=${node.rootDir}`, ...words]).finished();

describeWithEngine("commands over the local API", () => {
  test("a submitted pod is applied, waited for and deleted; a pod of a file is refused", async () => {
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

    expect(await run(node, "diff", "-f", manifest)).toMatchObject({ exitCode: 0, stdout: "" });
    const edited = join(node.rootDir, "edited.json");
    writeFileSync(edited, JSON.stringify(sleeper("db")).replace("busybox:test", "busybox:other"));
    for (const [file, outcome] of [
      [manifest, "unchanged"],
      [edited, "configured"],
    ] as const) {
      const tried = await run(node, "apply", "-f", file, "--dry-run=server");
      expect(tried).toMatchObject({ exitCode: 0, stdout: `pod/db ${outcome} (server dry run)\n` });
    }
    const { exitCode, stdout } = await run(node, "diff", "-f", edited);
    expect([exitCode, stdout]).toEqual([1, expect.stringMatching(/^ {2}\+ .*busybox:other$/m)]);
    expect(stdout).toContain("=> container app restarts");
    // Only what differs is shown.
    expect(stdout).not.toContain("+   name: db");

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

  test("exec, cp and port-forward go through the local API; restart starts the containers of a pod again", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web"));
    await node.start();
    const before = await node.runningContainer("app");
    const failed = await run(node, "exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7");
    expect(failed).toMatchObject({ exitCode: 7, stdout: "out\n", stderr: "err\n" });
    const original = join(node.directory, "original");
    const copy = join(node.directory, "copy");
    writeFileSync(original, Buffer.alloc(3_000_000, "0123456789"));
    expect(await run(node, "cp", original, "web:/tmp/file")).toMatchObject({ exitCode: 0 });
    expect(await run(node, "cp", "web:/tmp/file", copy)).toMatchObject({ exitCode: 0 });
    expect(Bun.hash(readFileSync(copy))).toBe(Bun.hash(readFileSync(original)));

    expect(await run(node, "restart", "web")).toMatchObject({
      exitCode: 0,
      stdout: `pod/web-${node.name} restarted\n`,
    });
    await until("the container is another one", async () => (await node.runningContainer("app")).Id !== before.Id);
  });

  test("a claim and a PersistentVolume in use stay Terminating, also over a restart, until the pod is gone", async () => {
    const node = testNode();
    const modes = { accessModes: ["ReadWriteOnce"] };
    const disk = {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: "disk" },
      spec: { ...modes, capacity: { storage: "1Gi" }, hostPath: { path: join(node.directory, "disk") } },
    };
    const claim = {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "data" },
      spec: { ...modes, resources: { requests: { storage: "1Gi" } } },
    };
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    const manifest = join(node.directory, "db.json");
    const items = [disk, claim, sleeper("db", {}, { volumes })];
    writeFileSync(manifest, JSON.stringify({ apiVersion: "v1", kind: "List", items }));

    const { child } = await startWithApi(node);
    expect(await run(node, "apply", "-f", manifest)).toMatchObject({ exitCode: 0 });
    const before = await node.runningContainer("app");
    for (const object of ["pv/disk", "pvc/data", "pvc/data"]) {
      expect(await run(node, "delete", object, "--wait=false")).toMatchObject({ exitCode: 0 });
    }
    const statuses = async () =>
      (await run(node, "get", "pv,pvc", "--no-headers")).stdout.match(/Terminating|Bound|Available/g) ?? [];
    expect(await statuses()).toEqual(["Terminating", "Terminating"]);
    expect(await run(node, "delete", "pvc", "data", "--timeout=1s")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("timed out"),
    });

    await child.stop();
    await startWithApi(node);
    expect(await statuses()).toEqual(["Terminating", "Terminating"]);
    expect((await node.runningContainer("app")).Id).toBe(before.Id);
    const waiting = run(node, "wait", "--for=delete", "pv/disk", "pvc/data", "--timeout=60s");
    expect(await run(node, "delete", "pod", "db", "--now")).toMatchObject({ exitCode: 0 });
    expect(await waiting).toMatchObject({ exitCode: 0 });
    expect(await statuses()).toEqual([]);
  });

  test("use selects the kubelet of later commands", async () => {
    const node = testNode();
    await node.start();
    const words = (...argv: string[]) =>
      node.spawn(argv, { env: { HOME: node.directory, XDG_CONFIG_HOME: "", KUBELET_TS_ROOT_DIR: "" } }).finished();
    expect(await words("use", node.name)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(node.rootDir) });
    expect((await words("use")).stdout).toMatch(new RegExp(`\\* +${node.name} `));
    expect(await words("get", "node", "-o", "name")).toMatchObject({ exitCode: 0, stdout: `node/${node.name}\n` });
    expect(await words("use", "no-such-node")).toMatchObject({ exitCode: 1 });
    expect(await words("use", "--none")).toMatchObject({ exitCode: 0 });
  });
});
