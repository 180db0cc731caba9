import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LogLinks, toEngineLogPath } from "../../src/runtime/log-links.ts";
import { toContainerLogLinkName } from "../../src/runtime/log-paths.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();

const POD = { name: "lblpod-node1", namespace: "my-ns", uid: "u1" };
const ID = "c".repeat(64);
const engineLogPath = (id: string) => toEngineLogPath("/docker", id);
const ENGINE_LOG = `/docker/containers/${ID}/${ID}-json.log`;

let podLogsDir: string;
let containersLogsDir: string;
let links: LogLinks;
let log: RecordingLogger;

beforeEach(() => {
  const directory = tempDir();
  podLogsDir = join(directory, "pods");
  containersLogsDir = join(directory, "containers");
  log = new RecordingLogger();
  links = new LogLinks({ podLogsDir, containersLogsDir, engineLogPath, log });
});

const podLink = () => join(podLogsDir, "my-ns_lblpod-node1_u1/first/0.log");
const containerLink = () => join(containersLogsDir, `lblpod-node1_my-ns_first-${ID}.log`);
const link = (pod: typeof POD, id: string, restartCount = 0) =>
  links.create({ metadata: pod }, "first", restartCount, id);
const first = { id: ID, name: "first", restartCount: 0 };

test("two links, named as the kubelet's (oracle 27)", () => {
  link(POD, ID);
  link(POD, ID);
  expect(readlinkSync(podLink())).toBe(ENGINE_LOG);
  expect(readlinkSync(containerLink())).toBe(podLink());
});

test("a container made again takes the link over, and keeps it when the old one is removed", () => {
  const again = "d".repeat(64);
  link(POD, ID);
  link(POD, again);
  links.removeContainer(first, POD);
  expect(readlinkSync(podLink())).toBe(engineLogPath(again));
  expect(existsSync(containerLink())).toBe(false);
  expect(readdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first"))).toEqual(["0.log"]);
  expect(readdirSync(containersLogsDir)).toEqual([`lblpod-node1_my-ns_first-${again}.log`]);
});

test("the links of a removed container go, those of the others stay", () => {
  link(POD, ID);
  link(POD, "e".repeat(64), 1);
  links.removeContainer(first, POD);
  links.removeContainer(first, POD);
  expect(readdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first"))).toEqual(["1.log"]);
  expect(readdirSync(containersLogsDir)).toHaveLength(1);
});

describe("a pod that is gone", () => {
  test("leaves nothing, other pods keep theirs", () => {
    const other = { name: "lblpod-node1", namespace: "my-ns", uid: "u12" };
    link(POD, ID);
    link(other, "f".repeat(64));
    symlinkSync("/elsewhere", join(containersLogsDir, "foreign.log"));
    links.removePod(POD);
    links.removePod(POD);
    expect(readdirSync(podLogsDir)).toEqual(["my-ns_lblpod-node1_u12"]);
    expect(readdirSync(containersLogsDir).sort()).toEqual([
      "foreign.log",
      `lblpod-node1_my-ns_first-${"f".repeat(64)}.log`,
    ]);
  });

  test("a file that somebody put there stays", () => {
    link(POD, ID);
    writeFileSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first/mine.txt"), "");
    links.removePod(POD);
    expect(readdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first"))).toEqual(["mine.txt"]);
  });
});

test("a real file is not overwritten by a link", () => {
  mkdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first"), { recursive: true });
  writeFileSync(podLink(), "");
  link(POD, ID);
  link(POD, ID);
  expect(lstatSync(podLink()).isFile()).toBe(true);
  expect(log.lines).toEqual(["warn Links to container logs are not complete"]);
});

test("without directories, or without a log file, there are no links", () => {
  for (const options of [
    { podLogsDir: "", containersLogsDir, engineLogPath, log },
    { podLogsDir, containersLogsDir, engineLogPath: () => "", log },
  ]) {
    const none = new LogLinks(options);
    none.create({ metadata: POD }, "first", 0, ID);
    none.removeContainer(first, POD);
    none.removePod(POD);
  }
  expect(existsSync(podLogsDir)).toBe(false);
  expect(existsSync(containersLogsDir)).toBe(false);
});

test("the name in the containers directory is cut to what a file name may be long", () => {
  const name = toContainerLogLinkName({ name: "n".repeat(200) }, "c", ID);
  expect(name).toHaveLength(255);
  expect(name).toEndWith(".log");
});
