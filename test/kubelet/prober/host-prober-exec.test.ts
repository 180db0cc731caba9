import { expect, test } from "bun:test";
import type { CommandOptions, ContainerAccess } from "../../../src/base/model/container-access.ts";
import { HostProber } from "../../../src/kubelet/prober/host-prober.ts";
import { FakeClock } from "../../support/fake-clock.ts";

type Exec = ContainerAccess["run"];

function attempt(exec: Exec, signal = new AbortController().signal, clock = new FakeClock()) {
  return new HostProber({ exec: { run: exec }, clock, version: "1.20" }).attempt(
    {
      exec: { command: ["cat", "/ok"] },
      timeoutSeconds: 2,
      periodSeconds: 10,
      successThreshold: 1,
      failureThreshold: 3,
    },
    { containerId: "c1", podIp: "", ports: [] },
    signal,
  );
}

test.each([
  {
    when: "exit 0",
    ended: { exitCode: 0, output: "fine\n", stderr: "", timedOut: false },
    result: "success",
    output: "fine\n",
  },
  {
    when: "exit 1",
    ended: { exitCode: 1, output: "no\n", stderr: "", timedOut: false },
    result: "failure",
    output: "no\n",
  },
  {
    when: "killed for its time",
    ended: { exitCode: undefined, output: "", stderr: "", timedOut: true },
    result: "failure",
    output: 'command timed out: "cat /ok" timed out after 2s',
  },
  {
    when: "no exit code",
    ended: { exitCode: undefined, output: "", stderr: "", timedOut: false },
    result: "unknown",
    output: "the engine reported no exit code",
  },
] as const)("$when", async ({ ended, result, output }) => {
  expect(await attempt(async () => ended)).toEqual({ result, output });
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
