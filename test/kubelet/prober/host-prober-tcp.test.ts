import { expect, test } from "bun:test";
import type { ProbeTarget } from "../../../src/base/model/prober.ts";
import { DeadlineError } from "../../../src/kubelet/prober/dial.ts";
import { probeTcp } from "../../../src/kubelet/prober/host-prober.ts";
import { closedPort, rawServer } from "./probe-server.ts";

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
  const port = await closedPort();
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
