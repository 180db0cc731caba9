import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { askApi, startWithApi } from "../support/local-api.ts";
import { podSpec, workload } from "../support/manifests.ts";
import { until } from "../support/until.ts";

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

const configMap = (name: string, value: string) => ({ metadata: { name }, data: { value } });

describeWithEngine("the local API under faults and load", () => {
  test("a kill in the middle of writes leaves whole files, and what was acknowledged is there", async () => {
    const node = testNode();
    const { child, port } = await startWithApi(node);
    const acknowledged = new Map<string, number>();
    let isKilled = false;
    const writer = async (name: string) => {
      for (let round = 1; !isKilled; round++) {
        const body = { ...configMap(name, String(round)), apiVersion: "v1", kind: "ConfigMap" };
        const path = `${CONFIG_MAPS}/${name}?fieldManager=test&force=true`;
        const apply = askApi(node, "PATCH", path, body, "application/apply-patch+yaml");
        const answer = await apply.catch(() => undefined);
        if (!answer) return;
        if (answer.status < 300) acknowledged.set(name, round);
      }
    };
    const writers = ["a", "b", "c", "d"].map(writer);
    await until("each has written", () => ["a", "b", "c", "d"].every((name) => (acknowledged.get(name) ?? 0) > 5));
    await child.kill();
    isKilled = true;
    await Promise.all(writers);
    const directory = join(node.rootDir, "manifests", "default");
    for (const file of readdirSync(directory).filter((name) => /^[^.].*\.yaml$/.test(name))) {
      expect(parse(readFileSync(join(directory, file), "utf8")).kind).toBe("ConfigMap");
    }
    await startWithApi(node, [], port);
    for (const [name, round] of acknowledged) {
      const { json } = await askApi(node, "GET", `${CONFIG_MAPS}/${name}`);
      expect(Number(json.data.value)).toBeGreaterThanOrEqual(round);
    }
  });

  test("a kill in the middle of deletions: owners and namespaces go with the last of their pods", async () => {
    const node = testNode();
    const first = await startWithApi(node);
    const slow = podSpec({ command: ["sleep", "1000"] }, { terminationGracePeriodSeconds: 5 });
    const deployments = (namespace: string) => `/apis/apps/v1/namespaces/${namespace}/deployments`;
    await askApi(node, "POST", "/api/v1/namespaces", {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "lab" },
    });
    for (const namespace of ["default", "lab"]) {
      await askApi(node, "POST", deployments(namespace), workload("Deployment", "web", { replicas: 1 }, slow));
    }
    await node.untilRunning(2);
    const paths = [`${deployments("default")}/web`, "/api/v1/namespaces/lab"];
    for (const path of paths) await askApi(node, "DELETE", path, { propagationPolicy: "Foreground" });
    await first.child.kill();
    await startWithApi(node);
    const statuses = async () => {
      const found = [];
      for (const path of paths) found.push((await askApi(node, "GET", path)).status);
      return String(found);
    };
    await node.until("both to be gone", async () => {
      const seen = await statuses();
      if ((await node.running()).length === 2) expect(seen).toBe("200,200");
      return seen === "404,404";
    });
    expect(await node.running()).toEqual([]);
  });
});
