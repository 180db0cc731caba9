import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { kubectlClients } from "../support/kubectl.ts";
import { startForKubectl } from "../support/local-api.ts";
import { inTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const POD = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "busybox:1.35", command: [sleep, "1000"]}]
`;

describeWithEngine("kubectl debug", () => {
  test.each(kubectlClients())("$version starts a container in a pod of a file and enters it", async (client) => {
    const node = testNode();
    node.writeManifest("web.yaml", POD);
    const kubectl = await startForKubectl(node, client);
    const name = `web-${node.name}`;
    await kubectl.output(["wait", "--for=condition=Ready", `pod/${name}`, "--timeout=60s"]);
    const app = await node.runningContainer("app");
    const args = ["debug", name, "--image=busybox:1.35", "--target=app", "-c", "tools", "-it"];
    const session = await inTerminal([client.program, ...args], {
      environment: kubectl.environment,
      until: "# ",
      input: "ps; hostname; exit\n",
    });
    // The processes of its target and the name of the pod.
    expect(session).toContain("sleep 1000");
    expect(session).toContain(`\n${name}`.slice(0, 63));
    await until("it ended", async () => {
      const path = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}";
      return (await kubectl.output(["get", "pod", name, "-o", path])) === "0";
    });
    expect(await kubectl.output(["logs", name, "-c", "tools"])).toContain("sleep 1000");
    expect((await node.runningContainer("app")).Id).toBe(app.Id);
    expect(await kubectl.output(["describe", "pod", name])).toMatch(/Ephemeral Containers:\s+tools:/);
  });
});
