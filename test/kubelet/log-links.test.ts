import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LogLinks, toContainerLogLinkName } from "../../src/kubelet/log-links.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();

const POD = { name: "lblpod-node1", namespace: "my-ns", uid: "u1" };
const ID = "c".repeat(64);
const logPathIn = (docker: string, id: string) => join(docker, "containers", id, `${id}-json.log`);
const engineLogPath = (id: string) => logPathIn("/docker", id);
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
  after(() => links.create({ metadata: pod }, "first", restartCount, id));
/** Does it, and waits until the links are changed. */
async function after(change: () => void): Promise<void> {
  change();
  await Bun.sleep(0);
}
const first = { id: ID, name: "first", restartCount: 0 };

test("two links, named as the kubelet's", async () => {
  await link(POD, ID);
  await link(POD, ID);
  expect(readlinkSync(podLink())).toBe(ENGINE_LOG);
  expect(readlinkSync(containerLink())).toBe(podLink());
});

test("a container made again takes the link over, and keeps it when the old one is removed", async () => {
  const again = "d".repeat(64);
  await link(POD, ID);
  await link(POD, again);
  await after(() => links.removeContainer(first, POD));
  expect(readlinkSync(podLink())).toBe(engineLogPath(again));
  expect(existsSync(containerLink())).toBe(false);
  expect(readdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first"))).toEqual(["0.log"]);
  expect(readdirSync(containersLogsDir)).toEqual([`lblpod-node1_my-ns_first-${again}.log`]);
});

test("the links of a removed container go, those of the others stay", async () => {
  await link(POD, ID);
  await link(POD, "e".repeat(64), 1);
  await after(() => links.removeContainer(first, POD));
  await after(() => links.removeContainer(first, POD));
  expect(readdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first"))).toEqual(["1.log"]);
  expect(readdirSync(containersLogsDir)).toHaveLength(1);
});

describe("a pod that is gone", () => {
  test("leaves nothing, other pods keep theirs", async () => {
    const other = { name: "lblpod-node1", namespace: "my-ns", uid: "u12" };
    await link(POD, ID);
    await link(other, "f".repeat(64));
    symlinkSync("/elsewhere", join(containersLogsDir, "foreign.log"));
    await after(() => links.removePod(POD));
    await after(() => links.removePod(POD));
    expect(readdirSync(podLogsDir)).toEqual(["my-ns_lblpod-node1_u12"]);
    expect(readdirSync(containersLogsDir).sort()).toEqual([
      "foreign.log",
      `lblpod-node1_my-ns_first-${"f".repeat(64)}.log`,
    ]);
  });

  test("a foreign file stays", async () => {
    await link(POD, ID);
    writeFileSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first/mine.txt"), "");
    await after(() => links.removePod(POD));
    expect(readdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first"))).toEqual(["mine.txt"]);
  });
});

test("a real file is not overwritten by a link", async () => {
  mkdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1/first"), { recursive: true });
  writeFileSync(podLink(), "");
  await link(POD, ID);
  await link(POD, ID);
  expect(lstatSync(podLink()).isFile()).toBe(true);
  expect(log.lines).toEqual(["warn Links to container logs are not complete"]);
});

test("without directories, or without a log file, there are no links", async () => {
  for (const options of [
    { podLogsDir: "", containersLogsDir, engineLogPath, log },
    { podLogsDir, containersLogsDir, engineLogPath: () => "", log },
  ]) {
    const none = new LogLinks(options);
    await after(() => none.create({ metadata: POD }, "first", 0, ID));
    await after(() => none.removeContainer(first, POD));
    await after(() => none.removePod(POD));
  }
  expect(existsSync(podLogsDir)).toBe(false);
  expect(existsSync(containersLogsDir)).toBe(false);
});

test("the name in the containers directory is cut to what a file name may be long", async () => {
  const name = toContainerLogLinkName({ name: "n".repeat(200) }, "c", ID);
  expect(name).toHaveLength(255);
  expect(name).toEndWith(".log");
});

describe("links that a pod created", () => {
  const victim = () => {
    const directory = join(tempDir(), "victim");
    mkdirSync(directory);
    symlinkSync("/usr/bin", join(directory, "bin"));
    return directory;
  };

  test("a link in the log directory of a removed pod is not followed", async () => {
    const directory = victim();
    await link(POD, ID);
    symlinkSync(directory, join(podLogsDir, "my-ns_lblpod-node1_u1/x"));
    await after(() => links.removePod(POD));
    expect(readlinkSync(join(directory, "bin"))).toBe("/usr/bin");
  });

  test("a link in place of the log directory of a pod is not followed", async () => {
    const directory = victim();
    mkdirSync(join(directory, "first"));
    symlinkSync("/usr/bin", join(directory, "first", "0.log"));
    mkdirSync(podLogsDir);
    symlinkSync(directory, join(podLogsDir, "my-ns_lblpod-node1_u1"));
    await after(() => links.removeContainer(first, POD));
    await after(() => links.removePod(POD));
    expect(readdirSync(directory).sort()).toEqual(["bin", "first"]);
    expect(readlinkSync(join(directory, "first", "0.log"))).toBe("/usr/bin");
  });

  test("no log link is created through a link in place of the container", async () => {
    const directory = victim();
    mkdirSync(join(podLogsDir, "my-ns_lblpod-node1_u1"), { recursive: true });
    symlinkSync(directory, join(podLogsDir, "my-ns_lblpod-node1_u1/first"));
    await link(POD, ID);
    expect(readdirSync(directory)).toEqual(["bin"]);
    expect(log.lines).toHaveLength(1);
  });
});

test("links to logs that the engine no longer has are swept, others stay", async () => {
  const docker = join(tempDir(), "docker");
  const swept = new LogLinks({ podLogsDir, containersLogsDir, engineLogPath: (id) => logPathIn(docker, id), log });
  const kept = { ...POD, uid: "u2" };
  mkdirSync(join(docker, "containers", "d".repeat(64)), { recursive: true });
  writeFileSync(logPathIn(docker, "d".repeat(64)), "");
  await after(() => swept.create({ metadata: POD }, "first", 0, ID));
  await after(() => swept.create({ metadata: kept }, "first", 0, "d".repeat(64)));
  // The log of another engine.
  await link({ ...POD, uid: "u3" }, "e".repeat(64));
  await after(() => swept.sweep());
  expect(readdirSync(podLogsDir).sort()).toEqual(["my-ns_lblpod-node1_u2", "my-ns_lblpod-node1_u3"]);
  expect(readdirSync(containersLogsDir)).toEqual([`lblpod-node1_my-ns_first-${"d".repeat(64)}.log`]);
});
