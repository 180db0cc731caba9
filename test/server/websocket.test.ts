import { expect, test } from "bun:test";
import { cleanUps } from "../support/clean-ups.ts";
import { until } from "../support/until.ts";
import { aWebSocket, clientFrame, OPCODE } from "./a-websocket.ts";

const cleanUp = cleanUps();

async function connected() {
  const socket = await aWebSocket();
  cleanUp(socket.close);
  return socket;
}

const huge = Buffer.concat([Buffer.from([0x82, 0xff]), Buffer.from("0000000000100001", "hex")]);
test.each([
  { what: "a frame without a mask", bytes: Buffer.from([0x82, 0x01, 0x78]) },
  { what: "a message of more than a MiB", bytes: huge },
])("a client that breaks the rules is cut off: $what", async ({ bytes }) => {
  const { client, connection, isClosed } = await connected();
  client.write(bytes);
  await until("the end", isClosed);
  expect(connection.gone.aborted).toBe(true);
});

test("a client that sends faster than it is read has to wait", async () => {
  const { client, connection } = await connected();
  const frame = clientFrame(OPCODE.binary, Buffer.alloc(64 * 1024));
  let written = 0;
  const write = () => {
    while (written < 2_000) {
      written++;
      if (!client.write(frame)) return void client.once("drain", write);
    }
  };
  write();
  let before = -1;
  await until("it to wait", async () => {
    const stands = written === before;
    before = written;
    await Bun.sleep(100);
    return stands && written === before;
  });
  expect(written).toBeLessThan(1_000);
  const messages = connection.messages();
  for (let i = 0; i < 100; i++) expect((await messages.next()).value).toHaveLength(64 * 1024);
});

test("pings are answered, but not to a client that reads no answers", async () => {
  const { client, connection, stream, hex } = await connected();
  client.write(clientFrame(OPCODE.ping, Buffer.from("p")));
  await until("the pong", () => hex() === "8a0170");
  client.pause();
  const pings = Buffer.concat(Array.from({ length: 10_000 }, () => clientFrame(OPCODE.ping, Buffer.alloc(125))));
  for (let i = 0; i < 50; i++) await new Promise((done) => client.write(pings, done));
  expect(stream.writableLength).toBeLessThan(1_000_000);
  connection.destroy();
});
