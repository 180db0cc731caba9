import { expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { canHang, hangingDisk } from "../support/hanging-disk.ts";
import { sleeper } from "../support/manifests.ts";

function postConfigMap(name: string): string {
  const body = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
  const headers = `Host: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\n${headers}\r\n\r\n${body}`;
}

describeWithEngine("disks that do not answer", () => {
  test.skipIf(!canHang)(
    "root directory, manifests and log links hang: probes and answers continue, and everything recovers",
    async () => {
      const node = testNode();
      let isHealthy = true;
      using server = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: () => new Response("", { status: isHealthy ? 200 : 500 }),
      });
      const httpGet = { host: "127.0.0.1", port: server.port };
      node.writeManifest(
        "web.json",
        sleeper("web", { livenessProbe: { httpGet, periodSeconds: 1, failureThreshold: 1 } }),
      );
      await node.start(["--anonymous-auth", `--port=${node.kubeletPort}`]);
      const { Id } = await node.runningContainer("app");
      const healthz = () => node.read("/healthz", node.healthzPort);
      const places = [node.rootDir, node.manifestDir, join(node.directory, "log-pods")];
      // Connected before: the socket lies on the disk, too.
      const api = connect(join(node.rootDir, "api.sock"));
      await once(api, "connect");
      let apiResponse = "";
      api.on("data", (data) => (apiResponse += data));
      const ends = places.map(hangingDisk);
      try {
        expect(await healthz()).toBe("ok");
        isHealthy = false;
        await node.until("the container to be killed by its probe", async () => {
          expect(await healthz()).toBe("ok");
          return !(await node.docker.inspectContainer(Id)).State.Running;
        });
        isHealthy = true;
        // A write of the API waits for the disk; nothing waits for the write.
        api.write(postConfigMap("late"));
        // The start that waits for the disk delays no answer.
        for (let time = 0; time < 20; time++) expect((await node.pods()).length).toBe(1);
        expect(apiResponse === "" || apiResponse.startsWith("HTTP/1.1 500")).toBe(true);
        const stats = await fetch(`https://127.0.0.1:${node.kubeletPort}/healthz`, {
          tls: { rejectUnauthorized: false },
        });
        expect(stats.status).toBe(200);
      } finally {
        for (const end of ends) end();
      }
      await node.until("the answer of the API", () => /^HTTP\/1\.1 (201|500)/.test(apiResponse));
      api.destroy();
      await node.until("its successor", async () => {
        const [pod] = await node.pods();
        return pod?.status.containerStatuses?.[0]?.ready === true && (await node.runningContainer("app")).Id !== Id;
      });
    },
  );
});
