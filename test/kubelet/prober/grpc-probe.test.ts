import { describe, expect, test } from "bun:test";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import type { ProbeOutcome } from "../../../src/base/model/prober.ts";
import { decodeHealthCheckResponse, encodeHealthCheckRequest } from "../../../src/kubelet/prober/grpc-probe.ts";
import { HostProber } from "../../../src/kubelet/prober/host-prober.ts";
import { aProbe } from "../../support/builders.ts";
import { cleanUps } from "../../support/clean-ups.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { freePorts, rawServers } from "../../support/test-servers.ts";

const atTestEnd = cleanUps();
const rawServer = rawServers();
const clock = new FakeClock();
const noExec = { run: () => Promise.reject(new Error("no exec here")) };
const prober = new HostProber({ exec: noExec, clock, version: "1.20" });

function probe(port: number, service = "", signal = new AbortController().signal): Promise<ProbeOutcome> {
  return prober.attempt(
    aProbe({ grpc: { port, service } }),
    { containerId: "c1", podIp: "127.0.0.1", ports: [] },
    signal,
  );
}

interface Call {
  headers: http2.IncomingHttpHeaders;
  body: Buffer;
}

/** A gRPC server that answers every call with `answer` and the trailers given. */
async function grpcServer(
  answer: (stream: http2.ServerHttp2Stream, call: Call) => void,
): Promise<{ port: number; called: Promise<Call> }> {
  const { promise, resolve } = Promise.withResolvers<Call>();
  const server = http2.createServer();
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
  });
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    const parts: Buffer[] = [];
    stream.on("error", () => {});
    stream.on("data", (bytes: Buffer) => parts.push(bytes));
    stream.on("end", () => {
      const call = { headers, body: Buffer.concat(parts) };
      resolve(call);
      answer(stream, call);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  atTestEnd(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, called: promise };
}

const serving = (status: number) => Buffer.from([0, 0, 0, 0, 2, 0x08, status]);

function respond(stream: http2.ServerHttp2Stream, body: Buffer, trailers: Record<string, string>): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.end(body);
}

describe("an answer of", () => {
  test.each([
    { status: 1, want: { result: "success", output: "service healthy" } },
    { status: 2, want: { result: "failure", output: 'service unhealthy (responded with "NOT_SERVING")' } },
    { status: 0, want: { result: "failure", output: 'service unhealthy (responded with "UNKNOWN")' } },
  ] as const)("status $status", async ({ status, want }) => {
    const server = await grpcServer((stream) => respond(stream, serving(status), { "grpc-status": "0" }));
    expect(await probe(server.port)).toEqual(want);
  });

  test.each([
    {
      code: "12",
      text: "unknown service grpc.health.v1.Health",
      want: "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health",
    },
    {
      code: "5",
      text: "unknown service: caf%C3%A9",
      want: "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service: café",
    },
    { code: "4", text: "late", want: "timeout: health rpc did not complete within 1s" },
  ])("grpc-status $code without a body", async ({ code, text, want }) => {
    const server = await grpcServer((stream) => {
      stream.respond(
        { ":status": 200, "content-type": "application/grpc", "grpc-status": code, "grpc-message": text },
        { endStream: true },
      );
    });
    expect(await probe(server.port, "café")).toEqual({ result: "failure", output: want });
  });

  test("another HTTP status", async () => {
    const server = await grpcServer((stream) => stream.respond({ ":status": 503 }, { endStream: true }));
    expect(await probe(server.port)).toEqual({
      result: "failure",
      output:
        "error: health rpc probe failed: rpc error: code = Unavailable desc = " +
        "unexpected HTTP status code received from server: 503",
    });
  });

  test("a message that is none", async () => {
    const server = await grpcServer((stream) => respond(stream, Buffer.from("hello"), { "grpc-status": "0" }));
    const { result, output } = await probe(server.port);
    expect(result).toBe("failure");
    expect(output).toContain("code = Internal desc = grpc: failed to unmarshal");
  });

  test("a reset stream", async () => {
    const server = await grpcServer((stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR));
    const { result, output } = await probe(server.port);
    expect(result).toBe("failure");
    expect(output).toStartWith("error: health rpc probe failed: rpc error: code = ");
  });
});

test("asks for the service by the health protocol", async () => {
  const server = await grpcServer((stream) => respond(stream, serving(1), { "grpc-status": "0" }));
  await probe(server.port, "db");
  const { headers, body } = await server.called;
  expect(headers).toMatchObject({
    ":method": "POST",
    ":path": "/grpc.health.v1.Health/Check",
    ":authority": `127.0.0.1:${server.port}`,
    "content-type": "application/grpc",
    te: "trailers",
    "user-agent": "kube-probe/1.20",
    "grpc-timeout": "1000m",
  });
  expect([...body]).toEqual([0, 0, 0, 0, 4, 0x0a, 2, 0x64, 0x62]);
});

test("a closed port", async () => {
  const [port = 0] = freePorts(1);
  expect(await probe(port)).toEqual({
    result: "failure",
    output:
      `error: failed to connect service at "127.0.0.1:${port}": ` +
      `dial tcp 127.0.0.1:${port}: connect: connection refused`,
  });
});

test("a server that does not use HTTP/2", async () => {
  const server = await rawServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"));
  const { result, output } = await probe(server.port);
  expect(result).toBe("failure");
  expect(output).toStartWith("error: health rpc probe failed: rpc error: code = Unavailable desc = ");
});

const LATE = { result: "failure", output: "timeout: health rpc did not complete within 1s", isTimeout: true } as const;

test("a server that sends nothing fails at the deadline", async () => {
  const server = await rawServer(() => {});
  const outcome = probe(server.port);
  await server.request;
  await clock.advance(1000);
  expect(await outcome).toEqual(LATE);
});

test("a call that is not answered fails at the deadline; a stopped one says nothing", async () => {
  const server = await grpcServer(() => {});
  const outcome = probe(server.port);
  await server.called;
  await clock.advance(1000);
  expect(await outcome).toEqual(LATE);

  const stop = new AbortController();
  const stopped = probe(server.port, "", stop.signal);
  stop.abort(new Error("stopped"));
  expect(await stopped).toEqual({ result: "unknown", output: "stopped" });
  expect(clock.pendingTimers).toBe(0);
});

const frame = (...message: number[]) => Buffer.from([0, 0, 0, 0, message.length, ...message]);

test("a service is field 1, with a length of more than one byte where needed; none is an empty request", () => {
  expect(encodeHealthCheckRequest("")).toEqual(frame());
  const long = encodeHealthCheckRequest("x".repeat(300));
  expect(long.readUInt32BE(1)).toBe(303);
  expect([...long.subarray(5, 8)]).toEqual([0x0a, 0xac, 0x02]);
});

test.each([
  { when: "nothing", bytes: frame(), want: "UNKNOWN" },
  { when: "1", bytes: frame(0x08, 1), want: "SERVING" },
  { when: "2", bytes: frame(0x08, 2), want: "NOT_SERVING" },
  { when: "3", bytes: frame(0x08, 3), want: "SERVICE_UNKNOWN" },
  { when: "a status not known yet", bytes: frame(0x08, 0x96, 0x01), want: "150" },
  { when: "other fields around it", bytes: frame(0x12, 1, 0x41, 0x08, 1, 0x1d, 1, 2, 3, 4), want: "SERVING" },
  { when: "a compressed frame", bytes: Buffer.from([1, 0, 0, 0, 0]), want: undefined },
  { when: "half a frame", bytes: Buffer.from([0, 0, 0, 0, 2, 8]), want: undefined },
  { when: "half a number", bytes: frame(0x08, 0x80), want: undefined },
  { when: "a field longer than the message", bytes: frame(0x12, 9), want: undefined },
  { when: "no frame at all", bytes: Buffer.alloc(0), want: undefined },
])("an answer of $when is $want", ({ bytes, want }) => {
  expect(decodeHealthCheckResponse(bytes)).toBe(want);
});
