import { expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { prepareRootDirectory } from "../../../src/base/host/root-directory.ts";
import { canMount, Mounter, sweepMountTests } from "../../../src/kubelet/volumes/mounter.ts";
import { mounting, tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test.if(mounting.ok)("mounts, lists and unmounts; twice is not an error", async () => {
  const mounter = new Mounter();
  const base = tempDir();
  const target = join(base, "with space");
  mkdirSync(target);
  mkdirSync(`${target}-other`);
  await mounter.mountFileSystem("tmpfs", target, ["size=4096"]);
  await mounter.mountFileSystem("tmpfs", `${target}-other`, []);
  expect(mounter.listBeneath(target)).toEqual([target]);
  expect(mounter.listBeneath(base)).toHaveLength(2);
  await mounter.unmount(target);
  await mounter.unmount(target);
  expect(mounter.listBeneath(target)).toEqual([]);
  await mounter.unmount(`${target}-other`);
});

test("what mount(8) says is in the error", async () => {
  const missing = join(tempDir(), "missing");
  const error = await new Mounter().mountFileSystem("tmpfs", missing, []).catch((thrown) => thrown);
  expect(error.message).toStartWith(`mount -t tmpfs tmpfs ${missing}: `);
});

test.if(mounting.ok)("a root directory that is read-only is used without mounts, with a warning", async () => {
  const mounter = new Mounter();
  const root = tempDir();
  await mounter.mountFileSystem("tmpfs", root, ["ro"]);
  expect(prepareRootDirectory(root)).toContain("is on a read-only file system");
  expect(await canMount(root, mounter)).toEqual({ ok: false, why: expect.stringContaining("EROFS") });
});

test("what a killed process left of its mount test is swept", async () => {
  const root = tempDir();
  mkdirSync(join(root, ".mount-test-4242"));
  mkdirSync(join(root, "pods"));
  const unmounted: string[] = [];
  await sweepMountTests(root, { unmount: async (target) => void unmounted.push(target) });
  expect(unmounted).toEqual([join(root, ".mount-test-4242")]);
  expect(readdirSync(root)).toEqual(["pods"]);
});
