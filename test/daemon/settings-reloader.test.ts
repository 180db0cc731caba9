import { expect, test } from "bun:test";
import type { Configuration } from "../../src/base/model/configuration.ts";
import type { KubeletOptions } from "../../src/config/option-table.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { SettingsReloader } from "../../src/daemon/settings-reloader.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

function world() {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  const options: KubeletOptions = { ...DEFAULT_KUBELET_OPTIONS };
  const next: { options: Partial<KubeletOptions>; errors: string[]; configuration?: Configuration } = {
    options: {},
    errors: [],
  };
  const changes: number[] = [];
  let resolved = 0;
  let onEvent = () => {};
  const reloader = new SettingsReloader({
    clock,
    logger,
    options,
    resolve: async () => {
      resolved++;
      return {
        options: { ...DEFAULT_KUBELET_OPTIONS, ...next.options },
        origins: {} as never,
        positionals: [],
        configPaths: [],
        warnings: [],
        errors: next.errors,
        ...(next.configuration && { configuration: next.configuration }),
      };
    },
    paths: ["/etc/config.yaml"],
    watch: (listener) => {
      onEvent = listener;
      return { arm: () => true, stop: () => {} };
    },
    onChanged: (now) => changes.push(now.verbosity),
  });
  return { clock, logger, options, next, changes, reloader, resolved: () => resolved, event: () => onEvent() };
}

test("live settings are taken over in place, once", async () => {
  const { options, next, reloader, changes } = world();
  next.options = { verbosity: 4, readOnlyPort: 7 };
  await reloader.reload();
  await reloader.reload();
  expect([options.verbosity, options.readOnlyPort]).toEqual([4, DEFAULT_KUBELET_OPTIONS.readOnlyPort]);
  expect(changes).toEqual([4]);
});

test("what needs a restart is reported once, and again when it changes", async () => {
  const { next, reloader, logger } = world();
  next.options = { readOnlyPort: 7 };
  await reloader.reload();
  await reloader.reload();
  next.options = { readOnlyPort: 7, healthzPort: 8 };
  await reloader.reload();
  expect(logger.lines.filter((line) => line.includes("need a restart")).length).toBe(2);
});

test("an invalid configuration changes nothing; the next valid one is taken over", async () => {
  const { options, next, reloader, changes } = world();
  next.options = { verbosity: 4 };
  next.errors = ["/etc/config.yaml:3: no such field"];
  await reloader.reload();
  expect([options.verbosity, changes]).toEqual([DEFAULT_KUBELET_OPTIONS.verbosity, []]);
  next.errors = [];
  await reloader.reload();
  expect(options.verbosity).toBe(4);
});

test("an edit between the start and the first watch is seen; a burst of file events is one reading", async () => {
  const { options, next, clock, reloader, resolved, event } = world();
  next.options = { verbosity: 4 };
  const stop = new AbortController();
  void reloader.run(stop.signal);
  await clock.advance(0);
  expect(options.verbosity).toBe(4);
  const before = resolved();
  for (let index = 0; index < 10; index++) event();
  await clock.advance(1000);
  expect(resolved() - before).toBe(1);
  stop.abort();
});

test("files that are as before are not tried again: a rejected configuration is reported once", async () => {
  const { next, clock, reloader, event, logger } = world();
  const nothing = () => {};
  reloader.setTrial({ refusalOf: () => "its port is held", invalid: nothing, assigned: nothing, status: {} as never });
  next.configuration = { id: "one", files: [] };
  const stop = new AbortController();
  void reloader.run(stop.signal);
  for (let minute = 0; minute < 5; minute++, await clock.advance(60_000)) event();
  expect(logger.lines.filter((line) => line.includes("rejected before")).length).toBe(1);
  stop.abort();
});
