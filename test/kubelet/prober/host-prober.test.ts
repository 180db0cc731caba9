import { expect, test } from "bun:test";
import type { CommandOptions, ContainerAccess } from "../../../src/base/model/container-access.ts";
import type { ProbeTarget } from "../../../src/base/model/prober.ts";
import { HostProber, probeTcp } from "../../../src/kubelet/prober/host-prober.ts";
import { DeadlineError, PortError, resolvePort } from "../../../src/kubelet/prober/port-requests.ts";
import { aProbe } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { freePorts, rawServers } from "../../support/test-servers.ts";

const rawServer = rawServers();
type Exec = ContainerAccess["run"];

function attempt(exec: Exec, signal = new AbortController().signal, clock = new FakeClock()) {
  return new HostProber({ exec: { run: exec }, clock, version: "1.20" }).attempt(
    aProbe({ exec: { command: ["cat", "/ok"] }, timeoutSeconds: 2 }),
    { containerId: "c1", podIp: "", ports: [] },
    signal,
  );
}

test.each([
  { exitCode: 0, output: "fine\n", timedOut: false, want: { result: "success", output: "fine\n" } },
  { exitCode: 1, output: "no\n", timedOut: false, want: { result: "failure", output: "no\n" } },
  { exitCode: 1, output: "no\n", timedOut: false, isCut: true, want: { result: "failure", output: "no\n" } },
  {
    exitCode: 1,
    output: "",
    timedOut: false,
    isCut: true,
    want: {
      result: "failure",
      output:
        'command timed out: "cat /ok" timed out after 2s: it ended with exit code 1, and its output was not read in this time',
    },
  },
  {
    exitCode: undefined,
    output: "",
    timedOut: true,
    want: { result: "failure", output: 'command timed out: "cat /ok" timed out after 2s', isTimeout: true },
  },
  {
    exitCode: undefined,
    output: "",
    timedOut: false,
    want: { result: "unknown", output: "the engine reported no exit code" },
  },
] as const)("exec: exit code $exitCode, timed out: $timedOut", async ({ want, ...ended }) => {
  expect(await attempt(async () => ({ ...ended, stderr: "" }))).toEqual(want);
});

test("asks for the command, the time and the output limit of upstream", async () => {
  const asked: [string, readonly string[], CommandOptions][] = [];
  await attempt(async (id, argv, options) => {
    asked.push([id, argv, options]);
    return { exitCode: 0, output: "", stderr: "", timedOut: false };
  });
  expect(asked).toHaveLength(1);
  expect(asked[0]).toMatchObject(["c1", ["cat", "/ok"], { timeoutMs: 2000, maxOutputBytes: 10_240 }]);
});

test("an engine that refuses or hangs says nothing about the container", async () => {
  expect(await attempt(() => Promise.reject(new Error("409: not running")))).toEqual({
    result: "unknown",
    output: "409: not running",
  });
  const clock = new FakeClock();
  const hangs: Exec = (_id, _argv, { signal }) =>
    new Promise((_resolve, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)));
  const outcome = attempt(hangs, undefined, clock);
  await clock.advance(7000);
  expect((await outcome).result).toBe("unknown");
  expect(clock.pendingTimers).toBe(0);
});

const TARGET: ProbeTarget = { containerId: "c1", podIp: "127.0.0.1", ports: [] };
const never = new AbortController().signal;

test("a port that accepts is success", async () => {
  const server = await rawServer(() => {});
  expect(await probeTcp({ port: server.port }, TARGET, never)).toEqual({ result: "success", output: "" });
});

test("a named port and a host of its own", async () => {
  const server = await rawServer(() => {});
  const target = {
    containerId: "c1",
    podIp: "192.0.2.1",
    ports: [{ name: "db", containerPort: server.port, protocol: "TCP" as const }],
  };
  expect((await probeTcp({ port: "db", host: "localhost" }, target, never)).result).toBe("success");
});

test("a closed port is a failure in the words of the kubelet", async () => {
  const [port = 0] = freePorts(1);
  expect(await probeTcp({ port }, TARGET, never)).toEqual({
    result: "failure",
    output: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
  });
});

test("an IPv6 address", async () => {
  const { result, output } = await probeTcp({ port: 1, host: "::1" }, TARGET, never);
  expect(result).toBe("failure");
  expect(output).toStartWith("dial tcp [::1]:1: connect: ");
});

test("a deadline is a failure, a stop is not", async () => {
  const late = AbortSignal.abort(new DeadlineError());
  expect(await probeTcp({ port: 80 }, TARGET, late)).toEqual({
    result: "failure",
    output: "dial tcp 127.0.0.1:80: i/o timeout",
  });
  const stopped = new Error("stopped");
  expect(await probeTcp({ port: 80 }, TARGET, AbortSignal.abort(stopped)).catch((error: unknown) => error)).toBe(
    stopped,
  );
});

const PORTS = [
  { name: "web", containerPort: 8000, protocol: "TCP" as const },
  { name: "admin", containerPort: 9000, protocol: "TCP" as const },
];

test.each([
  { port: 80, want: 80 },
  { port: "8080", want: 8080 },
  { port: "web", want: 8000 },
  { port: "admin", want: 9000 },
])("$port is port $want", ({ port, want }) => {
  expect(resolvePort(port, PORTS)).toBe(want);
});

test.each([
  { port: "nope", message: 'port "nope" not found' },
  { port: 0, message: "invalid port number: 0" },
  { port: 65536, message: "invalid port number: 65536" },
  { port: "-1", message: "invalid port number: -1" },
])("$port is refused", ({ port, message }) => {
  expect(() => resolvePort(port, PORTS)).toThrow(new PortError(message));
});
