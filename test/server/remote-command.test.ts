import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { dialPod } from "../../src/base/host/pod-dialer.ts";
import { CHANNEL, chooseProtocol, REMOTE_COMMAND_PROTOCOLS } from "../../src/server/channel-protocol.ts";
import { servePortForward } from "../../src/server/port-forward.ts";
import { parseSize, serveRemoteCommand } from "../../src/server/remote-command.ts";
import recorded from "../fixtures/oracle/http/exec-websocket.json";
import { cleanUps } from "../support/clean-ups.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeContainers } from "../support/fake-containers.ts";
import { until } from "../support/until.ts";
import { aWebSocket, clientFrame, OPCODE } from "./a-websocket.ts";

const cleanUp = cleanUps();

async function aSocket() {
  const socket = await aWebSocket();
  cleanUp(socket.close);
  return {
    ...socket,
    send: (channel: number, data: string | Buffer) => {
      socket.client.write(clientFrame(OPCODE.binary, Buffer.concat([Buffer.from([channel]), Buffer.from(data)])));
    },
  };
}

const all = { stdin: true, stdout: true, stderr: true, tty: false };
const stdout = (text: string) => ({ stream: "stdout" as const, data: Buffer.from(text) });

/** @param protocol what the client offers */
async function aSession(
  protocol: string,
  containers = new FakeContainers(),
  { idleTimeoutMs = 0, pingMs = 0, streams = all } = {},
) {
  const socket = await aSocket();
  const clock = new FakeClock();
  const chosen = chooseProtocol(protocol, REMOTE_COMMAND_PROTOCOLS)!;
  const open = () => containers.exec("id", ["ls"], streams);
  const done = serveRemoteCommand(socket.connection, { protocol: chosen, streams, open, clock, idleTimeoutMs, pingMs });
  return { ...socket, clock, containers, done };
}

const known = recorded.filter(({ framesHex }) => !framesHex.startsWith("<"));
test.each(known.map(({ head, framesHex }) => [head.at(-1)!.split(": ")[1]!, framesHex]))(
  "as recorded from kubelet 1.20: %s",
  async (protocol, want) => {
    const containers = new FakeContainers();
    containers.output = [stdout("hello\n")];
    const { hex, done, isClosed } = await aSession(protocol, containers);
    await done;
    await until("the farewell", isClosed);
    expect(hex()).toBe(want);
  },
);

const text = (hex: string) => Buffer.from(hex, "hex").toString("latin1");

describe("how a command ends", () => {
  test.each([
    ["v4.channel.k8s.io", '"reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}'],
    ["channel.k8s.io", "command terminated with non-zero exit code: exit status 3"],
  ])("%s reports an exit code of 3", async (protocol, want) => {
    const containers = new FakeContainers();
    containers.output = [stdout("x")];
    containers.exitCode = 3;
    const { hex, done, isClosed } = await aSession(protocol, containers);
    await done;
    await until("the farewell", isClosed);
    expect(text(hex())).toContain(want);
  });

  test("that cannot be started is reported", async () => {
    const containers = new FakeContainers();
    containers.failure = new Error("container is paused");
    const { hex, done, isClosed } = await aSession("v5.channel.k8s.io", containers);
    await done;
    await until("the farewell", isClosed);
    expect(text(hex())).toContain(
      '"message":"Internal error occurred: error executing command in container: container is paused"',
    );
  });
});

describe("what the client sends", () => {
  test("input, sizes, and in version 5 the end of the input", async () => {
    const { send, containers, done } = await aSession("v5.channel.k8s.io");
    send(CHANNEL.stdin, "abc");
    send(CHANNEL.resize, '{"Width":101,"Height":33}');
    send(CHANNEL.resize, "no size");
    send(CHANNEL.close, Buffer.from([CHANNEL.stdin]));
    await done;
    expect(containers.held?.written).toEqual(["abc", "<end>"]);
    expect(containers.held?.sizes).toEqual([{ width: 101, height: 33 }]);
  });

  test("version 4 knows no end of the input", async () => {
    const { send, containers, client, done } = await aSession("v4.channel.k8s.io");
    send(CHANNEL.close, Buffer.from([CHANNEL.stdin]));
    send(CHANNEL.stdin, "still");
    await until("the input", () => containers.held?.written.includes("still"));
    expect(containers.held?.written).toEqual(["still"]);
    client.destroy();
    await done;
  });

  test.each([
    ['{"Width":80,"Height":24}', { width: 80, height: 24 }],
    ['{"Width":0,"Height":24}', undefined],
    ['{"Width":80}', undefined],
    ['{"Width":80.5,"Height":70000}', undefined],
    ["{", undefined],
  ])("the size %s", (written, want) => {
    expect(parseSize(Buffer.from(written))).toEqual(want as ReturnType<typeof parseSize>);
  });
});

describe("the end of a session", () => {
  test.each([
    { how: "by closing", leave: (client: Socket) => client.write(Buffer.from("888000000000", "hex")) },
    { how: "without closing", leave: (client: Socket) => client.destroy() },
    { how: "by breaking the protocol", leave: (client: Socket) => client.write(Buffer.from("8201", "hex")) },
  ])("a client that leaves $how ends the process", async ({ leave }) => {
    const { client, containers, done } = await aSession("v4.channel.k8s.io");
    await until("the process", () => containers.held);
    leave(client);
    await done;
    expect(containers.held?.closed).toBeGreaterThan(0);
  });

  test("a session in which nothing happens ends after --streaming-connection-idle-timeout", async () => {
    const { send, clock, containers, isClosed, done } = await aSession("v4.channel.k8s.io", undefined, {
      idleTimeoutMs: 60_000,
    });
    await until("the process", () => containers.held);
    await clock.advance(50_000);
    send(CHANNEL.stdin, "x");
    await until("the input", () => containers.held?.written.length === 1);
    await clock.advance(50_000);
    expect(isClosed()).toBe(false);
    await clock.advance(10_000);
    await done;
    await until("the end", isClosed);
    expect(containers.held?.closed).toBeGreaterThan(0);
    expect(clock.pendingTimers).toBe(0);
  });

  test("a client that answers pings keeps a session in which nothing happens; one that does not loses it", async () => {
    const times = { idleTimeoutMs: 60_000, pingMs: 30_000 };
    const session = await aSession("v4.channel.k8s.io", undefined, times);
    const { client, connection, clock, hex, containers, isClosed, done } = session;
    await until("the process", () => containers.held);
    let activities = 0;
    const touch = connection.onActivity;
    connection.onActivity = () => {
      activities++;
      touch();
    };
    for (let round = 1; round <= 4; round++) {
      await clock.advance(30_000);
      await until("a ping", () => hex().endsWith("8900".repeat(round)));
      client.write(clientFrame(OPCODE.pong, Buffer.alloc(0)));
      await until("its answer", () => activities === round);
    }
    expect(isClosed()).toBe(false);
    await clock.advance(60_000);
    await done;
    await until("the end", isClosed);
    expect(containers.held?.closed).toBeGreaterThan(0);
    expect(clock.pendingTimers).toBe(0);
  });
});

async function aServer(answer: string): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => {
    socket.on("data", (chunk) => socket.end(`${answer} ${chunk}`));
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUp(() => server.close());
  return { server, port: (server.address() as { port: number }).port };
}

test("ports: each has two channels that begin with its number; errors are sent on the second", async () => {
  const first = await aServer("one");
  const gone = await aServer("gone");
  await new Promise((resolve) => gone.server.close(resolve));
  const { connection, send, hex, isClosed } = await aSocket();
  const protocol = chooseProtocol("v4.channel.k8s.io", REMOTE_COMMAND_PROTOCOLS)!;
  const ports = [first.port, gone.port];
  const clock = new FakeClock();
  const address = { ip: "127.0.0.1", hostNetwork: false, sandboxId: "", sandboxPid: 0 };
  const dial = (port: number, signal: AbortSignal) => dialPod(address, port, signal);
  const options = { protocol, dial, ports, pod: "default/web", clock, idleTimeoutMs: 0 };
  const done = servePortForward(connection, options);
  send(0, "hello");
  await done;
  await until("the farewell", isClosed);
  const opening = (channel: number, port: number) => {
    const bytes = Buffer.from([0x82, 3, channel, port & 0xff, port >> 8]);
    return bytes.toString("hex");
  };
  const openings = [opening(0, first.port), opening(1, first.port), opening(2, gone.port), opening(3, gone.port)];
  expect(hex()).toStartWith(openings.join(""));
  expect(text(hex())).toContain("one hello");
  expect(text(hex())).toContain(`\u0003error forwarding port ${gone.port} to pod default/web: `);
  expect(clock.pendingTimers).toBe(0);
});
