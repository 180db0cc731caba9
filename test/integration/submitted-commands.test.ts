import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { startWithApi } from "../support/local-api.ts";
import { claim, list, persistentVolume, sleeper } from "../support/manifests.ts";

describeWithEngine("commands over the local API", () => {
  test("a submitted pod is applied, waited for and deleted; a pod of a file is refused", async () => {
    const node = testNode();
    const fromFile = node.writeManifest("web.json", sleeper("web"));
    await node.start();
    await node.runningContainer("app");

    const manifest = join(node.rootDir, "job.json");
    writeFileSync(manifest, JSON.stringify(sleeper("db")));
    expect(await node.run("apply -f", manifest)).toMatchObject({ exitCode: 0, stdout: "pod/db created\n" });
    expect(await node.run("apply -f", manifest)).toMatchObject({ exitCode: 0, stdout: "pod/db unchanged\n" });
    expect(await node.run("create -f", manifest)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("already exists"),
    });
    expect(await node.run("wait pod/db --for=condition=Ready")).toMatchObject({ exitCode: 0 });
    expect(await node.run("wait pod db --for=condition=Ready=False --timeout=0s")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("timed out"),
    });

    expect(await node.run("diff -f", manifest)).toMatchObject({ exitCode: 0, stdout: "" });
    const edited = join(node.rootDir, "edited.json");
    writeFileSync(edited, JSON.stringify(sleeper("db")).replace("busybox:test", "busybox:other"));
    for (const [file, outcome] of [
      [manifest, "unchanged"],
      [edited, "configured"],
    ] as const) {
      const tried = await node.run("apply --dry-run=server -f", file);
      expect(tried).toMatchObject({ exitCode: 0, stdout: `pod/db ${outcome} (server dry run)\n` });
    }
    const { exitCode, stdout } = await node.run("diff -f", edited);
    expect([exitCode, stdout]).toEqual([1, expect.stringMatching(/^ {2}\+ .*busybox:other$/m)]);
    expect(stdout).toContain("=> container app restarts");
    // Only what differs is shown.
    expect(stdout).not.toContain("+   name: db");

    const refused = await node.run("delete pod web");
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(fromFile) });

    expect(await node.run("delete pod db --now")).toMatchObject({
      exitCode: 0,
      stdout: 'pod "db" deleted\n',
    });
    expect(await node.run("delete pod db")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("not found"),
    });
    expect((await node.run("kubeconfig")).stderr + (await node.run("kubeconfig")).stdout).toMatch(
      /kind: Config|admin.conf/,
    );
  });

  test("exec, cp and port-forward go through the local API; restart starts the containers of a pod again", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web"));
    await node.start();
    const before = await node.runningContainer("app");
    const failed = await node.run("exec web -- sh -c", "echo out; echo err >&2; exit 7");
    expect(failed).toMatchObject({ exitCode: 7, stdout: "out\n", stderr: "err\n" });
    const original = join(node.directory, "original");
    const copy = join(node.directory, "copy");
    writeFileSync(original, Buffer.alloc(3_000_000, "0123456789"));
    expect(await node.run("cp", original, "web:/tmp/file")).toMatchObject({ exitCode: 0 });
    expect(await node.run("cp web:/tmp/file", copy)).toMatchObject({ exitCode: 0 });
    expect(Bun.hash(readFileSync(copy))).toBe(Bun.hash(readFileSync(original)));

    expect(await node.run("restart web")).toMatchObject({
      exitCode: 0,
      stdout: `pod/web-${node.name} restarted\n`,
    });
    await node.successorOf("app", before.Id);
  });

  test("a claim and a PersistentVolume in use stay Terminating, also over a restart, until the pod is gone", async () => {
    const node = testNode();
    const disk = persistentVolume("disk", { hostPath: { path: join(node.directory, "disk") } });
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    const manifest = join(node.directory, "db.json");
    writeFileSync(manifest, JSON.stringify(list(disk, claim("data"), sleeper("db", {}, { volumes }))));

    const { child } = await startWithApi(node);
    expect(await node.run("apply -f", manifest)).toMatchObject({ exitCode: 0 });
    const before = await node.runningContainer("app");
    for (const object of ["pv/disk", "pvc/data", "pvc/data"]) {
      expect(await node.run("delete --wait=false", object)).toMatchObject({ exitCode: 0 });
    }
    const statuses = async () =>
      (await node.run("get pv,pvc --no-headers")).stdout.match(/Terminating|Bound|Available/g) ?? [];
    expect(await statuses()).toEqual(["Terminating", "Terminating"]);
    expect(await node.run("delete pvc data --timeout=1s")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("timed out"),
    });

    await child.stop();
    await startWithApi(node);
    expect(await statuses()).toEqual(["Terminating", "Terminating"]);
    expect((await node.runningContainer("app")).Id).toBe(before.Id);
    const waiting = node.run("wait --for=delete pv/disk pvc/data --timeout=60s");
    expect(await node.run("delete pod db --now")).toMatchObject({ exitCode: 0 });
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
