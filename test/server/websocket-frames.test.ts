import { describe, expect, test } from "bun:test";
import {
  encodeClose,
  encodeFrame,
  FrameReader,
  OPCODE,
  WebSocketProtocolError,
} from "../../src/server/websocket-frames.ts";

/** A frame as a client sends it. */
function clientFrame(opcode: number, text: string, { final = true, masked = true } = {}): Buffer {
  const frame = encodeFrame(opcode, Buffer.from(text));
  const payload = Buffer.from(text);
  const mask = Buffer.from([0x11, 0x22, 0x33, 0x44]);
  const header = Buffer.from(frame.subarray(0, frame.length - payload.length));
  if (!final) header[0]! &= 0x7f;
  if (!masked) return Buffer.concat([header, payload]);
  header[1]! |= 0x80;
  return Buffer.concat([header, mask, payload.map((byte, at) => byte ^ mask[at % 4]!)]);
}

const shown = (reader: FrameReader, bytes: Uint8Array) =>
  reader.push(bytes).map(({ opcode, payload }) => `${opcode}:${payload}`);

describe("what a client sends", () => {
  test.each([0, 1, 125, 126, 65_535, 65_536])("a message of %d bytes", (length) => {
    const text = "x".repeat(length);
    expect(shown(new FrameReader(), clientFrame(OPCODE.binary, text))).toEqual([`2:${text}`]);
  });

  test("byte by byte, and all at once", () => {
    const bytes = Buffer.concat([clientFrame(OPCODE.binary, "one"), clientFrame(OPCODE.text, "two")]);
    const reader = new FrameReader();
    expect([...bytes].flatMap((byte) => shown(reader, Buffer.from([byte])))).toEqual(["2:one", "1:two"]);
    expect(shown(new FrameReader(), bytes)).toEqual(["2:one", "1:two"]);
  });

  test("a message in parts, with a ping between them", () => {
    const reader = new FrameReader();
    expect(shown(reader, clientFrame(OPCODE.binary, "a", { final: false }))).toEqual([]);
    expect(shown(reader, clientFrame(OPCODE.ping, "p"))).toEqual(["9:p"]);
    expect(shown(reader, clientFrame(OPCODE.continuation, "b", { final: false }))).toEqual([]);
    expect(shown(reader, clientFrame(OPCODE.continuation, "c"))).toEqual(["2:abc"]);
  });
});

const huge = Buffer.concat([Buffer.from([0x82, 0xff]), Buffer.from("0000000000100001", "hex")]);

test.each([
  { what: "a frame without a mask", bytes: clientFrame(OPCODE.binary, "x", { masked: false }), code: 1002 },
  { what: "reserved bits", bytes: Buffer.from([0xc2, 0x80]), code: 1002 },
  { what: "an unknown opcode", bytes: Buffer.from([0x83, 0x80]), code: 1002 },
  { what: "a split ping", bytes: clientFrame(OPCODE.ping, "x", { final: false }), code: 1002 },
  { what: "a continuation of nothing", bytes: clientFrame(OPCODE.continuation, "x"), code: 1002 },
  { what: "a length of more than a MiB", bytes: huge, code: 1009 },
])("$what ends it with $code", ({ bytes, code }) => {
  let thrown: unknown;
  try {
    new FrameReader().push(bytes);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(WebSocketProtocolError);
  expect((thrown as WebSocketProtocolError).code).toBe(code);
});

test("parts that together are too long", () => {
  const reader = new FrameReader();
  const half = "x".repeat(600_000);
  reader.push(clientFrame(OPCODE.binary, half, { final: false }));
  expect(() => reader.push(clientFrame(OPCODE.continuation, half))).toThrow(/more than/);
});

test("what a server sends (oracle 97)", () => {
  expect(encodeFrame(OPCODE.binary, Buffer.from("\u0001hello\n")).toString("hex")).toBe("82070168656c6c6f0a");
  expect(encodeClose(1000).toString("hex")).toBe("880203e8");
});
