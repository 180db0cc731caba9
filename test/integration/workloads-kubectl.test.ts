import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { kubectlClients } from "../support/kubectl.ts";
import { startForKubectl } from "../support/local-api.ts";
import { until } from "../support/until.ts";

const clients = kubectlClients();

const WEB = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: busybox:1.35
        command: [sh, -c, 'trap "exit 0" TERM; while true; do sleep 0.1; done']
`;

const MANUAL = `
apiVersion: batch/v1
kind: Job
metadata: {name: manual}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "busybox:1.35", command: [date]}]}}}
`;

const TICK = {
  apiVersion: "batch/v1",
  kind: "CronJob",
  metadata: { name: "tick" },
  spec: {
    schedule: "0 0 1 1 *",
    jobTemplate: {
      spec: {
        template: {
          spec: { restartPolicy: "Never", containers: [{ name: "app", image: "busybox:1.35", command: ["date"] }] },
        },
      },
    },
  },
};

const BRIEF = {
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: "brief" },
  spec: { ...TICK.spec.jobTemplate.spec, ttlSecondsAfterFinished: 0 },
};

describeWithEngine("workloads by kubectl", () => {
  test.each(clients)("kubectl $version rolls, scales, undoes, restarts and deletes", async (client) => {
    const node = testNode();
    node.writeManifest("tick.yaml", TICK);
    const kubectl = await startForKubectl(node, client);
    const status = () => kubectl.output(["rollout", "status", "deployment/web", "--timeout=60s"]);
    const image = () =>
      kubectl.output(["get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].env[0].value}"]);

    expect(await kubectl.output(["apply", "-f", "-"], WEB)).toBe("deployment.apps/web created");
    expect(await status()).toContain("successfully rolled out");
    expect(await kubectl.output(["get", "deployment", "web"])).toMatch(/web\s+2\/2\s+2\s+2\s/);
    await kubectl.output(["scale", "deployment/web", "--replicas=1"]);
    await until(
      "one pod",
      async () => (await kubectl.output(["get", "pods", "-l", "app=web", "-o", "name"])).split("\n").length === 1,
    );
    await kubectl.output(["set", "env", "deployment/web", "ROUND=2"]);
    expect(await status()).toContain("successfully rolled out");
    expect(await kubectl.output(["rollout", "history", "deployment/web"])).toMatch(/1 .*\n2 /);
    expect(await image()).toBe("2");
    await kubectl.output(["rollout", "undo", "deployment/web"]);
    expect(await status()).toContain("successfully rolled out");
    expect(await image()).toBe("");
    await kubectl.output(["rollout", "restart", "deployment/web"]);
    expect(await status()).toContain("successfully rolled out");

    // kubectl 1.20 knows CronJob of batch/v1beta1 only.
    if (client.version.startsWith("v1.20")) await kubectl.output(["apply", "-f", "-"], MANUAL);
    else await kubectl.output(["create", "job", "manual", "--from=cronjob/tick"]);
    await kubectl.output(["wait", "--for=condition=Complete", "job/manual", "--timeout=60s"]);
    const refused = await kubectl.run(["delete", "cronjob", "tick"]);
    expect(refused.code).not.toBe(0);

    const pods = async () => (await kubectl.output(["get", "pods", "-l", "app=web", "-o", "name"])).split("\n").sort();
    const before = await pods();
    await kubectl.output(["delete", "deployment/web", "--cascade=orphan"]);
    await kubectl.output(["apply", "-f", "-"], WEB);
    expect(await status()).toContain("successfully rolled out");
    expect(await pods()).toEqual(expect.arrayContaining(before));

    await kubectl.output(["apply", "-f", "-"], JSON.stringify(BRIEF));
    await until("the Job to be deleted", async () => (await kubectl.run(["get", "job", "brief"])).code !== 0);

    await kubectl.output(["delete", "deployment/web", "job/manual"]);
    await node.until("nothing left", async () => (await node.listAll()).length === 0);
    expect(await kubectl.output(["get", "replicasets", "-o", "name"])).toBe("");
  });
});
