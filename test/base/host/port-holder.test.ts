import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { createConnection, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { findPortHolder, findSocketUser } from "../../../src/base/host/port-holder.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("the process that listens on a port is named", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  expect(findPortHolder(port)).toEndWith(`(pid ${process.pid})`);
  // Another program may have the UDP port of this number.
  expect(findPortHolder(port, "/proc", "udp") ?? "").not.toEndWith(`(pid ${process.pid})`);
  server.close();
});

test("a port that nothing listens on has no holder", () => {
  expect(findPortHolder(1, "/nowhere")).toBeUndefined();
});

const CONNECTIONS = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1062 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0000 100 0 0 10 0
   1: 0100007F:1062 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0000 100 0 0 10 0
   2: 0100007F:9C40 0100007F:1062 01 00000000:00000000 00:00000000 00000000  1000        0 333 1 0000 100 0 0 10 0
   3: 0200007F:9C41 0100007F:1062 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0000 100 0 0 10 0
   4: 0100007F:9C41 0100007F:1062 01 00000000:00000000 00:00000000 00000000  1001        0 444 1 0000 100 0 0 10 0
`;

test.each([
  [40_000, 4194, 1000],
  // A closed connection is shown as root's.
  [40_001, 4194, 1001],
  [4194, 40_000, 0],
  [40_002, 4194, undefined],
  [4194, 0, undefined],
])("the user of the connection from port %p to port %p", (from, to, user) => {
  const proc = tempDir();
  mkdirSync(join(proc, "net"));
  writeFileSync(join(proc, "net/tcp"), CONNECTIONS);
  expect(findSocketUser(from, to, proc)).toBe(user);
});

test("the user of a connection of this machine", async () => {
  const accepted = Promise.withResolvers<Socket>();
  const server = createServer(accepted.resolve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = createConnection((server.address() as { port: number }).port, "127.0.0.1");
  const { remotePort, localPort } = await accepted.promise;
  expect(findSocketUser(remotePort!, localPort!)).toBe(process.getuid!());
  expect(findSocketUser(remotePort!, localPort!, "/nowhere")).toBeUndefined();
  client.destroy();
  server.close();
});
