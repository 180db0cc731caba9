import { expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { parse } from "yaml";
import type { KeyPair } from "../../src/server/certificates/certificate-process.ts";
import { makeCertificates } from "../../src/server/certificates/make-certificates.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { fillUp } from "../support/fill-up.ts";
import { askApi, startWithApi } from "../support/local-api.ts";
import { podSpec, sleeper, workload } from "../support/manifests.ts";
import { mounting } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

const configMap = (name: string, value: string) => ({ metadata: { name }, data: { value } });

/** Asks over TLS as a client with this certificate that trusts these authorities alone. */
function requestWith(port: number, ca: string, { cert, key }: KeyPair): Promise<{ status: number; serial: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; serial: string }>();
  const asked = get({ host: "127.0.0.1", port, path: CONFIG_MAPS, ca, cert, key, agent: false }, (response) => {
    const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate();
    response.resume();
    response.on("end", () => resolve({ status: response.statusCode ?? 0, serial: serialNumber }));
  });
  asked.on("error", reject);
  return promise;
}

/** Names of a serving certificate besides those of its machine. */
const SERVED = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/** Changes that watchers get. */
const ROUNDS = 300;

/** Resident memory of a process. Unit: MB. */
const residentMb = (pid: number) =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1000;

describeWithEngine("the local API under faults and load", () => {
  test("a body that is too long is refused", async () => {
    const node = testNode();
    await startWithApi(node);
    const answer = await askApi(node, "POST", CONFIG_MAPS, configMap("big", "x".repeat(4 * 2 ** 20))).catch(() => {});
    // The server may close before the client has sent all of it.
    if (answer) expect([answer.status, answer.json?.reason]).toEqual([413, "RequestEntityTooLarge"]);
    expect((await askApi(node, "GET", `${CONFIG_MAPS}/big`)).status).toBe(404);
    expect((await askApi(node, "POST", CONFIG_MAPS, configMap("small", "x"))).status).toBe(201);
  });

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

  test.if(mounting.ok)("a full disk refuses writes with 507 and changes nothing", async () => {
    const node = testNode();
    Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=16m", "none", node.rootDir]);
    node.writeManifest("web.yaml", sleeper("web"));
    // A full disk is a reason to evict pods.
    await startWithApi(node, ["--eviction-hard="]);
    const { Id } = await node.runningContainer("app");
    await askApi(node, "POST", CONFIG_MAPS, configMap("c", "old"));
    const file = join(node.rootDir, "manifests", "default", "configmap-c.yaml");
    const text = readFileSync(file, "utf8");
    const filler = join(node.rootDir, "filler");
    fillUp(filler);
    const large = "new".repeat(10_000);
    const patch = (value: string) =>
      askApi(node, "PATCH", `${CONFIG_MAPS}/c`, { data: { value } }, "application/merge-patch+json");
    for (const answer of [await askApi(node, "POST", CONFIG_MAPS, configMap("d", large)), await patch(large)]) {
      expect([answer.status, answer.json.kind, answer.json.reason]).toEqual([507, "Status", "InsufficientStorage"]);
      expect(answer.json.message).toContain("disk");
    }
    expect(readFileSync(file, "utf8")).toBe(text);
    expect((await askApi(node, "GET", `${CONFIG_MAPS}/c`)).json.data).toEqual({ value: "old" });
    expect((await askApi(node, "GET", `${CONFIG_MAPS}/d`)).status).toBe(404);
    expect((await node.runningContainer("app")).Id).toBe(Id);
    rmSync(filler);
    expect((await patch("new")).status).toBe(200);
    expect((await askApi(node, "POST", CONFIG_MAPS, configMap("d", large))).status).toBe(201);
    expect(parse(readFileSync(file, "utf8")).data).toEqual({ value: "new" });
    expect((await node.runningContainer("app")).Id).toBe(Id);
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
    const { child } = await startWithApi(node);
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
    await child.stop();
  });

  test("certificates that are due are renewed without a restart, and copies of the previous admin.conf stay valid", async () => {
    const node = testNode();
    const dayMs = 24 * 3_600_000;
    // Later than the start, unless the machine is slow.
    const dueAtMs = Date.now() + 8_000;
    const admins = { commonName: "kubelet-ts-admin", organization: "system:masters" };
    const {
      authority,
      leaves: [server, admin],
    } = await makeCertificates({
      authorityName: "kubelet-ts former",
      notBefore: dueAtMs - dayMs,
      authorityNotAfter: dueAtMs + 395 * dayMs,
      leaves: [
        {
          commonName: "node1",
          usage: "server",
          names: ["localhost", ...SERVED, node.name, "127.0.0.1", "::1"],
          notAfter: dueAtMs + 30 * dayMs,
        },
        { ...admins, usage: "client", names: [], notAfter: dueAtMs + 30 * dayMs },
      ],
    });
    const directory = join(node.rootDir, "apiserver");
    mkdirSync(directory, { recursive: true });
    for (const [name, pair] of Object.entries({ ca: authority, server: server!, admin: admin! })) {
      writeFileSync(join(directory, `${name}.crt`), pair.cert);
      writeFileSync(join(directory, `${name}.key`), pair.key, { mode: 0o600 });
    }
    const { port } = await startWithApi(node, ["--node-ip=127.0.0.1"]);
    const own = () => readFileSync(join(directory, "ca.crt"), "utf8");
    await until("the authority is another one", () => own() !== authority.cert);
    const served = (ca: string, client: KeyPair) => requestWith(port, ca, client);
    let certificate = "";
    await until("the new certificate is served", async () => {
      const answer = await served(authority.cert, admin!);
      certificate = answer.serial;
      return certificate !== new X509Certificate(server!.cert).serialNumber;
    });
    const conf = parse(readFileSync(join(node.rootDir, "admin.conf"), "utf8"));
    const decode = (text: string) => Buffer.from(text, "base64").toString();
    const bundle = decode(conf.clusters[0].cluster["certificate-authority-data"]);
    const renewed = {
      cert: decode(conf.users[0].user["client-certificate-data"]),
      key: decode(conf.users[0].user["client-key-data"]),
    };
    expect(renewed.cert).not.toBe(admin!.cert);
    // Each authority with each client: a copy made before, the file as it is now, and the new authority alone.
    for (const ca of [authority.cert, bundle, own()]) {
      for (const client of [admin!, renewed]) {
        expect(await served(ca, client)).toEqual({ status: 200, serial: certificate });
      }
    }
  });

  test("watchers that do not read delay no other client", async () => {
    const node = testNode();
    const { child } = await startWithApi(node);
    await askApi(node, "POST", CONFIG_MAPS, configMap("c", "0"));
    const watch = () => {
      const socket = connect(join(node.rootDir, "api.sock"));
      socket.on("error", () => {});
      socket.write(`GET ${CONFIG_MAPS}?watch=true HTTP/1.1\r\nHost: node1\r\n\r\n`);
      return socket;
    };
    const last = `"value":"${ROUNDS} `;
    /** The end of what each reader got, long enough for the last event. */
    const ends = new Map<number, string>();
    const reading = Array.from({ length: 100 }, (_, index) =>
      watch().on("data", (data) => {
        ends.set(index, ((ends.get(index) ?? "") + data.toString("latin1")).slice(-20_000));
      }),
    );
    const silent = Array.from({ length: 100 }, () => watch().pause());
    try {
      const value = "x".repeat(10_000);
      const before = residentMb(child.pid);
      for (let round = 1; round <= ROUNDS; round++) {
        const patch = { data: { value: `${round} ${value}` } };
        const { status } = await askApi(node, "PATCH", `${CONFIG_MAPS}/c`, patch, "application/merge-patch+json");
        expect(status).toBe(200);
      }
      expect((await askApi(node, "GET", `${CONFIG_MAPS}/c`)).json.data.value.startsWith(`${ROUNDS} `)).toBe(true);
      await until("every reader has the last event", () =>
        reading.every((_, index) => ends.get(index)?.includes(last)),
      );
      // Buffered for each silent reader, the events would take 300 MB.
      expect(residentMb(child.pid) - before).toBeLessThan(150);
    } finally {
      for (const socket of [...silent, ...reading]) socket.destroy();
    }
  });
});
