import { beforeEach, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { PodFiles } from "../../src/kubelet/pod-files.ts";
import { readTerminationLog } from "../../src/kubelet/volumes/host-files.ts";
import { aContainer, anExited, aPod } from "../support/builders.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { localHostFiles } from "../support/volume-world.ts";

const makeDirectory = tempDirs();
let root: string;
let files: PodFiles;

beforeEach(() => {
  root = makeDirectory();
  files = new PodFiles({
    logger: new RecordingLogger(),
    options: { ...DEFAULT_KUBELET_OPTIONS, rootDir: root },
    node: { name: "node1", ip: "192.0.2.1", cpuCount: 1, memoryBytes: 1 },
    readLogTail: async () => "",
    files: localHostFiles(),
  });
});

const logPath = () => {
  const directory = join(root, "pods", "uid", "containers", "app");
  mkdirSync(directory, { recursive: true });
  return join(directory, "0");
};

test("the end of a termination log of 8 GiB is read, and nothing else of it", () => {
  const path = logPath();
  writeFileSync(path, "start");
  truncateSync(path, 8 * 1024 ** 3);
  const rssBefore = process.memoryUsage().rss;
  expect(readTerminationLog(path)).toHaveLength(4096);
  expect(process.memoryUsage().rss - rssBefore).toBeLessThan(64 * 1024 * 1024);
});

test("a FIFO, a link and a missing file have no termination message", () => {
  execFileSync("mkfifo", [logPath()]);
  expect(readTerminationLog(logPath())).toBeUndefined();
  writeFileSync(join(root, "secret"), "secret");
  symlinkSync(join(root, "secret"), `${logPath().slice(0, -1)}1`);
  expect(readTerminationLog(`${logPath().slice(0, -1)}1`)).toBeUndefined();
  expect(readTerminationLog(`${logPath().slice(0, -1)}2`)).toBeUndefined();
});

test("the termination log is made for one attempt, writable by any user of the container", async () => {
  const pod = aPod({}, { uid: "uid" });
  const path = await files.makeTerminationLog(pod, aContainer({ terminationMessagePath: "/dev/termination-log" }), 3);
  expect(path).toBe(join(root, "pods", "uid", "containers", "app", "3"));
  expect(statSync(path!).mode & 0o777).toBe(0o666);
  writeFileSync(path!, "bye");
  expect(readTerminationLog(path!)).toBe("bye");
});

test.each([
  ["one that has ended takes its log along", anExited(), false],
  ["of one that was never started it is that of its successor", anExited("app", 0, { state: "created" }), true],
])("a removed container: %s", async (_, container, isLeft) => {
  writeFileSync(logPath(), "");
  await files.removeTerminationLog({ ...container, labels: { "io.kubernetes.pod.uid": "uid" } });
  expect(existsSync(logPath())).toBe(isLeft);
});

test("what cannot be written is named", async () => {
  writeFileSync(join(root, "pods"), "no directory");
  const container = aContainer({ terminationMessagePath: "/dev/termination-log" });
  const made = files.makeTerminationLog(aPod({}, { uid: "uid" }), container, 0);
  await expect(made).rejects.toThrow(`Cannot write "${join(root, "pods", "uid", "containers", "app", "0")}": ENOTDIR`);
});
