import { beforeEach, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OomGroup } from "../../../src/base/host/oom-group.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();
let directory: string;
let log: RecordingLogger;
const CGROUP = "/kubepods.slice/kubepods-pod1.slice/docker-c1.scope";

beforeEach(() => {
  directory = tempDir();
  log = new RecordingLogger();
  mkdirSync(join(directory, "proc/42"), { recursive: true });
  writeFileSync(join(directory, "proc/42/cgroup"), `0::${CGROUP}\n`);
  mkdirSync(join(directory, "cgroup", CGROUP), { recursive: true });
  writeFileSync(join(directory, "cgroup", CGROUP, "memory.oom.group"), "0\n");
});

const oomGroup = (version: 1 | 2, singleProcess: boolean | undefined) =>
  new OomGroup({
    hierarchies: [
      { version: 1, mountPoint: join(directory, "v1"), root: "/", controllers: ["memory"] },
      { version: 2, mountPoint: join(directory, "cgroup"), root: "/", controllers: [] },
    ],
    cgroupVersion: () => version,
    singleProcess,
    log,
    procDir: join(directory, "proc"),
  });

test.each([
  { version: 2, singleProcess: undefined, wanted: true },
  { version: 2, singleProcess: false, wanted: true },
  { version: 2, singleProcess: true, wanted: false },
  { version: 1, singleProcess: undefined, wanted: false },
  { version: 1, singleProcess: false, wanted: false },
] as const)("cgroup v$version, singleProcessOOMKill $singleProcess: all die together $wanted", (row) => {
  expect(oomGroup(row.version, row.singleProcess).isWanted).toBe(row.wanted);
});

test("the container's cgroup is reported", () => {
  oomGroup(2, undefined).apply(42);
  expect(readFileSync(join(directory, "cgroup", CGROUP, "memory.oom.group"), "utf8").trim()).toBe("1");
  expect(log.lines).toEqual([]);
});

test("false on cgroup v1 has no effect, which is logged once", () => {
  const group = oomGroup(1, false);
  group.check();
  group.check();
  expect(log.lines).toEqual([
    "warn singleProcessOOMKill: false has no effect: on cgroup v1 the kernel kills one process at a time",
  ]);
});

test("a kernel without the file is reported once, and no file is made", () => {
  rmSync(join(directory, "cgroup", CGROUP, "memory.oom.group"));
  const group = oomGroup(2, false);
  group.apply(42);
  group.apply(42);
  expect(log.lines).toHaveLength(1);
  expect(log.lines[0]).toContain("killed one by one");
  expect(readdirSync(join(directory, "cgroup", CGROUP))).toEqual([]);
});

test("a container that has ended meanwhile is not reported", () => {
  oomGroup(2, undefined).apply(4711);
  expect(log.lines).toEqual([]);
});
