import { beforeEach, expect, test } from "bun:test";
import type { EngineImage } from "../../../src/base/model/container-engine.ts";
import { ImageGcManager, type KnownImage } from "../../../src/kubelet/images/image-gc-manager.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { StoredFile } from "../../support/stored-file.ts";

let clock: FakeClock;
let there: Map<string, EngineImage>;
let wanted: Set<string>;
let saved: StoredFile<Record<string, KnownImage>>;
let isReady: boolean;
let logger: RecordingLogger;
const stop = new AbortController();

const anImage = (id: string, given: Partial<EngineImage> = {}): EngineImage => ({
  id,
  tags: [`${id}:1`],
  keys: [`${id}:1`],
  sizeBytes: 10_000_000,
  isInUse: false,
  usedByUsAs: undefined,
  isPause: false,
  ...given,
});

const manager = () =>
  new ImageGcManager({
    clock,
    logger,
    images: { list: async () => [...there.values()], remove: async ({ id }) => there.delete(id) },
    readDisk: async () => ({ capacityBytes: 1e9, availableBytes: 1e7 }),
    wantedNames: () => wanted,
    isReady: () => isReady,
    file: saved,
    policy: { highThresholdPercent: 85, lowThresholdPercent: 80, minimumTtlMs: 120_000, maximumAgeMs: 0 },
  });

const put = (...images: EngineImage[]) => images.forEach((image) => void there.set(image.id, image));
const left = () => [...there.keys()].sort();

/** A pod has used the image `ours`. */
function using(...images: EngineImage[]): ImageGcManager {
  put(...images);
  const gc = manager();
  gc.noteUsed("ours", "ours:1");
  return gc;
}

beforeEach(() => {
  clock = new FakeClock();
  there = new Map();
  wanted = new Set();
  saved = new StoredFile();
  isReady = true;
  logger = new RecordingLogger();
});

test("images that no pod used stay, on the fullest disk", async () => {
  const gc = using(anImage("stranger"), anImage("ours"));
  await clock.advance(600_000);
  await gc.collect(stop.signal);
  expect(left()).toEqual(["stranger"]);
  expect(logger.lines).toEqual([
    'info Removed unused image "ours:1" (10.0 MB): the image disk is 99 % full, the threshold is 85 %',
    "warn The image disk is 99 % full and no further unused image may be removed",
  ]);
});

test.each([
  { what: "used by a container, also a stranger's", image: anImage("ours", { isInUse: true }) },
  { what: "the pause image", image: anImage("ours", { isPause: true }) },
  {
    what: "given a name by a user",
    image: anImage("ours", { tags: ["ours:1", "mine:1"], keys: ["ours:1", "mine:1"] }),
  },
])("stays: $what", async ({ image }) => {
  const gc = using(image);
  await clock.advance(600_000);
  await gc.collect(stop.signal);
  await gc.reclaim(stop.signal);
  expect(left()).toEqual(["ours"]);
});

test("a wanted pod keeps its image although no container is there", async () => {
  const gc = using(anImage("ours"));
  wanted.add("ours:1");
  await clock.advance(600_000);
  await gc.collect(stop.signal);
  expect(left()).toEqual(["ours"]);
  wanted.clear();
  await clock.advance(119_000);
  await gc.collect(stop.signal);
  expect(left()).toEqual(["ours"]);
  await clock.advance(2_000);
  await gc.collect(stop.signal);
  expect(left()).toEqual([]);
});

test("nothing is removed before every desired pod is known", async () => {
  const gc = using(anImage("ours"));
  isReady = false;
  await clock.advance(600_000);
  await gc.collect(stop.signal);
  expect(left()).toEqual(["ours"]);
});

test("images that were used before a restart are known after it, with their age", async () => {
  put(anImage("ours"));
  const before = manager();
  before.noteUsed("ours", "ours:1");
  await clock.advance(60_000);
  isReady = false;
  await before.collect(stop.signal);
  isReady = true;
  clock = new FakeClock();
  const after = manager();
  await clock.advance(61_000);
  await after.collect(stop.signal);
  expect(left()).toEqual([]);
});

test("the image of one of our containers is known without a report", async () => {
  put(anImage("ours", { isInUse: true, usedByUsAs: ["ours:1"] }));
  const gc = manager();
  await gc.collect(stop.signal);
  put(anImage("ours"));
  await clock.advance(120_000);
  await gc.collect(stop.signal);
  expect(left()).toEqual([]);
});

test.each([
  { what: "nothing at rest", isInUse: true, count: 0 },
  { what: "the age of an unused image once an hour", isInUse: false, count: 2 },
])("writes $what", async ({ isInUse, count }) => {
  const gc = using(anImage("ours", { isInUse }));
  isReady = false;
  await clock.advance(1_000);
  await gc.collect(stop.signal);
  let writes = 0;
  saved.write = () => void writes++;
  for (let minutes = 5; minutes <= 120; minutes += 5) {
    await clock.advance(300_000);
    await gc.collect(stop.signal);
  }
  expect(writes).toBe(count);
});

test("it collects after ten seconds, then every five minutes", async () => {
  const gc = using(anImage("ours"));
  const ended = gc.run(stop.signal);
  await clock.advance(10_000 + 299_000);
  expect(left()).toEqual(["ours"]);
  await clock.advance(1_000);
  expect(left()).toEqual([]);
  stop.abort();
  await ended;
  expect(clock.pendingTimers).toBe(0);
});
