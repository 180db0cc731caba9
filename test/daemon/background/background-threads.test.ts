import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TaskRequest, TaskResponse } from "../../../src/base/concurrency/worker-pool.ts";
import { SystemClock } from "../../../src/base/host/system-clock.ts";
import { BackgroundThreads } from "../../../src/daemon/background/background-threads.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";
import { readManifests } from "../../../src/sources/manifest-files.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();
const background = new BackgroundThreads(new SystemClock());
const threads = background.tasks;

test("results and errors arrive as if the work was done here", async () => {
  const base = tempDir();
  mkdirSync(join(base, "tree/a"), { recursive: true });
  expect(await threads.isDirectory(base)).toBe(true);
  expect(await threads.isDirectory(join(base, "missing"))).toBeUndefined();
  expect(await threads.prepareHostPath({ path: join(base, "tree"), type: "File" })).toContain("is not a file");
  await threads.removeTrees([join(base, "tree")]);
  expect(readdirSync(base)).toEqual([]);
  // Not `rejects`, which waits without taking messages of other threads.
  const error = await threads.applyFsGroup(join(base, "missing"), { fsGroup: 1, readOnly: false }).catch((why) => why);
  expect(error).toMatchObject({ code: "ENOENT" });
});

test("manifests are read and parsed as in this thread", async () => {
  const base = tempDir();
  const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}, {}]}\n";
  writeFileSync(join(base, "web.yaml"), text);
  expect(await threads.readManifests(base, new Map())).toEqual(readManifests(base, new Map()));
  for (const each of [text, text.replace(", {}", "")]) {
    const how = { file: "web.yaml", nodeName: "node1", source: "file" } as const;
    expect(await threads.readManifest(Buffer.from(each), how)).toEqual(readManifest(Buffer.from(each), how));
  }
});

test("an exit waits for the files that are being written", async () => {
  const base = tempDir();
  void threads.replaceFile(join(base, "state/a.json"), "{}", { durable: true });
  await background.settled();
  expect(readdirSync(join(base, "state"))).toEqual(["a.json"]);
});

test("a file that is read again and again starts a thread only when it has changed", async () => {
  const path = join(tempDir(), "kubelet.crt");
  const clock = new FakeClock();
  const read: string[] = [];
  const { repeatedFiles } = new BackgroundThreads(clock, () => {
    let respond: (response: TaskResponse) => void = () => {};
    return {
      postMessage: ({ id, task }: TaskRequest) => {
        read.push(task);
        respond({ id, ok: true, value: readFileSync(path, "utf8") });
      },
      onResponse: (listener) => {
        respond = listener;
      },
      onError: () => {},
      terminate: () => {},
    };
  });
  const readAgain = () => repeatedFiles.readText(path, 100);
  writeFileSync(path, "one");
  expect([await readAgain(), await readAgain(), read.length]).toEqual(["one", "one", 1]);
  writeFileSync(path, "two!");
  expect([await readAgain(), await readAgain(), read.length]).toEqual(["two!", "two!", 2]);
});

test("timers run between responses that lead to further requests", async () => {
  const base = tempDir();
  await Promise.all([threads.isDirectory(base), threads.isDirectory(base)]);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const work = async () => {
    for (let count = 0; count < 30; count++) {
      await threads.isDirectory(base);
      const endMs = performance.now() + 5;
      while (performance.now() < endMs);
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(20);
});
