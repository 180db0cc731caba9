import { expect, test } from "bun:test";
import { FileSlot } from "../../src/base/concurrency/file-slot.ts";
import { DiskUsage } from "../../src/stats/disk-usage.ts";
import type { MeasureDirectories } from "../../src/stats/measure-by-du.ts";
import { FakeClock } from "../support/fake-clock.ts";

function setUp(scanMs = 0) {
  const clock = new FakeClock();
  const scans: string[][] = [];
  const measure: MeasureDirectories = async (directories, what) => {
    if (what === "bytes") scans.push([...directories]);
    if (scanMs > 0) await clock.sleep(scanMs / 2);
    return new Map(directories.map((directory) => [directory, what === "bytes" ? 4096 : 1]));
  };
  return { clock, scans, disk: new DiskUsage(clock, 60_000, new FileSlot(clock), measure) };
}

test("asking never waits; the next question has the answer", async () => {
  const { disk, clock } = setUp();
  expect(disk.ask(["/a", "/a"]).size).toBe(0);
  await disk.settled();
  expect(disk.ask(["/a"]).get("/a")).toMatchObject({ usedBytes: 4096, inodesUsed: 1, at: clock.now() });
});

test("without a request nothing is measured; known values are measured again after the period", async () => {
  const { disk, clock, scans } = setUp();
  disk.ask(["/a"]);
  await disk.settled();
  await clock.advance(59_000);
  disk.ask(["/a"]);
  expect(scans).toHaveLength(1);
  await clock.advance(600_000);
  expect(scans).toHaveLength(1);
  disk.ask(["/a"]);
  expect(scans).toHaveLength(2);
});

test("a new directory does not wait for the period", async () => {
  const { disk, clock, scans } = setUp();
  disk.ask(["/a"]);
  await disk.settled();
  await clock.advance(2_000);
  disk.ask(["/a", "/b"]);
  expect(scans.at(-1)).toEqual(["/a", "/b"]);
});

test("after a long scan there is a long rest, also for new directories", async () => {
  const { disk, clock, scans } = setUp(10_000);
  disk.ask(["/a"]);
  await clock.advance(10_000);
  await disk.settled();
  await clock.advance(199_000);
  disk.ask(["/a", "/b"]);
  expect(scans).toHaveLength(1);
  await clock.advance(2_000);
  disk.ask(["/a", "/b"]);
  expect(scans).toHaveLength(2);
});

test("one scan at a time", async () => {
  const { disk, clock, scans } = setUp(1_000);
  disk.ask(["/a"]);
  disk.ask(["/a", "/b"]);
  expect(scans).toHaveLength(1);
  await clock.advance(1_000);
});

test("no directory, no scan", () => {
  const { disk, scans } = setUp();
  disk.ask([]);
  expect(scans).toEqual([]);
});

test("a file system is measured by its capacity alone", async () => {
  const { disk, scans } = setUp();
  disk.ask(["/a"], ["/tmp", "/nowhere"]);
  await disk.settled();
  expect(scans).toEqual([["/a"]]);
  const found = disk.ask(["/a"], ["/tmp", "/nowhere"]);
  expect([...found.keys()]).toEqual(["/a", "/tmp"]);
  const { usedBytes, inodesUsed, fs } = found.get("/tmp")!;
  expect([usedBytes, inodesUsed]).toEqual([fs!.usedBytes, fs!.inodes - fs!.inodesFree]);
});
