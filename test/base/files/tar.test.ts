import { expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { tarArchive } from "../../../src/base/files/tar.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("tar(1) reads what was written", async () => {
  const directory = tempDir();
  const big = new Uint8Array(1025).fill(65);
  const archive = tarArchive([
    { path: "d/", mode: 0o700, data: new Uint8Array() },
    { path: "d/run", mode: 0o755, data: new TextEncoder().encode("hello") },
    { path: "big", mode: 0o640, data: big },
  ]);
  expect(archive.length % 512).toBe(0);
  const tar = Bun.spawn(["tar", "-xpf", "-", "-C", directory], { stdin: archive, stderr: "pipe" });
  expect({ code: await tar.exited, stderr: await new Response(tar.stderr).text() }).toEqual({ code: 0, stderr: "" });
  expect(readFileSync(join(directory, "d/run"), "utf8")).toBe("hello");
  expect(readFileSync(join(directory, "big")).equals(big)).toBe(true);
  expect(statSync(join(directory, "d/run")).mode & 0o777).toBe(0o755);
  expect(statSync(join(directory, "d")).mode & 0o777).toBe(0o700);
});

test("the same entries are the same bytes", () => {
  const entries = [{ path: "a", mode: 0o644, data: new Uint8Array(3) }];
  expect(Buffer.from(tarArchive(entries)).equals(tarArchive(entries))).toBe(true);
});

test("a path that ustar cannot hold is refused", () => {
  expect(() => tarArchive([{ path: "x".repeat(101), mode: 0o644, data: new Uint8Array() }])).toThrow("100 bytes");
});
