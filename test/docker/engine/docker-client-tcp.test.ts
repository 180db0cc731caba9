import { afterEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DockerClient } from "../../../src/docker/engine/docker-client.ts";
import { parseEndpoint } from "../../../src/docker/engine/endpoint.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { TestCertificates } from "../../support/test-certificates.ts";

const directory = tempDirs()();
const { cert, key } = new TestCertificates(directory).serverNamed("engine.test");
for (const [file, text] of [
  ["ca.pem", cert],
  ["cert.pem", cert],
  ["key.pem", key],
] as const) {
  writeFileSync(join(directory, file), text);
}

let server: Bun.Server<undefined> | undefined;
afterEach(async () => {
  await server?.stop(true);
});

function serve(tls: boolean): number {
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    ...(tls && { tls: { cert, key } }),
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/_ping") return new Response("OK", { headers: { "Api-Version": "1.41" } });
      if (pathname === "/version") return Response.json({ Version: "20.10.24", ApiVersion: "1.41" });
      if (pathname === "/v1.41/networks") return Response.json([]);
      if (pathname === "/v1.41/events") return new Response('{"Type":"container","Action":"start","time":1}\n');
      return new Response(null, { status: 404 });
    },
  });
  return server.port ?? 0;
}

async function useEverything(client: DockerClient): Promise<string[]> {
  expect(await client.listNetworks()).toEqual([]);
  const seen: string[] = [];
  for await (const { action } of client.events()) {
    seen.push(action);
    break;
  }
  return seen;
}

test("tcp:// without TLS, short calls and streams", async () => {
  const endpoint = parseEndpoint(`tcp://127.0.0.1:${serve(false)}`, {});
  expect(await useEverything(new DockerClient(endpoint))).toEqual(["start"]);
});

test("tcp:// with TLS whose certificate is not checked (DOCKER_TLS)", async () => {
  const env = { DOCKER_TLS: "1", DOCKER_CERT_PATH: directory };
  const endpoint = parseEndpoint(`tcp://127.0.0.1:${serve(true)}`, env);
  expect(await useEverything(new DockerClient(endpoint))).toEqual(["start"]);
});

test("DOCKER_TLS_VERIFY refuses a certificate for another name, in short calls and streams", async () => {
  const env = { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: directory };
  const client = new DockerClient(parseEndpoint(`tcp://127.0.0.1:${serve(true)}`, env));
  await expect(client.ping()).rejects.toMatchObject({ kind: "not-trusted" });
});

test("certificate files that are not there are named", async () => {
  const env = { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: "/nonexistent" };
  const client = new DockerClient(parseEndpoint(`tcp://127.0.0.1:${serve(true)}`, env));
  await expect(client.ping()).rejects.toMatchObject({ kind: "bad-endpoint" });
  await expect(client.ping()).rejects.toThrow("/nonexistent/ca.pem");
});
