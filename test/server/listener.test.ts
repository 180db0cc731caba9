import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import tls from "node:tls";
import { LOCAL_TEXT_FILES } from "../../src/base/files/whole-file.ts";
import { toTlsVersions } from "../../src/config/cipher-suites.ts";
import { Listener } from "../../src/server/listener.ts";
import { type RouteResponse, type ServerRequest, textResponse } from "../../src/server/request-handler.ts";
import { readTlsMaterial } from "../../src/server/serving-certificate.ts";
import { cleanUps } from "../support/clean-ups.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { type CertificateFiles, TestCertificates } from "../support/test-certificates.ts";
import { until } from "../support/until.ts";
import { aClient } from "./a-client.ts";

const temp = tempDirs();
const certificates = new TestCertificates(temp());
const HOST = "127.0.0.1";
const authority = certificates.authority("ours");
const otherAuthority = certificates.authority("theirs");
const server = certificates.server("server");
const otherServer = certificates.server("other-server", "rsa");
const alice = certificates.client("/O=devs/O=ops/CN=alice", authority);

const cleanUp = cleanUps();

/** Tells who asked. */
const tellWho = ({ shown }: ServerRequest): RouteResponse =>
  textResponse(200, shown ? `${shown.isVerified} ${shown.commonName} ${shown.organizations}` : "no one");

interface WorldOptions {
  route?: (request: ServerRequest) => RouteResponse | Promise<RouteResponse>;
  minVersion?: "VersionTLS12" | "VersionTLS13";
  suites?: readonly string[];
  clientCa?: boolean;
  isOptional?: boolean;
}

/** A listener whose certificate files can be changed. */
async function aListener({
  route = tellWho,
  minVersion = "VersionTLS12",
  suites = [],
  clientCa = true,
  isOptional = false,
}: WorldOptions = {}) {
  const directory = temp();
  const path = (name: string) => `${directory}/${name}`;
  const use = ({ cert, key }: { cert: string; key: string }, ca = authority.cert) => {
    writeFileSync(path("tls.crt"), cert);
    writeFileSync(path("tls.key"), key);
    writeFileSync(path("ca.crt"), ca);
  };
  use(server);
  const files = {
    certDir: path("pki"),
    tlsCertFile: path("tls.crt"),
    tlsPrivateKeyFile: path("tls.key"),
    clientCaFile: clientCa ? path("ca.crt") : "",
  };
  const store = { files: LOCAL_TEXT_FILES, makeCertificate: () => Promise.reject(new Error("none is made")) };
  const clock = new FakeClock("2026-11-21T06:40:00.500Z");
  const logger = new RecordingLogger();
  const readMaterial = () => readTlsMaterial(store, files, { nodeName: "node1", nodeIp: "" }, clock.now());
  const versions = toTlsVersions(minVersion, suites);
  const listener = new Listener(
    {
      name: "authenticated port",
      address: { hostname: HOST, port: 0 },
      acceptsHost: () => true,
      transport: "node:http",
      tls: { versions, readMaterial, isOptional },
      route,
    },
    { clock, logger },
  );
  cleanUp(() => listener.stop());
  const listening = () => until("the port", () => listener.port);
  return { listener, clock, logger, use, path, listening };
}

async function started(options: WorldOptions = {}) {
  const world = await aListener(options);
  world.listener.start();
  return { ...world, port: await world.listening() };
}

type Client = Pick<CertificateFiles, "cert" | "key">;

/** @returns the response, and the common name of the server's certificate */
function ask(port: number, client?: Client): Promise<{ text: string; server: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: HOST, port, path: "/", agent: false, rejectUnauthorized: false, ...client };
    const request = https.request(options, (response) => {
      const server = String((response.socket as tls.TLSSocket).getPeerCertificate().subject.CN);
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => resolve({ text, server }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end();
  });
}

const textFor = async (port: number, client?: Client) => (await ask(port, client)).text;

describe("certificates of clients", () => {
  test.each<[which: string, client: Client | undefined, want: string]>([
    ["none", undefined, "no one"],
    ["one of the authority", alice, "true alice devs,ops"],
    ["one of another", certificates.client("/O=system:masters/CN=alice", otherAuthority), "false alice system:masters"],
    ["one for servers", certificates.client("/CN=srv", authority, { usage: "serverAuth" }), "false srv "],
    ["one that has ended", certificates.client("/CN=old", authority, { days: -1 }), "false old "],
    ["one that signs itself", otherServer, "false other-server "],
    ["one with two names", certificates.client("/CN=first/CN=last", authority), "true last "],
  ])("%s", async (_, client, want) => {
    const { port } = await started();
    expect(await textFor(port, client && { cert: client.cert, key: client.key })).toBe(want);
  });

  test("without --client-ca-file none is asked for: those of the system's authorities say nothing here", async () => {
    const { port } = await started({ clientCa: false });
    expect(await textFor(port, alice)).toBe("no one");
  });

  test("a session that was resumed knows its certificate, one from before a change of authorities does not count", async () => {
    const { port, use, clock, logger } = await started();
    const first = await whoWithSession(port, undefined);
    expect(first.text).toContain("true alice");
    const second = await whoWithSession(port, first.session);
    expect(second.text).toContain("true alice");
    expect(second.reused).toBe(true);
    use(server, otherAuthority.cert);
    await clock.advance(10_000);
    expect(logger.lines).toContain("info The authenticated port uses new certificates");
    const third = await whoWithSession(port, second.session);
    expect(third.text).toContain("false alice");
  });
});

/** One request over a connection that offers to resume `session`. */
async function whoWithSession(port: number, session: Buffer | undefined) {
  const { cert, key } = alice;
  const options = { host: HOST, port, rejectUnauthorized: false, cert, key, ...(session && { session }) };
  const text = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const { socket, seen } = aClient(port, { text, open: () => tls.connect(options) });
  let next = session;
  socket.on("session", (ticket: Buffer) => {
    next = ticket;
  });
  let reused = false;
  socket.on("secureConnect", () => {
    reused = (socket as tls.TLSSocket).isSessionReused();
  });
  await until("the end", () => seen.isClosed);
  return { text: seen.text, session: next, reused };
}

describe("certificate files", () => {
  test("are taken over while it runs; bad ones are reported once and change nothing", async () => {
    const { port, use, path, clock, logger } = await started();
    expect((await ask(port)).server).toBe("server");
    writeFileSync(path("tls.key"), otherServer.key);
    await clock.advance(10_000);
    await clock.advance(10_000);
    expect((await ask(port)).server).toBe("server");
    const errors = logger.lines.filter((line) => line.startsWith("error"));
    expect(errors).toEqual(["error Cannot use the new certificates; the authenticated port keeps the old ones"]);
    use(otherServer);
    await clock.advance(10_000);
    expect((await ask(port)).server).toBe("other-server");
  });

  test("that cannot be used at the start are tried again, reported once", async () => {
    const { listener, use, path, clock, logger, listening } = await aListener();
    writeFileSync(path("tls.crt"), "no certificate");
    listener.start();
    await clock.advance(1_000);
    await clock.advance(2_000);
    expect(listener.port).toBeUndefined();
    expect(logger.lines.filter((line) => line.startsWith("error"))).toEqual([
      "error Cannot serve the authenticated port, trying again",
    ]);
    use(server);
    await clock.advance(4_000);
    expect(await textFor(await listening(), alice)).toContain("true alice");
  });
});

test("a client that speaks plain HTTP gets no answer, and the next one is served", async () => {
  const { port } = await started();
  const { seen } = aClient(port, { text: "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" });
  await until("the end", () => seen.isClosed);
  expect(seen.text).not.toContain("HTTP");
  expect(await textFor(port, alice)).toContain("true alice");
});

describe("versions and suites", () => {
  const protocolWith = (port: number, options: tls.ConnectionOptions) =>
    new Promise<string>((resolve) => {
      const socket = tls.connect({ host: HOST, port, rejectUnauthorized: false, ...options }, () => {
        resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
        socket.destroy();
      });
      socket.on("error", () => resolve("refused"));
    });

  test("--tls-min-version", async () => {
    const { port } = await started({ minVersion: "VersionTLS13" });
    expect(await protocolWith(port, { maxVersion: "TLSv1.2" })).toBe("refused");
    expect(await protocolWith(port, {})).toStartWith("TLSv1.3");
    const older = await started();
    expect(await protocolWith(older.port, { maxVersion: "TLSv1.2" })).toStartWith("TLSv1.2");
  });

  test("--tls-cipher-suites", async () => {
    const { port } = await started({ suites: ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"] });
    expect(await protocolWith(port, { maxVersion: "TLSv1.2" })).toBe("TLSv1.2 ECDHE-ECDSA-CHACHA20-POLY1305");
    const other = { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" } as const;
    expect(await protocolWith(port, other)).toBe("refused");
    const defaults = await started();
    expect(await protocolWith(defaults.port, other)).toBe("TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256");
    expect(await protocolWith(defaults.port, { ...other, ciphers: "ECDHE-ECDSA-AES128-SHA" })).toBe("refused");
  });
});

describe("TLS that is optional", () => {
  const route = ({ isSecure }: ServerRequest): RouteResponse => textResponse(200, isSecure ? "over TLS" : "plain");
  const plainly = async (port: number) => (await fetch(`http://${HOST}:${port}/`)).text();

  test("one port answers with and without it", async () => {
    const { port } = await started({ isOptional: true, route });
    expect([await plainly(port), await textFor(port)]).toEqual(["plain", "over TLS"]);
  });

  test("the port is open before there is a certificate, which is found with the next client", async () => {
    const { listener, listening, logger, path, use } = await aListener({ isOptional: true, route });
    rmSync(path("tls.crt"));
    listener.start();
    const port = await listening();
    expect(await plainly(port)).toBe("plain");
    expect(textFor(port)).rejects.toThrow();
    await until("the message", () => logger.lines.find((line) => line.includes("has no TLS")));
    use(server);
    expect(await textFor(port)).toBe("over TLS");
  });

  test("a request whose bytes come one at a time is understood", async () => {
    const { port } = await started({ isOptional: true, route });
    const { socket, seen } = aClient(port);
    for (const byte of "GET / HTTP/1.1\r\nHost: x\r\n\r\n") {
      await new Promise((resolve) => socket.write(byte, resolve));
    }
    await until("the answer", () => seen.text.includes("plain"));
    socket.destroy();
  });
});

describe("connections that ask nothing", () => {
  test("give way to new ones above the limit", async () => {
    const { port } = await started();
    const clients = Array.from({ length: 300 }, () => aClient(port));
    await until("the oldest to be closed", () => clients.filter(({ seen }) => seen.isClosed).length === 50);
    expect(await textFor(port, alice)).toContain("true alice");
    for (const { socket } of clients) socket.destroy();
  });

  test.each([
    { which: "sends nothing after the handshake", bytes: "" },
    { which: "never completes its request", bytes: "GET / HTTP/1.1\r\nHost: x\r\n" },
    { which: "has its response and stays", bytes: "GET / HTTP/1.1\r\nHost: x\r\n\r\n" },
  ])("one that $which is closed", async ({ bytes }) => {
    const { port, clock } = await started();
    const open = () => tls.connect({ host: HOST, port, rejectUnauthorized: false }) as tls.TLSSocket;
    const { socket, seen } = aClient(port, { text: bytes, open });
    await until(
      "the handshake",
      () =>
        (socket as tls.TLSSocket).getPeerCertificate().subject &&
        (!bytes.endsWith("\r\n\r\n") || seen.text.includes("no one")),
    );
    await until("the end", async () => {
      await clock.advance(61_000);
      return seen.isClosed;
    });
  });
});
