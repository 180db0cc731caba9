import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { kubectlClients } from "../support/kubectl.ts";
import { askApi, startForKubectl } from "../support/local-api.ts";
import { until } from "../support/until.ts";

const clients = kubectlClients();

const STATIC = `
apiVersion: v1
kind: Pod
metadata: {name: static}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: app, image: "busybox:1.35", command: [sleep, "1000"]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-file}
data: {word: old}
`;

const SUBMITTED = `
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {word: old}
---
apiVersion: v1
kind: Pod
metadata: {name: echo}
spec:
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  containers: [{name: app, image: "busybox:1.35", command: [cat], stdin: true, stdinOnce: true}]
---
apiVersion: v1
kind: Pod
metadata: {name: idle}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: app, image: "busybox:1.35", command: [sleep, "1000"]}]
`;

describeWithEngine("kubectl", () => {
  test.each(clients)("$version edits, attaches, evicts, undoes and describes a CronJob", async (client) => {
    const node = testNode();
    node.writeManifest("static.yaml", STATIC);
    const kubectl = await startForKubectl(node, client);
    await kubectl.output(["apply", "-f", "-"], SUBMITTED);

    const edit = (name: string) =>
      kubectl.run(["edit", "configmap", name], undefined, { KUBE_EDITOR: "sed -i s/old/new/" });
    expect(await edit("words")).toMatchObject({ code: 0, stdout: "configmap/words edited\n" });
    expect(await kubectl.output(["get", "configmap", "words", "-o", "jsonpath={.data.word}"])).toBe("new");
    const refused = await edit("of-file");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(join(node.manifestDir, "static.yaml"))]);

    // The Deployment has no annotations: it was neither applied nor made by a controller of a cluster.
    const made = ["create", "deployment", "dep", "--image=busybox:1.35", "--", "sleep", "1000"];
    expect(await kubectl.output(made)).toBe("deployment.apps/dep created");
    const rolledOut = () => kubectl.output(["rollout", "status", "deployment/dep", "--timeout=60s"]);
    await rolledOut();
    const limits = ["get", "deployment", "dep", "-o", "jsonpath={.spec.template.spec.containers[0].resources.limits}"];
    await kubectl.output(["set", "resources", "deployment", "dep", "--limits=memory=64Mi"]);
    expect(await kubectl.output(limits)).toContain("64Mi");
    await rolledOut();
    expect(await kubectl.output(["rollout", "undo", "deployment/dep"])).toContain("rolled back");
    expect(await kubectl.output(limits)).toBe("");
    await kubectl.output(["delete", "deployment", "dep"]);

    await kubectl.output([
      "create",
      "cronjob",
      "nightly",
      "--image=busybox:1.35",
      "--schedule=0 3 * * *",
      "--",
      "true",
    ]);
    expect(await kubectl.output(["describe", "cronjob", "nightly"])).toMatch(/Schedule:\s+0 3 \* \* \*/);

    await kubectl.output(["wait", "--for=condition=Ready", "pod/echo", "pod/idle", "--timeout=60s"]);
    expect(await kubectl.output(["attach", "-i", "echo"], "typed\n")).toContain("typed");
    const phase = ["get", "pod", "echo", "-o", "jsonpath={.status.phase}"];
    await until("cat ends with its input", async () => (await kubectl.output(phase)) === "Succeeded");

    const evict = async (name: string, version: string) => {
      const body = { apiVersion: `policy/${version}`, kind: "Eviction", metadata: { name } };
      const { status, json } = await askApi(node, "POST", `/api/v1/namespaces/default/pods/${name}/eviction`, body);
      return { status, message: json.message };
    };
    expect((await evict("idle", "v1")).status).toBe(201);
    expect((await evict("echo", "v1beta1")).status).toBe(201);
    const pods = () => kubectl.output(["get", "pods", "-o", "name"]);
    await until("the evicted pods are gone", async () => !/idle|echo/.test(await pods()));
    expect(await evict(`static-${node.name}`, "v1")).toMatchObject({
      status: 403,
      message: expect.stringContaining("static.yaml"),
    });
  });
});
