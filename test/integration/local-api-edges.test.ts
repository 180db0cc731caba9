import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { askApi, startWithApi } from "../support/local-api.ts";
import { HOST, podSpec, workload } from "../support/manifests.ts";

describeWithEngine("the local API under faults and load", () => {
  test("a kill in the middle of deletions: owners and namespaces go with the last of their pods", async () => {
    const node = testNode();
    const first = await startWithApi(node);
    const slow = podSpec({ command: ["sleep", "1000"] }, { ...HOST, terminationGracePeriodSeconds: 5 });
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
