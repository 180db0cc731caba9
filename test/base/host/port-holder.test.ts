import { expect, test } from "bun:test";
import { createServer } from "node:net";
import { findPortHolder, parseListeners } from "../../../src/base/host/port-holder.ts";

const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:280F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0000 100 0 0 10 0
   1: 0100007F:280F 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0000 100 0 0 10 0
   2: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0000 100 0 0 10 0
`;

test.each([
  [10255, ["111"]],
  [8080, ["333"]],
  [80, []],
])("sockets that listen on port %p", (port, inodes) => {
  expect(parseListeners(TABLE, port)).toEqual(inodes);
});

test("the process that listens on a port is named", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  expect(findPortHolder(port)).toEndWith(`(pid ${process.pid})`);
  server.close();
});

test("a port that nothing listens on has no holder", () => {
  expect(findPortHolder(1, "/nowhere")).toBeUndefined();
});
