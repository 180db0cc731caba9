import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runStep, within } from "../../../src/daemon/install/run-install.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("links below another root lead nowhere outside, and steps follow them there", async () => {
  const outside = tempDir();
  const root = tempDir();
  mkdirSync(join(root, "private/etc"), { recursive: true });
  symlinkSync("/private/etc", join(root, "etc"));
  symlinkSync(`../../../..${outside}`, join(root, "up"));
  symlinkSync(outside, join(root, "opt"));
  expect(within(root, "/etc/x")).toBe(join(root, "private/etc/x"));
  expect(within(root, "/up/x")).toBe(join(root, outside, "x"));
  expect(within(root, "/opt/x")).toBe(join(root, outside, "x"));
  expect(within("", "/etc/x")).toBe("/etc/x");

  await runStep({ kind: "directory", path: "/opt/bin" }, root);
  await runStep({ kind: "write", path: "/opt/bin/file", mode: 0o600, text: "here" }, root);
  await runStep({ kind: "link", path: "/etc/wanted", to: "/opt/bin/file" }, root);
  expect(readFileSync(join(root, outside, "bin/file"), "utf8")).toBe("here");
  expect(readlinkSync(join(root, "private/etc/wanted"))).toBe("/opt/bin/file");
  expect(existsSync(join(outside, "bin"))).toBe(false);

  writeFileSync(join(outside, "victim"), "kept");
  symlinkSync(join(outside, "victim"), join(root, "private/etc/file"));
  await runStep({ kind: "write", path: "/etc/file", mode: 0o600, text: "new" }, root);
  await runStep({ kind: "remove", path: "/etc/file" }, root);
  expect(readFileSync(join(outside, "victim"), "utf8")).toBe("kept");
});
