import { expect, test } from "bun:test";
import { DockerProtocolError } from "../../../src/docker/engine/docker-error.ts";
import { DockerTransport } from "../../../src/docker/engine/transport.ts";
import { RawDaemon } from "../../support/fake-daemon.ts";

const MAX_BYTES = 1024 * 1024;
const transportTo = (path: string) => new DockerTransport({ kind: "unix", path });
const REQUEST = { method: "GET", path: "/v1.41/containers/json", maxResponseBytes: MAX_BYTES } as const;

/** An engine that writes an answer without end, for as long as it is read. */
const endless = (head: string, sent: { bytes: number }) =>
  RawDaemon.listen((socket) => {
    const piece = Buffer.alloc(64 * 1024, "x");
    const more = () => {
      while (!socket.destroyed) {
        sent.bytes += piece.length;
        if (!socket.write(piece)) return;
      }
    };
    socket.once("data", () => {
      socket.write(head);
      socket.on("drain", more);
      more();
    });
  });

const OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
const FAILED = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\n\r\n";

test.each([
  ["send", OK],
  ["send", FAILED],
  ["open", FAILED],
  ["hijack", FAILED],
] as const)("an answer without end: %s ends at the limit", async (call, head) => {
  const sent = { bytes: 0 };
  using daemon = await endless(head, sent);
  const outcome = transportTo(daemon.socketPath)[call](REQUEST);
  await expect(outcome).rejects.toThrow(DockerProtocolError);
  // Bytes in socket buffers come on top.
  expect(sent.bytes).toBeLessThan(MAX_BYTES + 16 * 1024 * 1024);
});

test("an answer within the limit is read whole", async () => {
  const body = JSON.stringify("x".repeat(MAX_BYTES - 2));
  using daemon = await RawDaemon.listen((socket) => {
    socket.once("data", () => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`));
  });
  expect((await transportTo(daemon.socketPath).send(REQUEST)).text).toBe(body);
});

test.each(["send", "open"] as const)("many calls at a time by %s leave few idle connections", async (call) => {
  const open = new Set<unknown>();
  const waiting: (() => void)[] = [];
  using daemon = await RawDaemon.listen((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("data", () => {
      waiting.push(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"));
      if (waiting.length < 100) return;
      for (const answer of waiting.splice(0)) answer();
    });
  });
  const transport = transportTo(daemon.socketPath);
  const read = async () => {
    const answer = await transport[call](REQUEST);
    if ("chunks" in answer) for await (const _ of answer.chunks);
  };
  await Promise.all(Array.from({ length: 100 }, read));
  for (let waits = 0; open.size > 32 && waits < 100; waits++) await Bun.sleep(20);
  expect(open.size).toBeLessThanOrEqual(32);
});
