import { expect, setDefaultTimeout, test } from "bun:test";
import * as fs from "node:fs";
import { join } from "node:path";
import { findFileSystem } from "../../src/base/files/mount-points.ts";
import { cleanUps } from "../support/clean-ups.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { mounting, tempDirs } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { manifest, podsOf, readFile, WatchedDirectory, type WatchedOptions, writeSettled } from "./source-harness.ts";

// Real files, programs and servers: on a busy machine each may take its time.
setDefaultTimeout(60_000);
const tempDir = tempDirs();
const atTestEnd = cleanUps();
function watched(options?: WatchedOptions): WatchedDirectory {
  const directory = new WatchedDirectory(tempDir(), options);
  atTestEnd(() => directory.source.stop());
  return directory;
}
const good = readFile(Buffer.from(manifest("web")), "web.yaml");
const finds = (directory: WatchedDirectory, text = "") =>
  until(`the finding ${text}`, () =>
    (directory.sets.at(-1)?.findings ?? []).some(({ message }) => message.includes(text)),
  );
const fails = (directory: WatchedDirectory) =>
  until("the failure", () => directory.source.status().state === "failing");
/** A file so old that a text with errors counts at once. */
function writeOld(path: string, text: string): void {
  fs.writeFileSync(path, text);
  fs.utimesSync(path, 1000, 1000);
}

/** With these files in it, by name. */
function started(files: Record<string, string>, options?: WatchedOptions): WatchedDirectory {
  const directory = watched(options);
  for (const [name, text] of Object.entries(files)) directory.write(name, text);
  return directory.start();
}

test("a new manifest, an edit in place and a removal are seen at once", async () => {
  const directory = watched().start();
  expect(directory.sets).toHaveLength(1);
  directory.write("web.yaml", manifest("web"));
  await directory.wants("web=busybox:1");
  directory.write("web.yaml", manifest("web", "busybox:2"));
  await directory.wants("web=busybox:2");
  fs.unlinkSync(directory.file("web.yaml"));
  await directory.wants();
  expect(directory.history).toEqual(["", "web=busybox:1", "web=busybox:2", ""]);
});

test("a path that is missing at the start emits nothing until it exists", async () => {
  const directory = watched({ path: "later" }).start();
  expect(directory.sets).toEqual([]);
  expect(directory.source.status()).toMatchObject({
    state: "failing",
    message: `"${directory.path}" does not exist`,
    failures: 1,
  });
  expect(directory.logger.lines).toContain(
    `warn Manifests: "${directory.path}" does not exist; no pods come from it until it can be read`,
  );
  fs.mkdirSync(directory.path);
  directory.write("p1.yaml", manifest("p1"));
  await directory.wants("p1=busybox:1");
});

test.each([
  { what: "removed", away: (path: string) => fs.rmSync(path, { recursive: true }) },
  { what: "renamed", away: (path: string) => fs.renameSync(path, `${path}.gone`) },
])("a directory that is $what keeps its pods until there is one again", async ({ away }) => {
  const directory = started({ "p1.yaml": manifest("p1"), "p2.yaml": manifest("p2") }, { checkFrequencyMs: 10 });
  fs.renameSync(directory.path, `${directory.path}.old`);
  await fails(directory);
  await directory.readsMore(20);
  expect(directory.pods).toEqual(["p1=busybox:1", "p2=busybox:1"]);
  expect([...directory.sets.at(-1)!.stale.values()]).toEqual(Array(2).fill(`"${directory.path}" does not exist`));
  away(`${directory.path}.old`);
  fs.mkdirSync(directory.path);
  directory.write("p2.yaml", manifest("p2", "busybox:2"));
  await directory.wants("p2=busybox:2");
  expect(directory.history.filter((line) => !line.includes("p2="))).toEqual([]);
});

test.skipIf(!mounting.ok)("an emptied mount point keeps its pods; an emptied directory does not", async () => {
  const directory = watched({ checkFrequencyMs: 10 });
  expect(Bun.spawnSync(["mount", "-t", "tmpfs", "tmpfs", directory.path]).exitCode).toBe(0);
  try {
    directory.write("web.yaml", manifest("web"));
    directory.start();
    expect(directory.pods).toEqual(["web=busybox:1"]);
  } finally {
    Bun.spawnSync(["umount", "-l", directory.path]);
  }
  await fails(directory);
  expect(directory.source.status().message).toContain("is empty and on another file system than before");
  await directory.readsMore(20);
  expect(directory.pods).toEqual(["web=busybox:1"]);
  directory.write("web.yaml", manifest("web", "busybox:2"));
  await directory.wants("web=busybox:2");
  fs.rmSync(directory.file("web.yaml"));
  await directory.wants();
});

test("at the start, an empty directory on another file system than in the checkpoint keeps its pods", async () => {
  const elsewhere = { mountPoint: "/nowhere", device: 1, bootId: "" };
  const directory = watched({ lastKnownGood: () => new Map([["web.yaml", good]]), lastPlace: elsewhere }).start();
  expect(directory.pods).toEqual(["web=busybox:1"]);
  expect(directory.source.status().state).toBe("restored");
  // The checkpoint is written again meanwhile: the next read, or start, has the same evidence.
  expect(directory.source.checkpoint().place).toEqual(elsewhere);
  const same = findFileSystem(directory.path);
  // On the same one its manifest was removed: it is not brought back.
  const emptied = watched({ lastKnownGood: () => new Map([["web.yaml", good]]), lastPlace: same }).start();
  expect(emptied.pods).toEqual([]);
});

test("the checkpoint is loaded once for all files that are broken", () => {
  let loads = 0;
  const directory = watched({
    lastKnownGood: () => {
      loads++;
      return undefined;
    },
  });
  for (const name of ["a.yaml", "b.yaml", "c.yaml"]) writeOld(directory.file(name), "kind: [");
  directory.start();
  expect(loads).toBe(1);
});

test("a manifest that is a link whose target is missing keeps its pod", async () => {
  const directory = watched({ checkFrequencyMs: 10 });
  writeSettled(join(directory.root, "web.yaml"), manifest("web"));
  fs.symlinkSync("../web.yaml", directory.file("web.yaml"));
  directory.start();
  fs.unlinkSync(join(directory.root, "web.yaml"));
  await finds(directory);
  expect(directory.sets.at(-1)!.findings[0]!.message).toBe("is a symbolic link whose target is missing");
  expect(directory.pods).toEqual(["web=busybox:1"]);
  fs.unlinkSync(directory.file("web.yaml"));
  await directory.wants();
});

test("a file that becomes a FIFO or a device keeps its pod and delays no other", async () => {
  const directory = started({ "web.yaml": manifest("web"), "other.yaml": manifest("other") }, { checkFrequencyMs: 10 });
  for (const [exchange, message] of [
    [() => Bun.spawnSync(["mkfifo", directory.file("web.yaml")]), "is not a regular file"],
    [() => fs.symlinkSync("/dev/zero", directory.file("web.yaml")), "is not a regular file"],
    [() => fs.symlinkSync("/proc/kmsg", directory.file("web.yaml")), "cannot be read: "],
    [() => fs.mkdirSync(directory.file("web.yaml")), "is a directory"],
  ] as const) {
    fs.rmSync(directory.file("web.yaml"));
    exchange();
    await until(message, () => directory.sets.at(-1)!.findings.some((finding) => finding.message.startsWith(message)));
    expect(directory.pods).toEqual(["other=busybox:1", "web=busybox:1"]);
  }
});

test("a directory that is replaced by another one is still watched", async () => {
  const directory = watched().start();
  directory.write("a.yaml", manifest("a"));
  await directory.wants("a=busybox:1");
  const next = join(directory.root, "next");
  fs.mkdirSync(next);
  fs.writeFileSync(join(next, "a.yaml"), manifest("a"));
  fs.writeFileSync(join(next, "b.yaml"), manifest("b"));
  fs.renameSync(directory.path, join(directory.root, "old"));
  fs.renameSync(next, directory.path);
  await directory.wants("a=busybox:1", "b=busybox:1");
  directory.write("c.yaml", manifest("c"));
  await directory.wants("a=busybox:1", "b=busybox:1", "c=busybox:1");
  expect(directory.history.filter((line) => !line.includes("a="))).toEqual([""]);
});

test("a manifest path that is a symbolic link may get another target", async () => {
  const directory = watched({ path: "current" });
  for (const release of ["one", "two"]) {
    fs.mkdirSync(join(directory.root, release));
    fs.writeFileSync(join(directory.root, release, "web.yaml"), manifest("web", `busybox:${release}`));
  }
  fs.symlinkSync("one", directory.path);
  directory.start();
  await directory.wants("web=busybox:one");
  fs.symlinkSync("two", join(directory.root, "tmp"));
  fs.renameSync(join(directory.root, "tmp"), directory.path);
  await directory.wants("web=busybox:two");
});

test("a single file is followed through edits, replacement and removal, whatever its name", async () => {
  const directory = watched({ path: "single.conf" });
  fs.writeFileSync(directory.path, manifest("one"));
  directory.start();
  await directory.wants("one=busybox:1");
  fs.writeFileSync(directory.path, manifest("one", "busybox:2"));
  await directory.wants("one=busybox:2");
  fs.writeFileSync(join(directory.root, "x"), manifest("one", "busybox:3"));
  fs.renameSync(join(directory.root, "x"), directory.path);
  await directory.wants("one=busybox:3");
  fs.unlinkSync(directory.path);
  await fails(directory);
  expect(directory.pods).toEqual(["one=busybox:3"]);
  fs.writeFileSync(directory.path, "apiVersion: v1\nkind: List\nitems: []\n");
  await directory.wants();
});

test("a ConfigMap volume as directory: the swap of ..data is one step", async () => {
  const directory = watched();
  const put = (version: string) => {
    fs.mkdirSync(directory.file(`..${version}`));
    fs.writeFileSync(directory.file(`..${version}/web.yaml`), manifest("web", `busybox:${version}`));
    fs.symlinkSync(`..${version}`, directory.file("..data_tmp"));
    fs.renameSync(directory.file("..data_tmp"), directory.file("..data"));
  };
  put("one");
  fs.symlinkSync("..data/web.yaml", directory.file("web.yaml"));
  directory.start();
  await directory.wants("web=busybox:one");
  put("two");
  await directory.wants("web=busybox:two");
  expect(directory.history).toEqual(["web=busybox:one", "web=busybox:two"]);
});

test("files that editors, package managers and people leave next to manifests are skipped with a reason", async () => {
  const directory = watched();
  const leftovers =
    ".hidden.yaml web.yaml~ #web.yaml# web.yaml.bak .web.yaml.swp web.swp web.yaml.orig web.yaml.rpmsave web.yaml.dpkg-dist web.yaml.tmp notes.txt 4913".split(
      " ",
    );
  for (const name of leftovers) directory.write(name, manifest("leftover"));
  directory.write("README", "# About this directory\n");
  fs.mkdirSync(directory.file("sub.yaml"));
  fs.writeFileSync(directory.file("sub.yaml/inner.yaml"), manifest("inner"));
  fs.symlinkSync("nowhere", directory.file("broken.yaml"));
  const manifests = { "web.yaml": "web", "UPPER.YML": "upper", plain: "plain", "kops.manifest": "kops" };
  for (const [name, pod] of Object.entries(manifests)) directory.write(name, manifest(pod));
  directory.start();
  const pods = Object.values(manifests).map((pod) => `${pod}=busybox:1`);
  await directory.wants(...pods);
  // Once, however often the directory is read.
  directory.write("third.yaml", manifest("third"));
  await directory.wants(...pods, "third=busybox:1");
  for (const name of [...leftovers, "README", "sub.yaml", "broken.yaml"]) {
    const level = name.startsWith(".") ? "debug" : "info";
    expect(
      directory.logger.lines.filter((line) => line.startsWith(level) && line.includes(`"${directory.file(name)}"`)),
    ).toHaveLength(1);
  }
  expect(directory.logger.lines.filter((line) => line.startsWith("info"))).toHaveLength(1);
  expect(directory.logger.lines.join("\n")).toContain(`"${directory.file("sub.yaml")}" (a directory)`);
});

test("one bad file affects no other, is reported once, and its pod stays as it was", async () => {
  const directory = started({ "good.yaml": manifest("good"), "web.yaml": manifest("web") }, { checkFrequencyMs: 20 });
  await directory.wants("good=busybox:1", "web=busybox:1");
  directory.write("web.yaml", manifest("web").slice(0, 60));
  await finds(directory);
  expect(directory.pods).toEqual(["good=busybox:1", "web=busybox:1"]);
  expect([...directory.sets.at(-1)!.stale.keys()]).toEqual(["default/web-node1"]);
  // More reads: nothing is logged again, and one line says what is wrong and what comes of it.
  await directory.readsMore(3);
  const lines = directory.logger.lines.filter((line) => /^(error|warn)/.test(line));
  expect(lines).toEqual([
    expect.stringMatching(/web\.yaml:\d+:\d+: .*; pods that stay as before: default\/web-node1$/),
  ]);

  directory.write("web.yaml", manifest("web", "busybox:2"));
  await directory.wants("good=busybox:1", "web=busybox:2");
  expect(directory.sets.at(-1)!.stale.size).toBe(0);
  expect(directory.history).toEqual(["good=busybox:1 web=busybox:1", "good=busybox:1 web=busybox:2"]);
});

test.each([
  { what: "cut to nothing", text: "" },
  { what: "only blanks", text: " \n\n" },
  { what: "zeros, as after a power cut", text: "\0".repeat(200) },
  {
    what: "a pod without containers",
    text: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: []}\n",
  },
  { what: "another kind", text: "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n" },
])("$what: the pod stays as it was", async ({ text }) => {
  const directory = started({ "web.yaml": manifest("web") });
  directory.write("web.yaml", text);
  await finds(directory);
  expect(directory.history).toEqual(["web=busybox:1"]);
});

test("a mistake in one document delays neither the others nor its pod", async () => {
  const directory = watched();
  const two = (first: string, second: string) => `${manifest("first", first)}---\n${second}`;
  directory.write("both.yaml", two("busybox:1", manifest("second")));
  directory.start();
  await directory.wants("first=busybox:1", "second=busybox:1");
  directory.write("both.yaml", two("busybox:2", manifest("second", "busybox:2", "    imagePullPolicy: Sometimes\n")));
  await directory.wants("first=busybox:2", "second=busybox:1");
  expect([...directory.sets.at(-1)!.stale.keys()]).toEqual(["default/second-node1"]);
});

test("a pod whose file is bad may be moved to a good one", async () => {
  const directory = started({ "a.yaml": manifest("web") });
  directory.write("a.yaml", "kind: [");
  await finds(directory);
  directory.write("b.yaml", manifest("web", "busybox:2"));
  await directory.wants("web=busybox:2");
  expect(directory.sets.at(-1)!.stale.size).toBe(0);
  expect(directory.history).toEqual(["web=busybox:1", "web=busybox:2"]);
});

test("half a file does not count while it is being written, even if it reads well", async () => {
  const clock = new FakeClock(new Date());
  const directory = started({ "web.yaml": manifest("web") }, { clock, checkFrequencyMs: 10 });
  await clock.advance(200);
  expect(directory.pods).toEqual(["web=busybox:1"]);
  const parts = [manifest("web", "busybox:half"), "  - name: second\n", "    image: busybox:1\n"];
  const fd = fs.openSync(directory.file("web.yaml"), "w");
  for (const part of parts) {
    fs.writeSync(fd, part);
    // Not older than the change of its inode, however slow this machine is: it may still be written to.
    const soon = new Date(Date.now() + 1000);
    fs.futimesSync(fd, soon, soon);
    await clock.advance(90);
    expect(directory.pods).toEqual(["web=busybox:1"]);
  }
  fs.closeSync(fd);
  await clock.advance(20);
  expect(directory.sets.at(-1)!.pods[0]!.pod.spec.containers).toHaveLength(2);
});

test("a file that is replaced in one step counts at once", async () => {
  const clock = new FakeClock(new Date());
  const directory = started({ "web.yaml": manifest("web") }, { clock, checkFrequencyMs: 10 });
  await clock.advance(200);
  fs.writeFileSync(join(directory.root, "new.yaml"), manifest("web", "busybox:2"));
  // The kernel's times lag by up to a tick: 10 ms.
  const written = new Date(Date.now() - 100);
  fs.utimesSync(join(directory.root, "new.yaml"), written, written);
  fs.renameSync(join(directory.root, "new.yaml"), directory.file("web.yaml"));
  await clock.advance(10);
  // No more time passes on the clock; the file is read in another thread.
  await until("the new file counts", async () => {
    await clock.advance(0);
    return directory.pods.join() === "web=busybox:2";
  });
});

test("a moved file is the same pod all the time", async () => {
  const directory = started({ "a.yaml": manifest("web") });
  fs.renameSync(directory.file("a.yaml"), directory.file("b.yaml"));
  await until("the new place", () => directory.sets.at(-1)?.pods[0]?.origin === directory.file("b.yaml"));
  expect(directory.history).toEqual(["web=busybox:1"]);
});

test("a file that is written again under another name is the same pod all the time", async () => {
  const clock = new FakeClock(new Date());
  const directory = started({ "a.yaml": manifest("web") }, { clock, checkFrequencyMs: 10 });
  fs.unlinkSync(directory.file("a.yaml"));
  await clock.advance(90);
  fs.writeFileSync(directory.file("b.yaml"), manifest("web"));
  // Not older than the change of its inode: it may still be written to.
  const soon = new Date(Date.now() + 1000);
  fs.utimesSync(directory.file("b.yaml"), soon, soon);
  await clock.advance(500);
  expect(directory.history).toEqual(["web=busybox:1"]);
  expect(directory.sets.at(-1)!.pods[0]!.origin).toBe(directory.file("b.yaml"));
  fs.unlinkSync(directory.file("b.yaml"));
  await clock.advance(1_500);
  expect(directory.pods).toEqual([]);
});

test("rewriting the same bytes, touching and chmod are no change", async () => {
  const directory = started({ "web.yaml": manifest("web") }, { checkFrequencyMs: 10 });
  directory.write("web.yaml", manifest("web"));
  fs.utimesSync(directory.file("web.yaml"), new Date(), new Date());
  fs.chmodSync(directory.file("web.yaml"), 0o600);
  await directory.readsMore(5);
  expect(directory.sets).toHaveLength(1);
});

test("500 files at once, then all edited, then all removed", async () => {
  const directory = watched().start();
  const names = Array.from({ length: 500 }, (_, index) => `pod-${String(index).padStart(3, "0")}`);
  for (const name of names) directory.write(`${name}.yaml`, manifest(name));
  await directory.wants(...names.map((name) => `${name}=busybox:1`));
  for (const name of names) directory.write(`${name}.yaml`, manifest(name, "busybox:2"));
  await directory.wants(...names.map((name) => `${name}=busybox:2`));
  for (const name of names) fs.unlinkSync(directory.file(`${name}.yaml`));
  await directory.wants();
});

test("files are ordered by the bytes of their names, so that the first of two texts for one pod is defined", async () => {
  const directory = watched();
  for (const name of ["b.yaml", "B.yaml", "10.yaml", "9.yaml", "é.yaml"])
    directory.write(name, manifest("x", `i:${name.length}`));
  directory.start();
  const names = directory.sets[0]!.pods.map(({ origin }) => origin.slice(directory.path.length + 1));
  expect(names.join(" ")).toBe("10.yaml 9.yaml B.yaml b.yaml é.yaml");
});

test("many manifests are taken in several turns of the event loop, and emitted together", async () => {
  const directory = watched();
  const names = Array.from({ length: 200 }, (_, index) => `p${index}`);
  for (const name of names) directory.write(`${name}.yaml`, manifest(name));
  directory.start();
  expect(directory.sets).toEqual([]);
  await directory.wants(...names.map((name) => `${name}=busybox:1`));
  expect(directory.history).toHaveLength(1);
});

test("a file of 10 MiB is refused without being read", async () => {
  const directory = watched();
  directory.write("big.yaml", "");
  fs.truncateSync(directory.file("big.yaml"), 10 * 1024 * 1024);
  directory.write("web.yaml", manifest("web"));
  directory.start();
  await directory.wants("web=busybox:1");
  expect(directory.sets.at(-1)!.findings[0]!.message).toContain("too large");
});

test("an unreadable file keeps its pod and reports why", async () => {
  const directory = started({ "web.yaml": manifest("web") });
  // A link to itself: unreadable for root too.
  fs.symlinkSync("web.yaml", directory.file("loop"));
  fs.renameSync(directory.file("loop"), directory.file("web.yaml"));
  await finds(directory, "cannot be read");
  expect(directory.history).toEqual(["web=busybox:1"]);
  expect([...directory.sets.at(-1)!.stale.keys()]).toEqual(["default/web-node1"]);
});

test("a directory that cannot be read keeps its pods and is reported once", async () => {
  const directory = started({ "web.yaml": manifest("web") }, { checkFrequencyMs: 10 });
  await directory.wants("web=busybox:1");
  // A link to itself: unreadable for root too.
  fs.renameSync(directory.path, join(directory.root, "away"));
  fs.symlinkSync("manifests", directory.path);
  await fails(directory);
  expect(directory.pods).toEqual(["web=busybox:1"]);
  await directory.readsMore(3);
  expect(directory.logger.lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
  fs.unlinkSync(directory.path);
  fs.renameSync(join(directory.root, "away"), directory.path);
  await until("recovery", () => directory.source.status().state === "ok");
  expect(directory.history).toEqual(["web=busybox:1"]);
});

test("at start a bad file falls back to its last good text; without one the set is not complete", async () => {
  const directory = watched({ lastKnownGood: () => new Map([[directory.file("web.yaml"), good]]) });
  writeOld(directory.file("web.yaml"), "kind: [");
  directory.start();
  expect(directory.pods).toEqual(["web=busybox:1"]);
  expect(directory.sets[0]!.isComplete).toBe(true);

  const unknown = watched();
  writeOld(unknown.file("web.yaml"), "kind: [");
  unknown.start();
  expect(unknown.sets[0]).toMatchObject({ pods: [], isComplete: false });
});

test("a file whose text was never good has no last good text", () => {
  const nothing = { pods: [], configMaps: [], secrets: [] };
  const directory = watched({ lastKnownGood: () => new Map([[directory.file("web.yaml"), nothing]]) });
  writeOld(directory.file("web.yaml"), "not a manifest");
  directory.start();
  expect(directory.sets[0]).toMatchObject({ pods: [], isComplete: true });
  expect(directory.logger.lines.filter((line) => line.startsWith("warn"))).toEqual([]);
});

test("at start an unreadable directory falls back to the last good set, else emits nothing", async () => {
  const directory = watched({ path: "loop", lastKnownGood: () => new Map([["web.yaml", good]]) });
  fs.symlinkSync("loop", directory.path);
  directory.start();
  expect(directory.pods).toEqual(["web=busybox:1"]);
  expect(directory.source.status().state).toBe("restored");
  expect(directory.logger.lines).toContain(
    `warn Manifests: the last good ones of "${directory.path}", from before this start, are used`,
  );

  const silent = watched({ path: "loop" });
  fs.symlinkSync("loop", silent.path);
  silent.start();
  expect(silent.sets).toEqual([]);
});

test("without any event the timer finds the change", async () => {
  const clock = new FakeClock(new Date());
  const directory = watched({ clock, checkFrequencyMs: 20_000 });
  directory.start();
  directory.write("web.yaml", manifest("web"));
  await clock.advance(20_000);
  expect(directory.pods).toEqual(["web=busybox:1"]);
});

test("a pipe is skipped in a directory, and is an error as the path itself", async () => {
  const directory = watched();
  const pipe = directory.file("pipe.yaml");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  expect((await directory.once()).findings).toEqual([]);
  const given = watched({ path: "pipe.yaml" });
  expect(Bun.spawnSync(["mkfifo", given.path]).exitCode).toBe(0);
  const { findings } = await given.once();
  expect(findings.map(({ severity, message }) => [severity, message])).toEqual([["error", "is not a regular file"]]);
});

test("readOnce reads what is there; a path that does not exist is an error", async () => {
  const directory = watched();
  directory.write("web.yaml", manifest("web"));
  const set = await directory.once();
  expect(podsOf(set)).toEqual(["web=busybox:1"]);
  const missing = watched({ path: "nothing" });
  await expect(missing.once()).rejects.toThrow(`"${missing.path}" does not exist`);
  const loop = watched({ path: "loop" });
  fs.symlinkSync("loop", loop.path);
  await expect(loop.once()).rejects.toThrow(`"${loop.path}" cannot be read`);
  expect([...missing.logger.lines, ...loop.logger.lines]).toEqual([]);
});
