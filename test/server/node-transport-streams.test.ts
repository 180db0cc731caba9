import { expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { StreamWriter } from "../../src/server/node-transport.ts";

test.each([
  { what: "lines of a log", chunk: "x".repeat(40), atMost: 130 },
  { what: "long chunks", chunk: "x".repeat(16 * 1024), atMost: 20 },
])("a turn of the loop takes a bounded part of a fast stream: $what", async ({ chunk, atMost }) => {
  let written = 0;
  const response = Object.assign(new EventEmitter(), {
    writable: true,
    writeHead: () => {},
    flushHeaders: () => {},
    write: () => ++written > 0,
    end: (done: () => void) => done(),
  });
  const chunks = (async function* () {
    for (let index = 0; index < 3_000; index++) yield chunk;
  })();
  const { signal } = new AbortController();
  const writing = new StreamWriter().write(
    response as unknown as ServerResponse,
    { status: 200, headers: {}, chunks },
    signal,
  );
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(written).toBeGreaterThan(atMost / 2);
  expect(written).toBeLessThan(atMost);
  await writing;
  expect(written).toBe(3_000);
});
