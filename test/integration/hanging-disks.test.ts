import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { canHang, hangingDisk } from "../support/hanging-disk.ts";

describeWithEngine("disks that do not answer", () => {
  test.skipIf(!canHang)(
    "root directory, manifests and log links hang: probes and answers go on, and all comes back",
    async () => {
      const node = testNode();
      let isHealthy = true;
      using server = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: () => new Response("", { status: isHealthy ? 200 : 500 }),
      });
      const livenessProbe = {
        httpGet: { host: "127.0.0.1", port: server.port },
        periodSeconds: 1,
        failureThreshold: 1,
      };
      node.writeManifest("web.json", {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "web" },
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: [{ name: "app", image: "busybox:test", command: ["sleep", "100000"], livenessProbe }],
        },
      });
      await node.start();
      const { Id } = await node.runningContainer("app");
      const healthz = async () => (await fetch(`http://127.0.0.1:${node.healthzPort}/healthz`)).text();
      const places = [node.rootDir, node.manifestDir, join(node.directory, "log-pods")];
      const ends = places.map(hangingDisk);
      try {
        expect(await healthz()).toBe("ok");
        isHealthy = false;
        await node.until("the container to be killed by its probe", async () => {
          expect(await healthz()).toBe("ok");
          return !(await node.docker.inspectContainer(Id)).State.Running;
        });
        isHealthy = true;
        // The start that waits for the disk delays no answer.
        for (let time = 0; time < 20; time++) expect((await node.pods()).length).toBe(1);
      } finally {
        for (const end of ends) end();
      }
      await node.until("its successor", async () => {
        const [pod] = await node.pods();
        return pod?.status.containerStatuses?.[0]?.ready === true && (await node.runningContainer("app")).Id !== Id;
      });
    },
  );
});
