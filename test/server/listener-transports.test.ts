import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { BunTransport } from "../../src/server/bun-transport.ts";
import { Listener, type ListenerOptions } from "../../src/server/listener.ts";
import {
  type ListenerRequest,
  type ListenerResponse,
  RequestHandler,
  textResponse,
} from "../../src/server/request-handler.ts";
import type { WebSocketConnection } from "../../src/server/websocket.ts";
import { cleanUps } from "../support/clean-ups.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { until } from "../support/until.ts";
import { aClient } from "./a-client.ts";

const HOST = "127.0.0.1";
const MIB = 1024 * 1024;
const cleanUp = cleanUps();

type Route = (request: ListenerRequest) => ListenerResponse | Promise<ListenerResponse>;

type Transport = ListenerOptions["transport"];

async function started(transport: Transport, route: Route) {
  const clock = new FakeClock("2026-11-21T06:40:00.500Z");
  const logger = new RecordingLogger();
  const address = { hostname: HOST, port: 0 };
  const acceptsHost = (host: string | null) => host !== "evil";
  const listener = new Listener({ name: "port", address, transport, acceptsHost, route }, { clock, logger });
  cleanUp(() => listener.stop());
  listener.start();
  const port = await until("the port", () => listener.port);
  return { port, url: `http://${HOST}:${port}`, clock, logger };
}

const streamed = (make: () => AsyncGenerator<string | Uint8Array>, headers: Record<string, string> = {}) => ({
  status: 200,
  headers,
  chunks: make(),
});

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));

function client(port: number, text = "") {
  const made = aClient(port, { text });
  cleanUp(() => made.socket.destroy());
  return made;
}

const readsUpTo =
  (maxBytes: number): Route =>
  async ({ body }) =>
    textResponse(200, `${(await body(maxBytes)).length} bytes`);

const post = (length: number) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;
const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const upgradeTo = (protocol: string) => `GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n`;
const HANDSHAKE = `${upgradeTo("websocket")}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5\r\n\r\n`;

/** Resolves when a count of what is made stands still. */
async function standingStill(count: () => number): Promise<number> {
  let before = -1;
  return await until("it to stand still", async () => {
    const stands = count() > 0 && count() === before;
    before = count();
    await Bun.sleep(100);
    return stands ? before : undefined;
  });
}

// An exec has its command in the query, and `sh -c SCRIPT` is long.
test.each([
  [60_000, "200"],
  [70_000, "431"],
])("a query of %d characters on a port of the API: %s", async (characters, status) => {
  const { port } = await started("node:http", ({ query }) => textResponse(200, `${query.get("command")?.length}`));
  const { seen } = client(port, `GET /?command=${"x".repeat(characters)} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await until("the response", () => seen.text.startsWith(`HTTP/1.1 ${status} `));
});

describe.each(["Bun.serve", "node:http"] as const)("%s", (transport) => {
  test("a long chunk arrives as it was made, characters of two code units too", async () => {
    const text = `${"x".repeat(64 * 1024 - 1)}${"🦊".repeat(50_000)}`;
    const bytes = Buffer.from("y".repeat(200_000));
    const { url } = await started(transport, async () =>
      streamed(async function* () {
        yield text;
        yield bytes;
      }),
    );
    expect(await (await fetch(url)).text()).toBe(`${text}${bytes}`);
  });

  test("path, query, headers, body, ports and the client reach the route as from the other transport", async () => {
    const { port, url } = await started(
      transport,
      async ({ path, query, header, text, ports, isSecure, shown, upgrade }) =>
        textResponse(
          200,
          [path, query.get("q"), header("x-my"), await text(), isSecure, shown, upgrade, ports?.server].join(" "),
          { "X-Own": "yes" },
        ),
    );
    const asked = { method: "POST", headers: { "X-My": "own" }, body: "body" };
    const response = await fetch(`${url}/a%20b//?q=1%2B1`, asked);
    expect(await response.text()).toBe(`/a b// 1+1 own body false   ${port}`);
    expect(response.headers.get("x-own")).toBe("yes");
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect((await fetch(url, { headers: { Host: "evil" } })).status).toBe(421);
    expect((await fetch(`${url}/%zz`)).status).toBe(400);
  });

  test("bodies within the limit are read, one request after the other", async () => {
    const { port } = await started(transport, readsUpTo(10));
    const { socket, seen } = client(port, `${post(3)}abc`);
    await until("the first response", () => seen.text.includes("3 bytes"));
    socket.write(`${post(10)}0123456789`);
    await until("the second one", () => seen.text.includes("10 bytes"));
  });

  test("a body that is longer than its route wants is 413, and its rest is not taken for a request", async () => {
    let requests = 0;
    const { port } = await started(transport, (request) => {
      requests++;
      return readsUpTo(10)(request);
    });
    const { seen } = client(port, `${post(64)}GET /evil HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until("the refusal", () => seen.text.startsWith("HTTP/1.1 413 "));
    const chunked = "Transfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
    const next = client(port, `POST / HTTP/1.1\r\nHost: x\r\n${chunked}`);
    await until(
      "the refusal of unknown length",
      () => next.seen.text.startsWith("HTTP/1.1 413 ") || next.seen.isClosed,
    );
    expect(requests).toBe(2);
  });

  test("bodies of all requests together have a limit, and its memory is free again afterwards", async () => {
    const answered = Promise.withResolvers<void>();
    const lengths: number[] = [];
    const { port } = await started(transport, async ({ body }) => {
      lengths.push((await body(3 * MIB)).length);
      await answered.promise;
      return textResponse(200, "done");
    });
    const full = Buffer.concat([Buffer.from(post(3 * MIB)), Buffer.alloc(3 * MIB)]);
    const clients = Array.from({ length: 21 }, () => client(port));
    for (const { socket } of clients) socket.write(full);
    await until("63 MiB of bodies", () => lengths.length === 21);
    const late = client(port);
    late.socket.write(full);
    await until("the refusal", () => late.seen.isClosed || late.seen.text !== "");
    expect(late.seen.text === "" || late.seen.text.startsWith("HTTP/1.1 503 ")).toBe(true);
    answered.resolve();
    await until("all answers", () => clients.every(({ seen }) => seen.text.includes("done")));
    const next = client(port);
    next.socket.write(full);
    await until("its answer", () => next.seen.text.includes("done"));
  });

  test("a route that fails is 500 without its reason", async () => {
    const { url, logger } = await started(transport, () => {
      throw new Error("secret");
    });
    const response = await fetch(url);
    expect([response.status, await response.text()]).toEqual([500, "500 internal server error\n"]);
    expect(logger.lines).toContain("error A request could not be answered");
  });

  test("a bodiless response keeps its headers", async () => {
    const { url } = await started(transport, () => ({ status: 304, headers: { ETag: '"x"' }, body: "" }));
    const response = await fetch(url);
    expect([response.status, response.headers.get("etag"), await response.text()]).toEqual([304, '"x"', ""]);
  });

  describe("streams", () => {
    test("headers come at once, each chunk when it is made, and the end of the client ends the work", async () => {
      const more = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
      let ended = false;
      const made = async function* (signal: AbortSignal) {
        try {
          await more[0].promise;
          yield "first";
          await more[1].promise;
          yield Buffer.from("second");
          await aborted(signal);
        } finally {
          ended = true;
        }
      };
      const headers = { "Content-Type": "text/event-stream" };
      const { port } = await started(transport, ({ signal }) => streamed(() => made(signal), headers));
      const { socket, seen } = client(port, GET);
      await until("the headers", () => seen.text.includes("text/event-stream"));
      more[0].resolve();
      await until("the first chunk", () => seen.text.includes("first"));
      more[1].resolve();
      await until("the second chunk", () => seen.text.includes("second"));
      socket.destroy();
      await until("the end", () => ended);
    });

    test("the signal of a request aborts also at the end of a complete stream", async () => {
      let isAborted = false;
      const { url } = await started(transport, ({ signal }) => {
        signal.addEventListener("abort", () => {
          isAborted = true;
        });
        return streamed(async function* () {
          yield "a";
        });
      });
      expect(await (await fetch(url)).text()).toBe("a");
      await until("the signal", () => isAborted);
    });

    test("one that fails is cut off, not ended", async () => {
      const { url } = await started(transport, () =>
        streamed(async function* () {
          yield "first";
          throw new Error("broken");
        }),
      );
      expect(fetch(url).then((response) => response.text())).rejects.toThrow();
    });

    test("a client that reads nothing is not read ahead for", async () => {
      let made = 0;
      const { port } = await started(transport, () =>
        streamed(async function* () {
          for (; made < 2_000; made++) yield Buffer.alloc(64 * 1024);
        }),
      );
      client(port, GET).socket.pause();
      expect(await standingStill(() => made)).toBeLessThan(400);
    });
  });

  describe("WebSockets", () => {
    const withSession = (run: (socket: WebSocketConnection) => Promise<void>) =>
      started(transport, ({ upgrade }) =>
        upgrade === "websocket" ? { protocol: "v5", run } : textResponse(200, "plain"),
      );

    test("carry messages both ways, and end with their session", async () => {
      const { url } = await withSession(async (socket) => {
        for await (const message of socket.messages()) {
          await socket.send(Buffer.from(`echo ${message}`));
          if (String(message) === "end") return socket.close();
        }
      });
      const socket = new WebSocket(url.replace("http", "ws"), ["v5"]);
      socket.binaryType = "arraybuffer";
      const seen: string[] = [];
      socket.onmessage = ({ data }) => void seen.push(Buffer.from(data as ArrayBuffer).toString());
      await until("the handshake", () => socket.readyState === WebSocket.OPEN);
      expect(socket.protocol).toBe("v5");
      socket.send("one");
      socket.send(Buffer.from("end"));
      await until("the end", () => socket.readyState === WebSocket.CLOSED);
      expect(seen).toEqual(["echo one", "echo end"]);
      expect(await (await fetch(url)).text()).toBe("plain");
    });

    test("wait for a client that reads nothing, and end when it is gone", async () => {
      let sent = 0;
      let isGone = false;
      const { port } = await withSession(async (socket) => {
        for (; sent < 1_000 && !socket.gone.aborted; sent++) await socket.send(Buffer.alloc(64 * 1024));
        isGone = socket.gone.aborted;
      });
      const { socket } = client(port, HANDSHAKE);
      socket.pause();
      expect(await standingStill(() => sent)).toBeLessThan(400);
      socket.destroy();
      await until("the end", () => isGone);
    });

    test.if(transport === "Bun.serve").each([
      { what: "more than is read", count: 20, bytes: 1024 * 1024 },
      { what: "more messages than a turn of the loop takes", count: 5_000, bytes: 1 },
    ])("a client that sends far $what is closed", async ({ count, bytes }) => {
      const { url } = await withSession((socket) => aborted(socket.gone));
      const socket = new WebSocket(url.replace("http", "ws"), ["v5"]);
      await until("the handshake", () => socket.readyState === WebSocket.OPEN);
      for (let index = 0; index < count; index++) socket.send(Buffer.alloc(bytes));
      await until("the end", () => socket.readyState === WebSocket.CLOSED);
    });
  });
});

describe("node:http", () => {
  test("what many streams have at the same moment is written in several turns of the loop", async () => {
    const event = Promise.withResolvers<void>();
    let streams = 0;
    let written = 0;
    const { port } = await started("node:http", () =>
      streamed(async function* () {
        streams++;
        await event.promise;
        yield Buffer.alloc(16 * 1024);
        written++;
      }),
    );
    const clients = Array.from({ length: 200 }, () => client(port, GET));
    await until("the streams", () => streams === 200);
    const inTurns: number[] = [];
    event.resolve();
    while (written < 200) {
      const before = written;
      await new Promise((resolve) => setImmediate(resolve));
      inTurns.push(written - before);
    }
    expect(Math.max(...inTurns)).toBeLessThan(80);
    for (const { socket } of clients) socket.destroy();
  });
});

describe("Bun.serve", () => {
  test("more streams than requests may be answered at a time leave room for requests", async () => {
    let streams = 0;
    const { port } = await started("Bun.serve", ({ path, signal }) => {
      if (path !== "/watch") return textResponse(200, "here");
      return streamed(async function* () {
        streams++;
        yield "first\n";
        await aborted(signal);
      });
    });
    for (let index = 0; index < 300; index++) client(port).socket.write("GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    await until("the streams", () => streams === 300);
    // Streams are no requests in work, of which there may be 256.
    const others = Array.from({ length: 20 }, () => client(port, GET));
    await until("20 responses", () => others.every(({ seen }) => seen.text.includes("here")));
  });

  test("too many open files: all connections are cut, and the port is open again", async () => {
    const clock = new FakeClock("2026-11-21T06:40:00.500Z");
    const logger = new RecordingLogger();
    const handler = new RequestHandler(
      { name: "port", route: () => textResponse(200, "here"), acceptsHost: () => true },
      logger,
    );
    const transport = new BunTransport(handler, clock, logger, 100);
    cleanUp(() => transport.stop());
    await transport.listen({ hostname: HOST, port: 0 });
    const port = transport.port ?? 0;
    // The kernel hands over a connection with its first bytes, or a second later.
    const clients = Array.from({ length: 120 }, () => client(port, "G"));
    await until("the connections", () => readdirSync("/proc/self/fd").length > 240);
    // Its pipes are pairs of sockets without a port.
    const program = Bun.spawn(["cat"], { stdin: "pipe", stdout: "pipe" });
    await clock.advance(10_000);
    await until("their end", () => clients.every(({ seen }) => seen.isClosed));
    program.stdin.write("alive");
    await program.stdin.end();
    expect(await program.stdout.text()).toBe("alive");
    expect(logger.lines).toEqual(["warn Too many open files: all connections of a port are cut"]);
    expect(await (await fetch(`http://${HOST}:${port}`)).text()).toBe("here");
  });
});

describe("node:http", () => {
  const transport = "node:http";

  test("a body that does not get complete is cut off after a minute", async () => {
    const { port, clock } = await started(transport, readsUpTo(100));
    const { seen } = client(port, `${post(50)}half`);
    await until("the end", async () => {
      await clock.advance(61_000);
      return seen.isClosed;
    });
    expect(seen.text).toBe("");
  });

  test("a connection that its response has ended closes a second later, whatever its client does", async () => {
    const { port, clock } = await started(transport, () => textResponse(200, "here"));
    const socket = connect({ port, host: HOST, allowHalfOpen: true });
    const { seen } = aClient(port, {
      text: "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
      open: () => socket,
    });
    cleanUp(() => socket.destroy());
    await until("the response", () => socket.readableEnded && seen.text.includes("here"));
    const before = readdirSync("/proc/self/fd").length;
    await clock.advance(1_000);
    await until("the end", () => readdirSync("/proc/self/fd").length < before);
  });

  test("requests that wait behind others of their connection keep no other client out", async () => {
    const release = Promise.withResolvers<void>();
    let begun = 0;
    const { port } = await started(transport, async ({ path }) => {
      if (path === "/slow") {
        begun++;
        await release.promise;
      }
      return textResponse(200, "here");
    });
    const clients = Array.from({ length: 40 }, () => client(port));
    for (const { socket } of clients) socket.write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n".repeat(16));
    await until("one request of each client", () => begun === 40);
    const { socket, seen } = client(port);
    socket.write(GET);
    await until("an answer", () => seen.text.includes("here") || seen.text.includes("503"));
    expect(seen.text).toStartWith("HTTP/1.1 200 ");
    release.resolve();
  });

  const asksFor = (protocol: string) => `${upgradeTo(protocol)}\r\n`;
  test.each<[what: string, request: string, takeOver: (socket: Duplex, to: string) => Promise<void>, want: string]>([
    [
      "a route takes a connection over",
      asksFor("SPDY/3.1"),
      async (socket, to) => void socket.end(`HTTP/1.1 101 Switching Protocols\r\n\r\nspeaks ${to}`),
      "HTTP/1.1 101 Switching Protocols\r\n\r\nspeaks spdy/3.1",
    ],
    ["a session that fails ends its connection", asksFor("SPDY/3.1"), () => Promise.reject(new Error("broken")), ""],
    ["a request without an upgrade becomes nothing else", GET, async () => {}, ""],
  ])("%s", async (_, request, takeOver, want) => {
    const { port } = await started(transport, ({ upgrade: to }) => ({
      takeOver: (_message, socket) => takeOver(socket, to),
    }));
    const { seen } = client(port, request);
    await until("the end", () => seen.isClosed);
    expect(seen.text).toBe(want);
  });
});
