import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { startWithApi } from "../support/local-api.ts";
import {
  claim,
  HOST,
  HOST_POD,
  list,
  persistentVolume,
  STOPPABLE,
  shell,
  sleeper,
  workload,
} from "../support/manifests.ts";
import { engineSocketPath, type TestNode } from "../support/test-node.ts";

describeWithEngine("commands that query a running kubelet", () => {
  test.concurrent("get, describe, top, logs and a watcher, of a node on ports of its own", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web", shell(`echo out; echo err >&2; ${STOPPABLE}`), HOST));
    node.writeManifest("crash.json", sleeper("crash", shell("echo run; echo why >&2; exit 3"), HOST));
    await node.start();
    const crashed = await node.until("the second start to crash", async () => {
      const { stdout } = await node.run("get pods crash --no-headers");
      return /CrashLoopBackOff +[1-9]\d* \(\d+s ago\)/.test(stdout) ? stdout : undefined;
    });
    expect(crashed).toStartWith(`crash-${node.name} `);

    const pods = await node.run("get pods web -o wide");
    expect(pods.exitCode).toBe(0);
    expect(pods.stdout).toMatch(/^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE/);
    expect(pods.stdout).toMatch(new RegExp(`\\nweb-${node.name} +1/1 +Running +0 +\\d+s +[\\d.]+ +${node.name} `));

    const described = await node.run("describe pod crash");
    expect(described.stdout).toMatch(/State: +Waiting\n +Reason: +CrashLoopBackOff\n/);
    expect(described.stdout).toMatch(/Last State: +Terminated\n +Reason: +Error\n +Exit Code: +3\n/);
    expect(described.stdout).toMatch(/\n {2}Warning +BackOff +.* kubelet +Back-off restarting failed container\n/);

    const events = await node.run("get events");
    expect(events.stdout).toMatch(new RegExp(`Normal +Started +pod/web-${node.name} +Started container app\\n`));

    const logs = await node.run("logs crash --previous --tail=1 --prefix --timestamps");
    expect(logs.stdout).toMatch(new RegExp(`^\\[pod/crash-${node.name}/app\\] \\d{4}-[^ ]+Z (run|why)\\n$`));
    expect((await node.run("logs crash --stream=Stderr")).stdout).toBe("why\n");

    const usage = await node.run("top pods --containers");
    expect(usage.stdout).toMatch(
      new RegExp(`^POD +NAME +CPU\\(cores\\) +MEMORY\\(bytes\\)\\nweb-${node.name} +app +\\d+m +\\d+Mi\\n$`),
    );
    expect((await node.run("top node")).stdout).toMatch(new RegExp(`\\n${node.name} +\\d+m +\\d+% +\\d+Mi +\\d+%\\n$`));
    expect((await node.run("get node --no-headers")).stdout).toMatch(new RegExp(`^${node.name} +Ready`));

    const watcher = node.spawn(["get", "pods", "-w", `--root-dir=${node.rootDir}`]);
    await node.until("the watcher to list", () => watcher.stdout.includes("web-"));
    expect(watcher.stdout).not.toContain("late-");
    node.writeManifest("late.json", sleeper("late", {}, HOST));
    await node.until("the watcher to see it run", () => /late-\S+ +1\/1 +Running/.test(watcher.stdout));
  });

  test.concurrent("logs are followed to the end of the container; use selects the kubelet of later commands", async () => {
    const node = testNode();
    const script = "echo one; until [ -e /tmp/go ]; do sleep 0.1; done; echo two; echo oops >&2";
    node.writeManifest("work.json", sleeper("work", shell(script), { ...HOST, restartPolicy: "Never" }));
    await node.start();
    const { Id } = await node.runningContainer("app");
    const follower = node.spawn(["logs", "-f", "work", `--root-dir=${node.rootDir}`]);
    await node.until("the first line", () => follower.stdout === "one\n");
    await node.docker.exec(Id, ["touch", "/tmp/go"]);
    const { exitCode, stdout, stderr } = await follower.finished();
    expect({ exitCode, stderr, lines: stdout.trim().split("\n").sort() }).toEqual({
      exitCode: 0,
      stderr: "",
      lines: ["one", "oops", "two"],
    });

    const words = (...argv: string[]) =>
      node.spawn(argv, { env: { HOME: node.directory, XDG_CONFIG_HOME: "", KUBELET_TS_ROOT_DIR: "" } }).finished();
    expect(await words("use", node.name)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(node.rootDir) });
    expect((await words("use")).stdout).toMatch(new RegExp(`\\* +${node.name} `));
    expect(await words("get", "node", "-o", "name")).toMatchObject({ exitCode: 0, stdout: `node/${node.name}\n` });
    expect(await words("use", "no-such-node")).toMatchObject({ exitCode: 1 });
    expect(await words("use", "--none")).toMatchObject({ exitCode: 0 });
  });
});

describeWithEngine("commands over the local API", () => {
  test.concurrent("a submitted pod is applied, waited for and deleted; a pod of a file is refused", async () => {
    const node = testNode();
    const fromFile = node.writeManifest("web.json", sleeper("web", {}, HOST));
    await node.start();
    await node.runningContainer("app");

    const manifest = join(node.rootDir, "job.json");
    writeFileSync(manifest, JSON.stringify(sleeper("db", {}, HOST)));
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
    writeFileSync(edited, JSON.stringify(sleeper("db", {}, HOST)).replace("busybox:test", "busybox:other"));
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

    expect(await node.run("delete pod db --now")).toMatchObject({ exitCode: 0, stdout: 'pod "db" deleted\n' });
    expect(await node.run("delete pod db")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("not found"),
    });
    expect((await node.run("kubeconfig")).stderr + (await node.run("kubeconfig")).stdout).toMatch(
      /kind: Config|admin.conf/,
    );
  });

  test.concurrent("exec, cp and port-forward go through the local API; restart starts the containers of a pod again", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web", {}, HOST));
    await node.start();
    const before = await node.runningContainer("app");
    await node.untilPhase("web", "Running");
    const failed = await node.run("exec web -- sh -c", "echo out; echo err >&2; exit 7");
    expect(failed).toMatchObject({ exitCode: 7, stdout: "out\n", stderr: "err\n" });
    const original = join(node.directory, "original");
    const copy = join(node.directory, "copy");
    writeFileSync(original, Buffer.alloc(3_000_000, "0123456789"));
    expect(await node.run("cp", original, "web:/tmp/file")).toMatchObject({ exitCode: 0 });
    expect(await node.run("cp web:/tmp/file", copy)).toMatchObject({ exitCode: 0 });
    expect(Bun.hash(readFileSync(copy))).toBe(Bun.hash(readFileSync(original)));

    expect(await node.run("restart web")).toMatchObject({ exitCode: 0, stdout: `pod/web-${node.name} restarted\n` });
    await node.successorOf("app", before.Id);
  });

  test.concurrent("restart of a workload from a file: its pods restart one after the other, and no others", async () => {
    const node = testNode();
    const selector = { matchExpressions: [{ key: "app", operator: "In", values: ["web"] }] };
    node.writeManifest("web.json", workload("Deployment", "web", { replicas: 2, selector }, HOST_POD));
    node.writeManifest("other.json", workload("StatefulSet", "other", { replicas: 1 }, HOST_POD));
    await node.start();
    const running = async (name = "web") =>
      (await node.containers("app")).filter(
        ({ State, Labels }) => State === "running" && Labels["io.kubernetes.pod.name"]?.startsWith(`${name}-`),
      );
    await node.until("two containers", async () => (await running()).length === 2);
    await node.until("the other one", async () => (await running("other")).length === 1);
    const [before, other] = [(await running()).map(({ Id }) => Id), await running("other")];
    await node.until(
      "the pods to be Ready",
      async () => (await node.run("wait deploy/web --for=condition=Available")).exitCode === 0,
    );
    expect(await node.run("restart deploy/web")).toMatchObject({
      exitCode: 0,
      stdout: "deployment.apps/web restarted\n",
    });
    const after = (await running()).map(({ Id }) => Id);
    expect(after).toHaveLength(2);
    expect(after.filter((id) => before.includes(id))).toEqual([]);
    expect((await running("other")).map(({ Id }) => Id)).toEqual(other.map(({ Id }) => Id));
  });

  test.concurrent("a claim and a PersistentVolume in use stay Terminating, also over a restart, until the pod is gone", async () => {
    const node = testNode();
    const disk = persistentVolume("disk", { hostPath: { path: join(node.directory, "disk") } });
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    const manifest = join(node.directory, "db.json");
    writeFileSync(manifest, JSON.stringify(list(disk, claim("data"), sleeper("db", {}, { ...HOST, volumes }))));

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
});

/** Runs a command on the node's root directory to its end. */
const run = (node: TestNode, line: string, ...more: string[]) =>
  node.run(`--docker-endpoint=unix://${engineSocketPath()} ${line}`, ...more);

describeWithEngine("commands while no kubelet runs", () => {
  test.concurrent("a pod of --runonce is listed, entered and deleted, and a kubelet does not start it again", async () => {
    const node = testNode();
    const none = await node.run("get pods");
    expect({ exitCode: none.exitCode, stdout: none.stdout }).toEqual({ exitCode: 0, stdout: "" });
    expect(none.stderr).toContain(`no kubelet runs on the root directory "${node.rootDir}"`);
    const web = sleeper("web", shell(`echo hello; ${STOPPABLE}`), { ...HOST, terminationGracePeriodSeconds: 5 });
    const manifests = [node.writeManifest("web.json", web), node.writeManifest("db.json", sleeper("db", {}, HOST))];
    await node.runOnce(manifests);

    expect((await run(node, "get pods --no-headers")).stdout).toMatch(/^db-\S+ +1\/1 +Running .*\nweb-\S+ +1\/1 /);
    expect((await run(node, "describe pod web")).stdout).toMatch(new RegExp(`^Name: +web-${node.name}\n`));
    expect(await run(node, "logs web")).toMatchObject({ exitCode: 0, stdout: "hello\n" });
    expect(await run(node, "logs wbe")).toMatchObject({ exitCode: 1 });
    expect(await run(node, "exec web -- sh -c", "echo in; exit 3")).toMatchObject({ exitCode: 3, stdout: "in\n" });
    expect(await run(node, "delete pod nope")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('pod "nope" not found'),
    });

    const ids = await node.containerIds();
    const dry = await run(node, "delete --all --dry-run=client");
    expect(dry).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`"web-${node.name}" deleted (dry run)`) });
    expect(await run(node, "delete pods --all --field-selector metadata.name=no")).toMatchObject({ exitCode: 2 });
    expect(await node.containerIds()).toEqual(ids);
    const deleted = await run(node, "delete -f", manifests[0]!);
    expect(deleted).toMatchObject({ exitCode: 0, stdout: `pod "web-${node.name}" deleted\n` });
    expect((await run(node, "get pods -o name")).stdout).toBe(`pod/db-${node.name}\n`);
    expect(readdirSync(join(node.rootDir, "pods"))).toHaveLength(1);

    expect(await run(node, "down --all")).toMatchObject({ exitCode: 0, stdout: `pod "db-${node.name}" deleted\n` });
    expect(await node.listAll()).toEqual([]);
    // Nothing of them is left for the next kubelet to report.
    const { data } = JSON.parse(readFileSync(join(node.rootDir, "state", `pods-${node.name}.json`), "utf8"));
    expect(data.map(({ isRemoved }: { isRemoved?: true }) => isRemoved)).toEqual([true, true]);
    const [checkpoint = ""] = readdirSync(join(node.rootDir, "checkpoints"));
    const { body } = JSON.parse(readFileSync(join(node.rootDir, "checkpoints", checkpoint), "utf8"));
    expect(body.texts).toEqual({});
    expect(readdirSync(join(node.rootDir, "pods"))).toEqual([]);
    expect(existsSync(node.rootDir)).toBe(true);
  });

  test.concurrent("a slip in --root-dir removes nothing and makes no directory", async () => {
    const node = testNode();
    const slip = `${node.rootDir}-slip`;
    const run = (...args: string[]) => node.spawn([...args, `--root-dir=${slip}`]).finished();
    expect((await run("delete", "pod", "web")).stderr).toContain('pod "web" not found');
    expect(await run("down", "--all")).toMatchObject({ exitCode: 0 });
    expect(existsSync(slip)).toBe(false);
  });

  test.concurrent("a pod of --runonce is supervised by the kubelet that comes later, which also deletes it", async () => {
    const node = testNode();
    const elsewhere = join(node.directory, "once.json");
    writeFileSync(elsewhere, JSON.stringify(sleeper("once", {}, HOST)));
    await node.runOnce([elsewhere]);
    node.writeManifest("web.json", sleeper("web", {}, HOST));
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

  test.concurrent("down --all takes the workloads of a source that is gone, and all files of a submitted pod", async () => {
    const node = testNode();
    node.writeManifest("web.json", list(claim("data"), workload("Deployment", "web", { replicas: 2 }, HOST_POD)));
    const child = await node.start();
    const manifest = join(node.directory, "db.json");
    writeFileSync(manifest, JSON.stringify(sleeper("db", {}, HOST)));
    expect(await node.run("apply -f", manifest)).toMatchObject({ exitCode: 0 });
    await node.untilRunning(3);
    const submitted = join(node.directory, "api.json");
    writeFileSync(submitted, JSON.stringify(workload("Deployment", "api", {}, HOST_POD)));
    expect(await node.run("apply -f", submitted)).toMatchObject({ exitCode: 0 });
    await node.untilRunning(4);
    await child.stop();
    const pods = await run(node, "delete pods --all --now");
    expect(pods).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('deployment "api" stays: ') });
    expect(existsSync(join(node.rootDir, "manifests/default/deployment-api.yaml"))).toBe(true);
    const down = await run(node, "down --all --now");
    expect(down).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('deployment "api" deleted\n') });
    expect(down.stderr).toMatch(
      /^deployment "web" comes from \S*web.json\S*: a kubelet that reads it starts it again$/m,
    );
    for (const kept of ["manifests/default", "state/api/pods"]) {
      expect(readdirSync(join(node.rootDir, kept))).toEqual([]);
    }
    expect(await node.listAll()).toEqual([]);
    const dir = join(node.rootDir, "checkpoints");
    const texts = readdirSync(dir).map((file) => JSON.parse(readFileSync(join(dir, file), "utf8")).body.texts);
    const kinds = texts.flatMap(Object.values).flatMap(({ objects }) => objects.map((it: { kind: string }) => it.kind));
    // The claim stays: its data are not removed with pods.
    expect(kinds).toEqual(["PersistentVolumeClaim"]);
  });
});
