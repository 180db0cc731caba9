import { parseTarHeader, tarArchive } from "../../src/base/files/tar.ts";
import { demultiplex, jsonLines } from "../../src/docker/engine/docker-connection.ts";
import {
  chooseProtocol,
  decodeChannel,
  encodeChannel,
  PORT_FORWARD_PROTOCOLS,
  REMOTE_COMMAND_PROTOCOLS,
} from "../../src/server/channel-protocol.ts";
import { parseLogQuery, parsePortQuery, parseStreamQuery } from "../../src/server/pod-streams.ts";
import { readFrames, SpdyError } from "../../src/server/spdy.ts";
import type { FuzzTarget } from "./fuzz-target.ts";

/** The bytes in pieces, as a connection delivers them. */
async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Bytes that a client sends on the streams of exec, attach and port-forward; the frames of WebSockets are read by `ws`. */
const channels: FuzzTarget = {
  name: "WebSocket channel",
  seeds: ["\x00ls\n", "0bHM=", "\x04{}", "4eyJXaWR0aCI6ODB9", "\xff\x00", "", "\x01", `0${"A".repeat(100_000)}`],
  tokens: [..."0 4 9 : = A { }".split(" "), "\x00", "\x04", "\xff"],
  run(input) {
    const message = Buffer.from(input, "latin1");
    for (const name of REMOTE_COMMAND_PROTOCOLS) {
      const protocol = chooseProtocol(name, REMOTE_COMMAND_PROTOCOLS)!;
      const decoded = decodeChannel(protocol, message);
      if (!decoded) continue;
      const again = decodeChannel(protocol, encodeChannel(protocol, decoded.channel, decoded.data));
      if (again?.channel !== decoded.channel || !Buffer.from(again.data).equals(Buffer.from(decoded.data))) {
        throw new Error(`${name}: channel ${decoded.channel} is not the same after encoding it`);
      }
    }
    chooseProtocol(input, REMOTE_COMMAND_PROTOCOLS);
    chooseProtocol(input, PORT_FORWARD_PROTOCOLS);
  },
};

const streamQuery: FuzzTarget = {
  name: "query of a stream",
  seeds: [
    "command=ls&command=-l&stdin=true&stdout=1&tty=false",
    "tailLines=10&sinceTime=2026-11-22T05:00:00Z&follow",
    "ports=80,443&ports=8080",
    `ports=${"1,".repeat(5_000)}1`,
    "limitBytes=-1&sinceSeconds=999999999999999999",
    "",
  ],
  tokens: "& = % %00 , ports= command= tailLines= sinceTime= true -1 1e9 65536".split(" "),
  run(input) {
    const query = new URLSearchParams(input);
    parseLogQuery(query);
    parseStreamQuery(query);
    const ports = parsePortQuery(query);
    if (!("problem" in ports) && ports.some((port) => !(port >= 1 && port <= 65_535))) {
      throw new Error(`a port that is none: ${ports}`);
    }
  },
};

/** A client speaks SPDY to us, an engine sends output and lines: all of them in pieces of any size. */
const framedStreams: FuzzTarget = {
  name: "framed stream",
  seeds: [
    "\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01",
    "\x00\x00\x00\x01\x01\x00\x00\x02ab",
    "\x01\x00\x00\x00\x00\x00\x00\x05hello\x02\x00\x00\x00\x00\x00\x00\x01x",
    '{"status":"start"}\n{"status":"die"}\n',
    "\x01\x00\x00\x00\xff\xff\xff\xffx",
    "\x80\x03\x00\x01\x01\xff\xff\xff",
    "",
  ],
  tokens: [..."{ }".split(" "), "\x80\x03", "\x00\x01", "\x00", "\xff", "\n", "\x01\x00\x00\x00", "\x00\x00\x00\x00"],
  async run(input) {
    const bytes = Buffer.from(input, "latin1");
    const size = 1 + (bytes.length % 61);
    await drain(readFrames(pieces(bytes, size)), (error) => error instanceof SpdyError);
    await drain(demultiplex(pieces(bytes, size)), (error) => /multiplexed/.test((error as Error).message));
    const lines: string[] = [];
    for await (const line of jsonLines(pieces(bytes, size))) lines.push(line);
    const whole: string[] = [];
    for await (const line of jsonLines(pieces(bytes, Math.max(1, bytes.length)))) whole.push(line);
    if (JSON.stringify(lines) !== JSON.stringify(whole)) throw new Error("lines depend on the pieces");
  },
};

/** @throws an error that is not expected */
async function drain(stream: AsyncIterable<unknown>, isExpected: (error: unknown) => boolean): Promise<void> {
  try {
    for await (const _ of stream);
  } catch (error) {
    if (!isExpected(error)) throw error;
  }
}

/** Archives that we write: image loads and single files. `kubelet-ts cp` uses the tar programs of both sides. */
const tar: FuzzTarget = {
  name: "tar",
  seeds: ["etc/hosts", "a/", "pause", "x".repeat(100), "ü".repeat(60), ""],
  tokens: ["/", "..", "\0", "ü", "a", " "],
  run(input) {
    const path = input.slice(0, 200);
    const data = Buffer.from(input);
    let archive: Uint8Array;
    try {
      archive = tarArchive([{ path, mode: 0o644, data }]);
    } catch (error) {
      if (error instanceof RangeError && Buffer.byteLength(path) > 100) return;
      throw error;
    }
    if (archive.length % 512 !== 0) throw new Error("the archive does not consist of whole blocks");
    // Refuses a wrong sum.
    const header = parseTarHeader(archive.subarray(0, 512));
    if (header?.size !== data.length) throw new Error(`length ${header?.size}, not ${data.length}`);
    if (!Buffer.from(archive.subarray(512, 512 + data.length)).equals(data)) throw new Error("the data differs");
  },
};

export const SERVER_TARGETS: readonly FuzzTarget[] = [channels, streamQuery, framedStreams, tar];
