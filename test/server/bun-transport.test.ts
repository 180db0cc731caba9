import { afterEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { BunTransport } from "../../src/server/bun-transport.ts";
import { type ListenerRequest, type ListenerResponse, textResponse } from "../../src/server/http-response.ts";
import { RequestHandler } from "../../src/server/request-handler.ts";
import type { WebSocketConnection } from "../../src/server/websocket.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { until } from "../support/until.ts";

const HOST = "127.0.0.1";
const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

type Route = (request: ListenerRequest) => ListenerResponse | Promise<ListenerResponse>;

async function started(route: Route, maxOpenFiles?: number) {
  const clock = new FakeClock("2026-11-21T06:40:00.500Z");
  const logger = new RecordingLogger();
  const handler = new RequestHandler({ name: "port", route, acceptsHost: (host) => host !== "evil" }, logger);
  const transport = new BunTransport(handler, clock, logger, maxOpenFiles);
  cleanUps.push(() => transport.stop());
  await transport.listen({ hostname: HOST, port: 0 });
  const port = transport.port ?? 0;
  return { port, url: `http://${HOST}:${port}`, clock, logger, transport };
}

/** A connection and what it received. */
function client(port: number, text = "") {
  const seen = { text: "", isClosed: false };
  const socket: Socket = connect(port, HOST, () => void socket.write(text));
  socket.on("data", (chunk) => {
    seen.text += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    seen.isClosed = true;
  });
  cleanUps.push(() => socket.destroy());
  return { socket, seen };
}

test("path, query, headers, body, ports and the client reach the route as from the other transport", async () => {
  const { port, url } = await started(async ({ path, query, header, text, ports, isSecure, shown, upgrade }) =>
    textResponse(
      200,
      [path, query.get("q"), header("x-my"), await text(), isSecure, shown, upgrade, ports?.server].join(" "),
      { "X-Own": "yes" },
    ),
  );
  const response = await fetch(`${url}/a%20b//?q=1%2B1`, { method: "POST", headers: { "X-My": "own" }, body: "body" });
  expect(await response.text()).toBe(`/a b// 1+1 own body false   ${port}`);
  expect(response.headers.get("x-own")).toBe("yes");
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect((await fetch(url, { headers: { Host: "evil" } })).status).toBe(421);
  expect((await fetch(`${url}/%zz`)).status).toBe(400);
});

test("a body that is longer than its route wants is 413, and its rest is not taken for a request", async () => {
  let requests = 0;
  const { port } = await started(async ({ body }) => {
    requests++;
    return textResponse(200, String((await body(10)).length));
  });
  const { socket, seen } = client(port);
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 35\r\n\r\nGET /evil HTTP/1.1\r\nHost: x\r\n\r\n....");
  await until("the refusal", () => seen.text.startsWith("HTTP/1.1 413 "));
  const next = client(
    port,
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
  );
  await until("the refusal of unknown length", () => next.seen.text.startsWith("HTTP/1.1 413 "));
  expect([requests, seen.text.split("HTTP/1.1").length]).toEqual([2, 2]);
});

test("a bodiless response keeps its headers", async () => {
  const { url } = await started(() => ({ status: 304, headers: { ETag: '"x"' }, body: "" }));
  const response = await fetch(url);
  expect([response.status, response.headers.get("etag"), await response.text()]).toEqual([304, '"x"', ""]);
});

describe("streams", () => {
  test("headers come at once, each chunk when it is made, and the end of the client ends the work", async () => {
    const more = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    let ended = false;
    const { port } = await started(({ signal }) => ({
      status: 200,
      headers: { "Content-Type": "text/event-stream" },
      chunks: (async function* () {
        try {
          await more[0].promise;
          yield "first";
          await more[1].promise;
          yield Buffer.from("second");
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        } finally {
          ended = true;
        }
      })(),
    }));
    const { socket, seen } = client(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
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
    const { url } = await started(({ signal }) => {
      signal.addEventListener("abort", () => {
        isAborted = true;
      });
      return {
        status: 200,
        headers: {},
        chunks: (async function* () {
          yield "a";
        })(),
      };
    });
    expect(await (await fetch(url)).text()).toBe("a");
    await until("the signal", () => isAborted);
  });

  test("one that fails is cut off, not ended", async () => {
    const { url } = await started(() => ({
      status: 200,
      headers: {},
      chunks: (async function* () {
        yield "first";
        throw new Error("broken");
      })(),
    }));
    expect(fetch(url).then((response) => response.text())).rejects.toThrow();
  });

  test("a client that reads nothing is not read ahead for", async () => {
    let made = 0;
    const { port } = await started(() => ({
      status: 200,
      headers: {},
      chunks: (async function* () {
        for (; made < 2_000; made++) yield Buffer.alloc(64 * 1024);
      })(),
    }));
    client(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").socket.pause();
    let before = -1;
    await until("it to stand still", async () => {
      const stands = made > 0 && made === before;
      before = made;
      await Bun.sleep(100);
      return stands;
    });
    expect(made).toBeLessThan(400);
  });
});

test("too many open files: all connections are cut, and the port is open again", async () => {
  const { url, port, clock, logger } = await started(() => textResponse(200, "here"), 100);
  // The kernel hands over a connection with its first bytes, or a second later.
  const clients = Array.from({ length: 120 }, () => client(port, "G"));
  await until("the connections", () => readdirSync("/proc/self/fd").length > 240);
  await clock.advance(5_000);
  await until("their end", () => clients.every(({ seen }) => seen.isClosed));
  expect(logger.lines).toEqual(["warn Too many open files: all connections of a port are cut"]);
  expect(await (await fetch(url)).text()).toBe("here");
});

describe("WebSockets", () => {
  const withSession = (run: (socket: WebSocketConnection) => Promise<void>) =>
    started(({ upgrade }) => (upgrade === "websocket" ? { protocol: "v5", run } : textResponse(200, "plain")));

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
    const { socket } = client(
      port,
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5\r\n\r\n",
    );
    socket.pause();
    let before = -1;
    await until("it to stand still", async () => {
      const stands = sent > 0 && sent === before;
      before = sent;
      await Bun.sleep(100);
      return stands;
    });
    expect(sent).toBeLessThan(400);
    socket.destroy();
    await until("the end", () => isGone);
  });

  test("a client that sends far more than is read is closed", async () => {
    const { url } = await withSession(async (socket) => {
      await new Promise<void>((resolve) => socket.gone.addEventListener("abort", () => resolve()));
    });
    const socket = new WebSocket(url.replace("http", "ws"), ["v5"]);
    await until("the handshake", () => socket.readyState === WebSocket.OPEN);
    for (let index = 0; index < 20; index++) socket.send(Buffer.alloc(1024 * 1024));
    await until("the end", () => socket.readyState === WebSocket.CLOSED);
  });
});
