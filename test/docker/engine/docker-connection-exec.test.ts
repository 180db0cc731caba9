import { expect, test } from "bun:test";
import { runExec } from "../../../src/docker/engine/docker-connection.ts";
import type { ExecInspect } from "../../../src/docker/engine/schemas.ts";
import { FakeClock } from "../../support/fake-clock.ts";

test("a command that ended in time is not late because the engine is slow to say how it ended", async () => {
  const clock = new FakeClock();
  const ended: ExecInspect = { ID: "e", Running: false, ExitCode: 0, Pid: 7, ContainerID: "c" };
  const calls = {
    execCreate: async () => "e",
    execStart: async () =>
      (async function* () {
        // No output.
      })(),
    execInspect: async () => {
      await clock.sleep(3_000);
      return ended;
    },
    killExecProcesses: () => 0,
  };
  const result = runExec(calls, "c", ["check"], { timeoutMs: 1_000 }, (ms, callback) => clock.schedule(ms, callback));
  await clock.advance(5_000);
  expect(await result).toMatchObject({ exitCode: 0, timedOut: false });
});

test("a command that ended before its output was sent is not late, but what it wrote is missing", async () => {
  const clock = new FakeClock();
  const ended: ExecInspect = { ID: "e", Running: false, ExitCode: 1, Pid: 7, ContainerID: "c" };
  const calls = {
    execCreate: async () => "e",
    execStart: async (_id: string, { signal }: { signal?: AbortSignal }) =>
      (async function* () {
        await new Promise((_resolve, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)));
      })(),
    execInspect: async () => ended,
    killExecProcesses: () => 0,
  };
  const result = runExec(calls, "c", ["check"], { timeoutMs: 1_000 }, (ms, callback) => clock.schedule(ms, callback));
  await clock.advance(5_000);
  expect(await result).toMatchObject({ exitCode: 1, output: "", timedOut: false, isCut: true });
});
