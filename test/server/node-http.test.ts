import { afterEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { type ListenerRequest, type ListenerResponse, textResponse } from "../../src/server/http-response.ts";
import { Listener } from "../../src/server/listener.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { until } from "../support/until.ts";

const HOST = "127.0.0.1";
const MIB = 1024 * 1024;
const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

type Route = (request: ListenerRequest) => ListenerResponse | Promise<ListenerResponse>;

async function started(route: Route) {
  const clock = new FakeClock("2026-11-21T06:40:00.500Z");
  const place = { hostname: HOST, port: 0 };
  const listener = new Listener(
    { name: "port", place, transport: "node:http", acceptsHost: () => true, route },
    clock,
    new RecordingLogger(),
  );
  cleanUps.push(() => listener.stop());
  listener.start();
  return { port: await until("the port", () => listener.port), clock };
}

/** A connection and what it received. */
function client(port: number) {
  const seen = { text: "", isClosed: false };
  const socket: Socket = connect(port, HOST);
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

const readsUpTo =
  (maxBytes: number): Route =>
  async ({ body }) =>
    textResponse(200, `${(await body(maxBytes)).length} bytes`);

const post = (length: number) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;

describe("bodies", () => {
  test("a body within the limit is read, and the connection carries the next request", async () => {
    const { port } = await started(readsUpTo(10));
    const { socket, seen } = client(port);
    socket.write(`${post(3)}abc${post(10)}0123456789`);
    await until("both answers", () => seen.text.includes("3 bytes") && seen.text.includes("10 bytes"));
    expect(seen.isClosed).toBe(false);
  });

  test("a longer body is 413, and the connection ends without its rest being taken for a request", async () => {
    let requests = 0;
    const { port } = await started((request) => {
      requests++;
      return readsUpTo(10)(request);
    });
    const { socket, seen } = client(port);
    socket.write(`${post(64)}GET /evil HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until("the end", () => seen.isClosed);
    expect(seen.text).toStartWith("HTTP/1.1 413 ");
    expect(requests).toBe(1);
  });

  test("a longer body of unknown length ends the connection", async () => {
    const { port } = await started(readsUpTo(10));
    const { socket, seen } = client(port);
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n");
    await until("the end", () => seen.isClosed);
    expect(seen.text).not.toContain("200");
  });

  test("a body that does not get complete is cut off after a minute", async () => {
    const { port, clock } = await started(readsUpTo(100));
    const { socket, seen } = client(port);
    socket.write(`${post(50)}half`);
    await until("the end", async () => {
      await clock.advance(61_000);
      return seen.isClosed;
    });
    expect(seen.text).toBe("");
  });

  test("bodies of all requests together have a limit, and its memory is free again afterwards", async () => {
    const answered = Promise.withResolvers<void>();
    const lengths: number[] = [];
    const { port } = await started(async ({ body }) => {
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
});

test("more streams than requests may be answered at a time leave room for requests", async () => {
  let streams = 0;
  const { port } = await started(({ path, signal }) => {
    if (path !== "/watch") return textResponse(200, "here");
    return {
      status: 200,
      headers: {},
      chunks: (async function* () {
        streams++;
        yield "first\n";
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      })(),
    };
  });
  for (let index = 0; index < 240; index++) client(port).socket.write("GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
  await until("the streams", () => streams === 240);
  const { socket, seen } = client(port);
  // 16 pipelined requests: with 240 streams more than 256 answers in progress.
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(16));
  await until("16 answers", () => seen.text.split("here").length === 17);
});

test("requests that wait behind others of their connection keep no other client out", async () => {
  const release = Promise.withResolvers<void>();
  let begun = 0;
  const { port } = await started(async ({ path }) => {
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
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await until("an answer", () => seen.text.includes("here") || seen.text.includes("503"));
  expect(seen.text).toStartWith("HTTP/1.1 200 ");
  release.resolve();
});

describe("upgrades", () => {
  const upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";

  test("a route takes a connection over", async () => {
    const { port } = await started(({ upgrade: to }) => ({
      takeOver: async (_message, socket) => void socket.end(`HTTP/1.1 101 Switching Protocols\r\n\r\nspeaks ${to}`),
    }));
    const { socket, seen } = client(port);
    socket.write(upgrade);
    await until("the end", () => seen.isClosed);
    expect(seen.text).toContain("speaks spdy/3.1");
  });

  test("a session that fails ends its connection", async () => {
    const { port } = await started(() => ({ takeOver: () => Promise.reject(new Error("broken")) }));
    const { socket, seen } = client(port);
    socket.write(upgrade);
    await until("the end", () => seen.isClosed);
  });

  test("a request without an upgrade does not become something else", async () => {
    const { port } = await started(() => ({ takeOver: async () => {} }));
    const { socket, seen } = client(port);
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await until("the end", () => seen.isClosed);
    expect(seen.text).toBe("");
  });
});
