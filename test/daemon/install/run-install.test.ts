import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readInstallState, runStep, within } from "../../../src/daemon/install/run-install.ts";
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

test("a file in place of a directory is named", async () => {
  const root = tempDir();
  writeFileSync(join(root, "usr"), "");
  const step = runStep({ kind: "directory", path: "/usr/local/bin" }, root);
  await expect(step).rejects.toThrow(`"${root}/usr/local/bin" cannot be made: a part of the path is not a directory`);
});

test("what links below another root lead to outside is neither read nor kept", async () => {
  const outside = tempDir();
  const root = tempDir();
  for (const path of ["usr/local/bin", "etc/kubernetes"]) mkdirSync(join(root, path), { recursive: true });
  const program = join(outside, "program");
  writeFileSync(program, "of this machine", { mode: 0o600 });
  symlinkSync(program, join(root, "usr/local/bin/kubelet-ts"));
  symlinkSync(outside, join(root, "etc/kubernetes/manifests"));
  const target = { destdir: root, isRoot: true, home: "/root", user: "root" };
  const settings = { rootDir: "/var/lib/kubelet", dockerEndpoint: "" };
  const state = await readInstallState(target, "systemd", settings);
  expect({ ...state, ownHash: "" }).toMatchObject({ installedHash: undefined, hasManifestDir: false });
  const { binary, previousBinary } = state.paths;
  const kept = runStep({ kind: "keep", from: binary, to: previousBinary }, root);
  await expect(kept).rejects.toThrow("no such file");
  expect(statSync(program).mode & 0o777).toBe(0o600);
});
