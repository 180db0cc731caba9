import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { constants, deflateSync, inflateSync } from "node:zlib";
import { dialPod } from "../../src/base/host/pod-dialer.ts";
import { serveSpdyPortForward } from "../../src/server/port-forward.ts";
import {
  type ByteChannel,
  CONTROL,
  chooseStreamProtocol,
  encodeControl,
  encodeData,
  readFrames,
  SpdyConnection,
  type SpdyFrame,
  type SpdyStream,
  uint32,
} from "../../src/server/spdy.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openFrame, SpdyClient } from "../support/spdy-client.ts";
import { until } from "../support/until.ts";

/** A connection whose client is the test. */
function aConnection() {
  const toServer: Uint8Array[] = [];
  const fromServer: Uint8Array[] = [];
  let wake = () => {};
  let isClosed = false;
  const channel: ByteChannel = {
    chunks: {
      async *[Symbol.asyncIterator]() {
        while (!isClosed || toServer.length > 0) {
          const next = toServer.shift();
          if (next) yield next;
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      },
    },
    write: async (data) => void fromServer.push(data),
    close: () => {
      isClosed = true;
      wake();
    },
  };
  const streams: SpdyStream[] = [];
  const connection = new SpdyConnection(channel, (stream) => void streams.push(stream));
  const client = new SpdyClient();
  const send = (bytes: Uint8Array) => {
    toServer.push(bytes);
    wake();
  };
  return {
    channel,
    connection,
    streams,
    send,
    open: async (id: number, fields: Record<string, string>) => send(await client.open(id, fields)),
    /** Frames since the last call, once `isAll` holds for them. */
    answers: async (isAll: (frames: SpdyFrame[]) => boolean = (frames) => frames.length > 0): Promise<SpdyFrame[]> => {
      const frames: SpdyFrame[] = [];
      await until("frames of the server", async () => {
        const chunks = fromServer.splice(0);
        for await (const frame of readFrames(
          (async function* () {
            yield* chunks;
          })(),
        ))
          frames.push(frame);
        return isAll(frames);
      });
      return frames;
    },
    end: () => {
      isClosed = true;
      wake();
    },
  };
}

describe("SPDY/3.1", () => {
  test("header blocks share one compression, both ways", async () => {
    const { connection, streams, open, answers } = aConnection();
    const running = connection.run();
    for (const [at, type] of ["error", "stdin", "stdout"].entries()) await open(2 * at + 1, { StreamType: type });
    const replies = await answers((frames) => frames.length === 3);
    expect(streams.map(({ headers }) => headers.get("streamtype"))).toEqual(["error", "stdin", "stdout"]);
    const blocks = Buffer.concat(replies.map(({ payload }) => payload.subarray(4)));
    const inflated = inflateSync(blocks, { finishFlush: constants.Z_SYNC_FLUSH });
    expect(inflated).toEqual(Buffer.alloc(12));
    // Go's reader hands nothing out before an empty block.
    expect(blocks.subarray(-5).toString("hex")).toBe("000000ffff");
    connection.close();
    await running;
  });

  test("a stream is answered, carries data both ways, and ends", async () => {
    const { connection, streams, send, open, answers } = aConnection();
    const running = connection.run();
    await open(1, { streamtype: "data", port: "80" });
    expect((await answers()).map((frame) => frame.kind === "control" && frame.type)).toEqual([CONTROL.synReply]);
    const [stream] = streams;
    expect(stream?.headers.get("port")).toBe("80");
    send(encodeData(1, false, Buffer.from("ping")));
    send(encodeData(1, true, Buffer.from("!")));
    let received = "";
    for await (const chunk of stream!.chunks()) received += chunk.toString();
    expect(received).toBe("ping!");
    await stream!.write(Buffer.alloc(70_000, "x"));
    stream!.end();
    const isLast = ({ kind, ...frame }: SpdyFrame) => kind === "data" && "isLast" in frame && frame.isLast;
    const frames = await answers((seen) => seen.some(isLast));
    expect(frames.reduce((sum, { payload }) => sum + payload.length, 0)).toBe(70_000);
    expect(frames.at(-1)).toMatchObject({ kind: "data", isLast: true });
    connection.close();
    await running;
  });

  test("a client that has ended its side of a forwarded port: the program sees the end, and may still answer for a while", async () => {
    const { channel, send, open, answers, end } = aConnection();
    let silent: Socket | undefined;
    const clock = new FakeClock();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      let received = "";
      socket.on("data", (chunk) => (received += String(chunk)));
      socket.on("end", () => {
        if (received === "hi") socket.end(`all of ${received}`);
        else silent = socket;
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const address = { ip: "127.0.0.1", hostNetwork: false, sandboxId: "", sandboxPid: 0 };
    const dial = (to: number, signal: AbortSignal) => dialPod(address, to, signal);
    const served = serveSpdyPortForward(channel, {
      dial,
      pod: "default/web",
      clock,
      idleTimeoutMs: 0,
    });
    for (const id of [1, 3, 5, 7]) {
      const streamtype = id % 4 === 1 ? "error" : "data";
      await open(id, { streamtype, port: String(port), requestid: String(id >> 2) });
    }
    send(encodeData(3, true, Buffer.from("hi")));
    const isLast = (of: number) => (frame: SpdyFrame) => frame.kind === "data" && frame.streamId === of && frame.isLast;
    const frames = await answers((seen) => seen.some(isLast(3)));
    const data = frames.filter((frame) => frame.kind === "data" && frame.streamId === 3);
    expect(Buffer.concat(data.map(({ payload }) => payload)).toString()).toBe("all of hi");
    send(encodeData(7, true, Buffer.from("ho")));
    await until("the end at the program", () => silent);
    await clock.advance(30_000);
    const last = await answers((seen) => seen.some(isLast(5)));
    // kubectl ends all of its forwards after one error.
    const errors = last.filter((frame) => frame.kind === "data" && frame.streamId === 5);
    expect(Buffer.concat(errors.map(({ payload }) => payload)).toString()).toBe("");
    end();
    await served;
    server.close();
  });

  test("a client that sends small pieces of many streams, of which none is read, has to wait", async () => {
    const { connection, streams, send, open, answers } = aConnection();
    const running = connection.run();
    for (let id = 1; id < 41; id += 2) await open(id, { streamtype: "data" });
    await answers(() => streams.length === 20);
    const piece = (id: number) => encodeData(id, false, Buffer.from("x"));
    for (let at = 0; at < 100; at++) send(Buffer.concat(streams.map(({ id }) => piece(id))));
    send(encodeControl(CONTROL.ping, 0, uint32(7)));
    await Bun.sleep(100);
    expect(await answers(() => true)).toEqual([]);
    for (const stream of streams.slice(0, 19)) stream.end();
    const isPing = (frame: SpdyFrame) => frame.kind === "control" && frame.type === CONTROL.ping;
    await answers((seen) => seen.some(isPing));
    connection.close();
    await running;
  });

  test("pings are answered, whatever pieces they come in", async () => {
    const { connection, send, answers } = aConnection();
    void connection.run();
    const ping = encodeControl(CONTROL.ping, 0, uint32(7));
    send(ping.subarray(0, 5));
    send(ping.subarray(5));
    const [answer] = await answers();
    expect(answer).toMatchObject({ kind: "control", type: CONTROL.ping, payload: uint32(7) });
    connection.close();
  });

  test.each([
    { when: "a frame that is too long", bytes: Buffer.from([0, 0, 0, 1, 0, 0xff, 0xff, 0xff]) },
    { when: "another version", bytes: Buffer.from([0x80, 4, 0, 1, 0, 0, 0, 0]) },
    { when: "headers of 200 KB that decompress to 200 MB", bytes: openFrame(1, deflateSync(Buffer.alloc(200e6))) },
    { when: "headers that cannot be decompressed", bytes: encodeControl(CONTROL.synStream, 0, Buffer.alloc(40, 0x55)) },
  ])("$when ends the connection", async ({ bytes }) => {
    const { connection, send } = aConnection();
    const running = connection.run();
    send(bytes);
    await running;
    expect(connection.gone.aborted).toBe(true);
  });

  test.each([
    { offered: "v4.channel.k8s.io, v3.channel.k8s.io", want: "v4.channel.k8s.io" },
    { offered: "v3.channel.k8s.io", want: "v3.channel.k8s.io" },
    { offered: "v9", want: undefined },
    { offered: null, want: "" },
  ])("the protocol for $offered is $want", ({ offered, want }) => {
    expect(chooseStreamProtocol(offered, ["v4.channel.k8s.io", "v3.channel.k8s.io"])).toBe(want);
  });
});
