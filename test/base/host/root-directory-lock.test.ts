import { describe, expect, test } from "bun:test";
import { chmodSync, lstatSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import {
  describeNamelessHolder,
  type InstanceInfo,
  isTrusted,
  listInstances,
  lockRootDir,
  readInstance,
} from "../../../src/base/host/root-directory.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const tempDir = tempDirs();

const anInstance = (rootDir: string): InstanceInfo => ({
  pid: process.pid,
  version: "0.1.0",
  nodeName: "node1",
  rootDir,
  mode: "supervise",
  readOnlyUrl: "http://127.0.0.1:10255",
  readOnlyPort: 10255,
  socketPath: join(rootDir, "kubelet-ts.sock"),
  dockerEndpoint: "unix:///var/run/docker.sock",
});

test("one process locks a root directory, the next is refused until it is released", async () => {
  const rootDir = tempDir();
  const lock = await lockRootDir(rootDir);
  expect(lock).toBeDefined();
  expect(await lockRootDir(rootDir)).toBeUndefined();
  lock?.release();
  const again = await lockRootDir(rootDir);
  expect(again).toBeDefined();
  again?.release();
});

test("the lock holds against flock(1), and flock(1) holds it where bun:ffi does not work", async () => {
  const rootDir = tempDir();
  const flock = () => Bun.spawnSync(["flock", "-n", join(rootDir, "kubelet-ts.lock"), "true"]).exitCode;
  const lock = await lockRootDir(rootDir);
  expect(flock()).toBe(1);
  lock?.release();
  expect(flock()).toBe(0);
  const program = `
    const { lockRootDir } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/base/host/root-directory.ts"))});
    const lock = await lockRootDir(${JSON.stringify(rootDir)});
    console.log(lock !== undefined, Bun.spawnSync(["flock", "-n", ${JSON.stringify(join(rootDir, "kubelet-ts.lock"))}, "true"]).exitCode);
  `;
  const env = { ...process.env, BUN_JSC_useJIT: "0" };
  const { stdout } = Bun.spawnSync([process.execPath, "-e", program], { env });
  expect(stdout.toString()).toBe("true 1\n");
});

test("other processes read what the holder published", async () => {
  const rootDir = tempDir();
  const lock = await lockRootDir(rootDir);
  expect(readInstance(rootDir)).toBeUndefined();
  lock?.publish(anInstance(rootDir));
  expect(readInstance(rootDir)).toEqual(anInstance(rootDir));
  lock?.publish({ ...anInstance(rootDir), readOnlyUrl: undefined });
  expect((readInstance(rootDir) as InstanceInfo).readOnlyUrl).toBeUndefined();
  expect(lstatSync(join(rootDir, "kubelet-ts.lock")).mode & 0o777).toBe(0o600);
  lock?.release();
  expect(readInstance(rootDir)).toBeUndefined();
});

test.each(["", "{", "[]", '{"pid":1}', "null", "x".repeat(20_000)])("a lock file with %p names no process", (text) => {
  const rootDir = tempDir();
  writeFileSync(join(rootDir, "kubelet-ts.lock"), text);
  expect(readInstance(rootDir)).toBeUndefined();
});

test("the file of a process that was killed names none, also when another one has its pid", () => {
  const rootDir = tempDir();
  writeFileSync(join(rootDir, "kubelet-ts.lock"), JSON.stringify({ ...anInstance(rootDir), startTime: 1 }));
  expect(readInstance(rootDir)).toBeUndefined();
});

test("a process that has ended, and whose parent has not noticed, uses nothing", async () => {
  const rootDir = tempDir();
  // The second program takes the place of the shell, which could still ask for the child, and never does.
  const parent = Bun.spawn(["sh", "-c", "sleep 30 & echo $!; exec sleep 30"], { stdout: "pipe" });
  try {
    const { value } = await parent.stdout.getReader().read();
    const pid = Number(new TextDecoder().decode(value));
    const statOf = () => readFileSync(`/proc/${pid}/stat`, "utf8").split(" ");
    const startTime = Number(statOf()[21]);
    writeFileSync(join(rootDir, "kubelet-ts.lock"), JSON.stringify({ ...anInstance(rootDir), pid, startTime }));
    expect(readInstance(rootDir)).toBeDefined();
    while (readFileSync(`/proc/${parent.pid}/comm`, "utf8") !== "sleep\n") await Bun.sleep(5);
    process.kill(pid, "SIGKILL");
    while (statOf()[2] !== "Z") await Bun.sleep(5);
    expect(readInstance(rootDir)).toBeUndefined();
  } finally {
    parent.kill("SIGKILL");
  }
});

test("a root directory that is removed under its process is given to no other, until that has ended", async () => {
  const rootDir = tempDir();
  const lock = await lockRootDir(rootDir);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(rootDir, "kubelet-ts.sock"), resolve));
  expect(await lockRootDir(rootDir)).toBeUndefined();
  renameSync(rootDir, `${rootDir}-removed`);
  expect(describeNamelessHolder(rootDir)).toContain(`kill ${process.pid}`);
  mkdirSync(rootDir);
  await expect(lockRootDir(rootDir)).rejects.toThrow(`was removed while a kubelet-ts (pid ${process.pid}) uses it`);
  lock?.release();
  await new Promise((resolve) => server.close(resolve));
  (await lockRootDir(rootDir))!.release();
});

test("a lock file keeps its block for a full disk, and one whose text the disk refused still tells its process", async () => {
  const rootDir = tempDir();
  const lock = await lockRootDir(rootDir);
  expect(describeNamelessHolder(rootDir)).toContain(`a kubelet-ts (pid ${process.pid}) uses the root directory`);
  lock?.publish(anInstance(rootDir));
  lock?.publish({ ...anInstance(rootDir), nodeName: "n" });
  expect(readInstance(rootDir)).toEqual({ ...anInstance(rootDir), nodeName: "n" });
  lock?.release();
  expect([describeNamelessHolder(rootDir), readInstance(rootDir)]).toEqual([undefined, undefined]);
  expect(lstatSync(join(rootDir, "kubelet-ts.lock")).size).toBeGreaterThan(0);
});

test("a process that a signal has stopped is told", async () => {
  const rootDir = tempDir();
  const child = Bun.spawn(["sleep", "60"]);
  const startTime = Number(readFileSync(`/proc/${child.pid}/stat`, "utf8").split(" ")[21]);
  writeFileSync(
    join(rootDir, "kubelet-ts.lock"),
    JSON.stringify({ ...anInstance(rootDir), pid: child.pid, startTime }),
  );
  expect(readInstance(rootDir)).not.toHaveProperty("isSilent");
  child.kill("SIGSTOP");
  await until("it to stop", () => (readInstance(rootDir) as InstanceInfo).isSilent);
  child.kill("SIGKILL");
});

test("a link in place of the lock file is not followed", async () => {
  const rootDir = tempDir();
  const elsewhere = join(tempDir(), "file");
  writeFileSync(elsewhere, "kept");
  symlinkSync(elsewhere, join(rootDir, "kubelet-ts.lock"));
  await expect(lockRootDir(rootDir)).rejects.toThrow(`lock" cannot be used: it is not a file. Remove it, or`);
});

describe("kubelets that are listed by their sockets", () => {
  const table = (...paths: string[]) =>
    ["Num       RefCount Protocol Flags    Type St Inode Path"]
      .concat(paths.map((path) => `0000000000000000: 00000002 00000000 00010000 0001 01 12345 ${path}`))
      .join("\n");

  test("those in directories that only this user and root can replace", () => {
    const good = join(tempDir(), "my root");
    const shared = join(tempDir(), "shared");
    const linked = join(tempDir(), "linked");
    mkdirSync(good, { mode: 0o700 });
    mkdirSync(shared);
    chmodSync(shared, 0o777);
    symlinkSync(good, linked);
    const sockets = [good, shared, linked, "/nowhere"].map((path) => join(path, "kubelet-ts.sock"));
    expect(listInstances(table(...sockets, "@kubelet-ts-0123456789abcdef", "/run/docker.sock"))).toEqual([good]);
  });

  test.skipIf(process.getuid?.() !== 0)("a directory of another user is not trusted", async () => {
    const directory = join(tempDir(), "theirs");
    mkdirSync(directory, { mode: 0o700 });
    expect(isTrusted(directory)).toBe(true);
    Bun.spawnSync(["chown", "65534", directory]);
    expect(isTrusted(directory)).toBe(false);
  });
});
