import { expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { ConnectionTable } from "../../src/server/connection-table.ts";
import { FakeClock } from "../support/fake-clock.ts";

let port = 0;

function aSocket(remoteAddress = "192.0.2.1") {
  const events = new EventEmitter();
  const socket = Object.assign(events, {
    remoteAddress,
    remotePort: ++port,
    destroyed: false,
    destroy: () => {
      if (socket.destroyed) return;
      socket.destroyed = true;
      events.emit("close");
    },
  });
  return socket as unknown as Socket;
}

function aTable() {
  const clock = new FakeClock();
  return { clock, table: new ConnectionTable(clock, { connections: 3, perAddress: 2 }) };
}

test("the connection that has been idle for longest gives way to a new one", () => {
  const { table } = aTable();
  const [first, second, third] = [aSocket("192.0.2.1"), aSocket("192.0.2.2"), aSocket("192.0.2.3")];
  for (const socket of [first, second, third]) table.admit(socket, 1_000);
  table.mark(first, "working");
  table.mark(first, "idle", 1_000);
  expect(table.admit(aSocket("192.0.2.4"), 1_000)).toBe(true);
  expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
  expect(table.size).toBe(3);
});

test("an address with too many connections loses one of its own", () => {
  const { table } = aTable();
  const other = aSocket("192.0.2.9");
  const own = [aSocket(), aSocket(), aSocket()];
  for (const socket of [other, ...own]) expect(table.admit(socket, 1_000)).toBe(true);
  expect([other, ...own].map(({ destroyed }) => destroyed)).toEqual([false, true, false, false]);
});

test("connections that are served stay; a slow reader gives way after five seconds", async () => {
  const { clock, table } = aTable();
  const own = [aSocket(), aSocket()];
  for (const socket of own) table.admit(socket, 1_000);
  table.mark(own[0]!, "working");
  table.mark(own[1]!, "sending", 60_000);
  const refused = aSocket();
  expect(table.admit(refused, 1_000)).toBe(false);
  expect(refused.destroyed).toBe(true);
  await clock.advance(5_000);
  expect(table.admit(aSocket(), 1_000)).toBe(true);
  expect(own.map(({ destroyed }) => destroyed)).toEqual([false, true]);
});

test("a connection is closed when its time has elapsed, and none leaves a timer", async () => {
  const { clock, table } = aTable();
  const [silent, busy] = [aSocket(), aSocket()];
  table.admit(silent, 1_000);
  table.admit(busy, 1_000);
  table.mark(busy, "working");
  await clock.advance(1_000);
  expect([silent.destroyed, busy.destroyed]).toEqual([true, false]);
  busy.destroy();
  expect([table.size, clock.pendingTimers]).toEqual([0, 0]);
});
