import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, hasNetworkNames, testNode } from "../support/engine.ts";
import { freePorts } from "../support/test-servers.ts";

const SERVER = "hostname > /tmp/index.html; exec httpd -f -p 80 -h /tmp";

/**
 * A scaled service behind a published port, two services in one network, and a client that finds all of them by name; one that only
 * a service of two networks finds.
 */
const composeFile = (port: number) => `
services:
  web:
    image: busybox:test
    command: [sh, -c, "${SERVER}"]
    restart: always
    ports: ["${port}:80"]
    deploy: { replicas: 2 }
  db_main:
    image: busybox:test
    container_name: pg.main
    command: [sh, -c, "echo db > /tmp/index.html; exec httpd -f -p 80 -h /tmp"]
    healthcheck: { test: [CMD, wget, -q, -O, /dev/null, "http://127.0.0.1:8081/"], interval: 1s, retries: 60 }
    networks: { default: { aliases: [database] } }
  side:
    image: busybox:test
    network_mode: service:db_main
    command: [sh, -c, "echo side > /tmp/index.html; exec httpd -f -p 8081 -h /tmp"]
  vault:
    image: busybox:test
    command: [sh, -c, "echo vault > /tmp/index.html; exec httpd -f -p 80 -h /tmp"]
    networks: [back]
  gate:
    image: busybox:test
    command: [sh, -c, "until wget -q -O /tmp/index.html http://vault/; do sleep 0.2; done; exec httpd -f -p 80 -h /tmp"]
    healthcheck: { test: wget -q -O /dev/null http://127.0.0.1/, interval: 1s, start_period: 10m, retries: 60 }
    networks: [default, back]
  client:
    profiles: [tests]
    image: busybox:test
    configs: [{ source: app, target: app.conf, mode: "0440" }]
    depends_on:
      gate: { condition: service_healthy }
      db_main: { condition: service_healthy }
      web: { condition: service_started }
    links: ["web:www"]
    command:
      - sh
      - -c
      - |
        for name in db_main pg.main database db_main:8081 gate vault; do
          wget -q -O - http://$$name/ 2>/dev/null || echo "no $$name"
        done
        nslookup web | grep -c ^Address
        nslookup www | grep -c ^Address
        stat -L -c %a /app.conf
configs: { app: { content: a } }
networks: { back: { internal: true } }
`;

describeWithEngine("import compose", () => {
  test.skipIf(!hasNetworkNames)(
    "what is imported does what the Compose file says",
    async () => {
      const node = testNode();
      const [port = 0] = freePorts(1);
      const file = join(node.directory, "compose.yaml");
      writeFileSync(file, composeFile(port));
      const imported = await node.run("import compose --profile=tests --project-name", node.name, "-f", file);
      expect(imported).toMatchObject({ exitCode: 0 });
      const networks = [node.name, `${node.name}_back`];
      for (const Name of networks) await node.docker.createNetwork({ Name });
      try {
        node.writeManifest("compose.yaml", imported.stdout);
        await node.start();
        await node.untilPhase("client", "Succeeded");
        const [client] = await node.containers("client");
        // Docker answers with the server's address and those of both pods.
        expect(await node.logs(client?.Id ?? "")).toBe("db\ndb\ndb\nside\nvault\nno vault\n3\n3\n440\n");
        const names = new Set<string>();
        await node.until("both pods to answer on the published port", async () => {
          const response = await fetch(`http://127.0.0.1:${port}/`, { keepalive: false }).catch(() => undefined);
          if (response) names.add((await response.text()).trim());
          return names.size === 2;
        });
      } finally {
        await node.cleanUp();
        for (const name of networks) await node.docker.removeNetwork(name);
      }
    },
    120_000,
  );
});
