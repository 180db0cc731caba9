import { expect, test } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { shell, sleeper } from "../support/manifests.ts";

/** 20 by hand: `KUBELET_TS_TEST_ENGINE_RESTARTS=20`. */
const RESTARTS = Number(process.env.KUBELET_TS_TEST_ENGINE_RESTARTS ?? 2);

describeWithEngine("kubelet-ts.io/depends-on", () => {
  test(`over ${RESTARTS} restarts of the engine the application never starts before its database is Ready, and stops first`, async () => {
    const engine = await privateEngine();
    await engine.provideImages("busybox:test");
    const node = testNode({ socketPath: engine.socketPath });
    const records = join(node.directory, "records");
    mkdirSync(records);
    const volumes = [{ name: "records", hostPath: { path: records } }];
    const pod = (name: string, command: string, more: { annotations?: object; container?: object } = {}) => {
      const script = `trap 'echo ${name}-end >> /records/log; exit 0' TERM; ${command}; while :; do sleep 0.1; done`;
      const volumeMounts = [{ name: "records", mountPath: "/records" }];
      const spec = { terminationGracePeriodSeconds: 10, volumes };
      const { annotations = {} } = more;
      return sleeper(name, { name, ...shell(script), volumeMounts, ...more.container }, spec, { annotations });
    };
    const annotations = { "kubelet-ts.io/depends-on": "default/db=Ready" };
    node.writeManifest("app.json", pod("app", "echo app-start >> /records/log", { annotations }));
    const becomesReady = "echo db-start >> /records/log; sleep 1; echo db-ready >> /records/log; touch /tmp/ready";
    const readinessProbe = { exec: { command: ["test", "-e", "/tmp/ready"] }, periodSeconds: 1 };
    node.writeManifest("db.json", pod("db", becomesReady, { container: { readinessProbe } }));
    await node.start();
    const log = () => readFileSync(join(records, "log"), "utf8").trim().split("\n");
    const starts = () => log().filter((line) => line === "app-start").length;
    for (let round = 1; round <= RESTARTS + 1; round++) {
      await node.until(`start ${round} of the application`, () => starts() === round || undefined);
      if (round > RESTARTS) break;
      // Every other round it is killed: its containers keep running, and the next process ends them.
      if (round % 2 === 0) await engine.kill();
      else await engine.stop();
      await engine.start();
    }
    const before = log();
    let database = "";
    for (const line of before) {
      if (line === "app-start") expect(database).toBe("db-ready");
      else if (line.startsWith("db-")) database = line;
    }
    expect(before.filter((line) => line === "db-start")).toHaveLength(RESTARTS + 1);

    node.removeManifest("db.json");
    node.removeManifest("app.json");
    await node.until("both to end", () => log().length >= before.length + 2 || undefined);
    expect(log().slice(before.length)).toEqual(["app-end", "db-end"]);
  });
});
