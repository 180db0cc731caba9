import { expect, test } from "bun:test";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { readBoundedStream } from "../../../src/base/files/bounded-stream.ts";
import { isPipe, openPipe } from "../../../src/base/files/pipe.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("a pipe is read to its end, and one that nothing writes to is given up", async () => {
  const pipe = join(tempDir(), "pipe");
  expect(isPipe(pipe)).toBe(false);
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  expect(isPipe(pipe)).toBe(true);
  const writer = Bun.spawn(["sh", "-c", 'echo text > "$1"', "sh", pipe]);
  expect(await readBoundedStream(await openPipe(pipe), 100)).toBe("text\n");
  await writer.exited;
  await expect(openPipe(pipe, 10)).rejects.toThrow("is a pipe that no program opened for 0.01 s");
  // The open that waits ends.
  appendFileSync(pipe, "");
});
