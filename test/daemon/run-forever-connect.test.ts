import { expect, test } from "bun:test";
import { connectWithRetries } from "../../src/daemon/run-forever.ts";
import { MisconfigurationError } from "../../src/docker/docker-engine.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

function setUp(connect: (attempt: number) => Promise<void>) {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  const stop = new AbortController();
  let attempts = 0;
  const done = connectWithRetries(() => connect(++attempts), clock, logger, stop.signal);
  return { clock, logger, stop, done, attempts: () => attempts };
}

test("an engine that accepts connections and does not answer is logged once", async () => {
  const answer = Promise.withResolvers<void>();
  const { clock, logger, done } = setUp(() => answer.promise);
  await clock.advance(9_000);
  expect(logger.lines).toEqual([]);
  await clock.advance(100_000);
  expect(logger.lines).toEqual([expect.stringContaining("The Docker engine has not answered for 10 s")]);
  answer.resolve();
  await done;
});

test("the same error is logged once, and attempts are made until one succeeds", async () => {
  const { clock, logger, done, attempts } = setUp(async (attempt) => {
    if (attempt < 4) throw new Error("No Docker engine");
  });
  await clock.advance(5_000);
  await done;
  expect(attempts()).toBe(4);
  expect(logger.lines).toEqual([
    expect.stringContaining("No Docker engine"),
    expect.stringContaining("The Docker engine answers"),
  ]);
});

test("a configuration that does not fit the engine ends it; so does the end of the process", async () => {
  const wrong = setUp(() => Promise.reject(new MisconfigurationError("--cgroup-driver")));
  await expect(wrong.done).rejects.toThrow("--cgroup-driver");
  const ending = setUp(() => Promise.reject(new Error("gone")));
  ending.stop.abort();
  await ending.clock.advance(2_000);
  await ending.done;
  expect(ending.attempts()).toBe(1);
});
