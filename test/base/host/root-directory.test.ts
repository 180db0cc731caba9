import { expect, test } from "bun:test";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { prepareRootDirectory } from "../../../src/base/host/root-directory.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("is created with its parents, for this user alone, and used again", () => {
  const path = join(tempDir(), "var/lib/kubelet");
  prepareRootDirectory(path);
  prepareRootDirectory(path);
  expect(statSync(path).mode & 0o777).toBe(0o700 & ~process.umask());
});

test.each([
  ["a file", "file", "a part of the path is not a directory. Remove it, or set another directory with --root-dir"],
  ["a directory below a file", "file/root", "a part of the path is not a directory. Remove it, or set"],
  ["a place where nothing can be created", "/proc/nothing", "it cannot be created there. Set another directory"],
])("%s is refused with the remedy", (_, name, why) => {
  const dir = tempDir();
  writeFileSync(join(dir, "file"), "");
  const path = name.startsWith("/") ? name : join(dir, name);
  expect(() => prepareRootDirectory(path)).toThrow(`The root directory "${path}" cannot be used: ${why}`);
});

test.skipIf(process.getuid?.() !== 0)("a directory of another user is refused before anything is written", async () => {
  // Read while it may: the project may lie where only root gets to, as below /root.
  const script = `const { prepareRootDirectory } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/base/host/root-directory.ts"))});
    process.setuid(65534);
    try { prepareRootDirectory("/root"); } catch (error) { console.log(error.constructor.name, error.message); }`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toStartWith(
    'RootDirectoryError The root directory "/root" cannot be used: permission denied.',
  );
});
