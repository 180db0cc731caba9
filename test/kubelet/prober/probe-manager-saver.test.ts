import { expect, test } from "bun:test";
import { ProbeResultSaver } from "../../../src/kubelet/prober/probe-manager.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

function aSaver() {
  const clock = new FakeClock();
  const saves: PromiseWithResolvers<void>[] = [];
  const store = {
    save: () => {
      const save = Promise.withResolvers<void>();
      saves.push(save);
      return save.promise;
    },
  };
  const saver = new ProbeResultSaver(store, () => new Map(), { clock, logger: new RecordingLogger() });
  const done: string[] = [];
  return { clock, saver, saves, done, change: (what: string) => void saver.changed().then(() => done.push(what)) };
}

test("a change is reported after its save, so that a kill does not take it back", async () => {
  const { clock, saves, done, change } = aSaver();
  change("ready");
  await clock.advance(10);
  expect(done).toEqual([]);
  saves[0]!.resolve();
  await clock.advance(0);
  expect(done).toEqual(["ready"]);
});

test("a disk that hangs holds a change back for 200 ms at most", async () => {
  const { clock, saves, done, change } = aSaver();
  change("failed");
  await clock.advance(199);
  expect(done).toEqual([]);
  await clock.advance(2);
  expect(done).toEqual(["failed"]);
  expect(saves).toHaveLength(1);
});
