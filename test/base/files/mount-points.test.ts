import { expect, test } from "bun:test";
import { findFileSystem, isSameFileSystem, parseMountPoints } from "../../../src/base/files/mount-points.ts";

test("mount points of a mountinfo text, spaces and all", () => {
  const text = [
    "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw",
    "40 27 0:35 / /var/lib/a\\040b\\134c rw - tmpfs tmpfs rw",
    "",
  ].join("\n");
  expect(parseMountPoints(text)).toEqual(["/", "/var/lib/a b\\c"]);
});

test("a path lies on the file system of the longest mount point above it", () => {
  const root = findFileSystem("/");
  const proc = findFileSystem("/proc/self");
  expect(root.mountPoint).toBe("/");
  expect(proc.mountPoint).toBe("/proc");
  expect(isSameFileSystem(proc, findFileSystem("/proc/sys"))).toBe(true);
  expect(isSameFileSystem(root, proc)).toBe(false);
});

test("after a reboot the device number says nothing, the mount point does", () => {
  const place = { mountPoint: "/data", device: 1, bootId: "a" };
  expect(isSameFileSystem(place, { ...place, device: 2 })).toBe(false);
  expect(isSameFileSystem(place, { ...place, device: 2, bootId: "b" })).toBe(true);
  expect(isSameFileSystem(place, { ...place, mountPoint: "/", bootId: "b" })).toBe(false);
});
