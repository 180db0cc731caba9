import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import { engineSocketPath } from "../support/test-node.ts";

describeWithEngine("commands that query a running kubelet", () => {
  test("get, describe, top, logs and a watcher, of a node on ports of its own", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web", shell(`echo out; echo err >&2; ${STOPPABLE}`)));
    node.writeManifest("crash.json", sleeper("crash", shell("echo run; echo why >&2; exit 3")));
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
    node.writeManifest("late.json", sleeper("late"));
    await node.until("the watcher to see it run", () => /late-\S+ +1\/1 +Running/.test(watcher.stdout));
    await watcher.stop();
  });

  test("logs are followed to the end of the container", async () => {
    const node = testNode();
    const script = "echo one; until [ -e /tmp/go ]; do sleep 0.1; done; echo two; echo oops >&2";
    node.writeManifest("work.json", sleeper("work", shell(script), { restartPolicy: "Never" }));
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
  });

  test("without a kubelet: reported, and logs are still read", async () => {
    const node = testNode();
    const none = await node.run("get pods");
    expect({ exitCode: none.exitCode, stdout: none.stdout }).toEqual({ exitCode: 0, stdout: "" });
    expect(none.stderr).toContain(`no kubelet runs on the root directory "${node.rootDir}"`);

    await node.runOnce([node.writeManifest("web.json", sleeper("web", shell(`echo hello; ${STOPPABLE}`)))]);
    const line = `logs web --docker-endpoint=unix://${engineSocketPath()}`;
    expect(await node.run(line)).toMatchObject({ exitCode: 0, stdout: "hello\n", stderr: "" });
    expect(await node.run(line.replace("web", "wbe"))).toMatchObject({ exitCode: 1 });
  });

  test("a command behind flags and a misspelt command start no kubelet", async () => {
    const node = testNode();
    await node.runOnce([node.writeManifest("web.json", sleeper("web"))]);
    const before = await node.runningContainer("app");
    for (const words of [["get", "pods"], ["gte", "pods"], ["logs", "web"], ["missing.yaml"]]) {
      const { exitCode } = await node.spawn([`--root-dir=${node.rootDir}`, ...words]).finished();
      expect([words, exitCode]).not.toEqual([words, undefined]);
    }
    expect((await node.runningContainer("app")).Id).toBe(before.Id);
  });

  test("a kubelet without ports is asked by its socket; one without servers cannot be asked", async () => {
    const node = testNode();
    const kubelet = await node.start(["--read-only-port=0"]);
    node.writeManifest("web.json", sleeper("web"));
    await node.until("the pod to run", async () => / Running /.test((await node.run("get pods")).stdout));
    await kubelet.stop();
    await node.start(["--enable-server=false"]);
    const { exitCode, stderr } = await node.run("get pods");
    expect(exitCode).toBe(1);
    expect(stderr).toContain("has its read-only port off");
  });
});
