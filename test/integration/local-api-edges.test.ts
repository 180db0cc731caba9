import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { parse } from "yaml";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { freePorts, type TestNode } from "../support/test-node.ts";
import { until } from "../support/until.ts";

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

async function ask(node: TestNode, method: string, path: string, body?: unknown, type = "application/json") {
  const response = await fetch(`http://node1${path}`, {
    unix: join(node.rootDir, "api.sock"),
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { "Content-Type": type } }),
  } as RequestInit);
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every kind.
  return { status: response.status, json: (await response.json().catch(() => undefined)) as any };
}

const configMap = (name: string, value: string) => ({ metadata: { name }, data: { value } });

async function startWithApi(node: TestNode, port = freePorts(1)[0] ?? 0, flags: readonly string[] = []) {
  const child = await node.start([`--local-api-port=${port}`, ...flags]);
  await until("the local API writes its kubeconfig", () => existsSync(join(node.rootDir, "admin.conf")));
  await until("it answers", async () => (await ask(node, "GET", "/version").catch(() => undefined))?.status === 200);
  return { child, port };
}

describeWithEngine("the local API in difficult hours", () => {
  test("a body that is too long is refused, and the next request is answered", async () => {
    const node = testNode();
    await startWithApi(node);
    const answer = await ask(node, "POST", CONFIG_MAPS, configMap("big", "x".repeat(4 * 1024 * 1024))).catch(
      () => undefined,
    );
    // The server may close before the client has sent all of it.
    if (answer) expect([answer.status, answer.json?.reason]).toEqual([413, "RequestEntityTooLarge"]);
    expect((await ask(node, "GET", `${CONFIG_MAPS}/big`)).status).toBe(404);
    expect((await ask(node, "POST", CONFIG_MAPS, configMap("small", "x"))).status).toBe(201);
  });

  test("of many writers with one resourceVersion one wins", async () => {
    const node = testNode();
    await startWithApi(node);
    const { json } = await ask(node, "POST", CONFIG_MAPS, configMap("c", "0"));
    const writers = Array.from({ length: 50 }, (_, index) =>
      ask(node, "PUT", `${CONFIG_MAPS}/c`, { ...json, data: { value: `writer ${index}` } }),
    );
    const codes = (await Promise.all(writers)).map(({ status }) => status);
    expect(codes.filter((code) => code === 200).length).toBe(1);
    expect(codes.filter((code) => code === 409).length).toBe(49);
  });

  test("a kill in the middle of writes leaves whole files, and what was acknowledged is there", async () => {
    const node = testNode();
    const { child, port } = await startWithApi(node);
    const acknowledged = new Map<string, number>();
    let isKilled = false;
    const writer = async (name: string) => {
      for (let round = 1; !isKilled; round++) {
        const body = { ...configMap(name, String(round)), apiVersion: "v1", kind: "ConfigMap" };
        const query = "fieldManager=test&force=true";
        const answer = await ask(
          node,
          "PATCH",
          `${CONFIG_MAPS}/${name}?${query}`,
          body,
          "application/apply-patch+yaml",
        ).catch(() => undefined);
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
    for (const file of readdirSync(directory).filter((name) => name.endsWith(".yaml"))) {
      expect(parse(readFileSync(join(directory, file), "utf8")).kind).toBe("ConfigMap");
    }
    await startWithApi(node, port);
    for (const [name, round] of acknowledged) {
      const { json } = await ask(node, "GET", `${CONFIG_MAPS}/${name}`);
      expect(Number(json.data.value)).toBeGreaterThanOrEqual(round);
    }
  });

  test("watchers that do not read hold nobody up", async () => {
    const node = testNode();
    await startWithApi(node);
    await ask(node, "POST", CONFIG_MAPS, configMap("c", "0"));
    const silent = Array.from({ length: 50 }, () => {
      const socket = connect(join(node.rootDir, "api.sock"));
      socket.on("error", () => {});
      socket.write(`GET ${CONFIG_MAPS}?watch=true HTTP/1.1\r\nHost: node1\r\n\r\n`);
      socket.pause();
      return socket;
    });
    try {
      const value = "x".repeat(10_000);
      for (let round = 1; round <= 300; round++) {
        const patch = { data: { value: `${round} ${value}` } };
        expect((await ask(node, "PATCH", `${CONFIG_MAPS}/c`, patch, "application/merge-patch+json")).status).toBe(200);
      }
      expect((await ask(node, "GET", `${CONFIG_MAPS}/c`)).json.data.value.startsWith("300 ")).toBe(true);
    } finally {
      for (const socket of silent) socket.destroy();
    }
  });

  test("an informer of @kubernetes/client-node lives through a restart and the 410 after it", async () => {
    const node = testNode();
    const tokens = join(node.directory, "tokens.csv");
    writeFileSync(tokens, 'informer-token,informer,1,"view"\n', { mode: 0o600 });
    const [port = 0] = freePorts(1);
    const flags = [`--token-auth-file=${tokens}`];
    const { child } = await startWithApi(node, port, flags);
    const script = join(import.meta.dir, "..", "support", "informer.ts");
    const informer = Bun.spawn([process.execPath, script, `https://127.0.0.1:${port}`, "informer-token"], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: join(node.rootDir, "apiserver", "ca.crt") },
      stdout: "pipe",
      stderr: "inherit",
    });
    const values = new Map<string, string>();
    const reading = (async () => {
      for await (const line of linesOf(informer.stdout)) {
        const { type, name, value } = JSON.parse(line) as { type: string; name: string; value: string };
        if (type === "delete") values.delete(name);
        else values.set(name, value);
      }
    })();
    try {
      await ask(node, "POST", CONFIG_MAPS, configMap("before", "1"));
      await until("the informer sees it", () => values.get("before") === "1");
      await child.kill();
      await startWithApi(node, port, flags);
      await ask(node, "POST", CONFIG_MAPS, configMap("after", "2"));
      await ask(node, "DELETE", `${CONFIG_MAPS}/before`);
      await until("the informer has caught up", () => values.get("after") === "2" && !values.has("before"));
    } finally {
      informer.kill();
      await reading;
    }
  });
});

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
