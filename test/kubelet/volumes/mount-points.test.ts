import { describe, expect, test } from "bun:test";
import { lstatSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Volume } from "../../../src/base/api/pod.ts";
import { computeMountPointNames, findNestedMounts, makeMountPoint } from "../../../src/kubelet/volumes/mount-points.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { aManager, firstContainer, objects, podWith, SIGNAL } from "../../support/volume-world.ts";

const tempDir = tempDirs();

test.each<{ targets: string[]; nested: [outer: number, inner: number, relative: string][] }>([
  { targets: ["/a", "/b", "/ab"], nested: [] },
  { targets: ["/a/b/c", "/a"], nested: [[1, 0, "b/c"]] },
  {
    targets: ["/a", "/a/b", "/a/b/c/d"],
    nested: [
      [0, 1, "b"],
      [1, 2, "c/d"],
    ],
  },
  { targets: ["/a/", "//a/./x/", "/a"], nested: [[0, 1, "x"]] },
  { targets: ["/", "/a"], nested: [] },
])("of $targets lie in others: $nested", ({ targets, nested }) => {
  expect(findNestedMounts(targets)).toEqual(nested.map(([outer, inner, relative]) => ({ outer, inner, relative })));
});

test("the names at which containers mount something into a volume", () => {
  const pod = aPod({
    initContainers: [
      aContainer({
        volumeMounts: [
          { name: "c", mountPath: "/i" },
          { name: "e", mountPath: "/i/init" },
        ],
      }),
    ],
    containers: [
      aContainer({
        volumeMounts: [
          { name: "e", mountPath: "etc/app/deep/er" },
          { name: "c", mountPath: "/etc/app" },
          { name: "e", mountPath: "/e" },
          { name: "c", mountPath: "/e/not-in-c" },
        ],
      }),
    ],
  });
  expect([...computeMountPointNames(pod, "c")].sort()).toEqual(["deep", "init"]);
});

describe("a mount point", () => {
  test("is made once, as a directory or a file, with its parents", () => {
    const volume = tempDir();
    for (const _ of [1, 2]) {
      makeMountPoint(volume, "d/e", true);
      makeMountPoint(volume, "f", false);
      makeMountPoint(volume, "g/h", false);
    }
    expect(lstatSync(join(volume, "d/e")).isDirectory()).toBe(true);
    expect(lstatSync(join(volume, "d")).mode & 0o777).toBe(0o755);
    expect(lstatSync(join(volume, "f")).isFile()).toBe(true);
    expect(lstatSync(join(volume, "g/h")).mode & 0o777).toBe(0o644);
  });

  test("changes its kind with the manifest", () => {
    const volume = tempDir();
    makeMountPoint(volume, "x", true);
    makeMountPoint(volume, "x", false);
    expect(lstatSync(join(volume, "x")).isFile()).toBe(true);
    makeMountPoint(volume, "x", true);
    expect(lstatSync(join(volume, "x")).isDirectory()).toBe(true);
  });

  test("is not made where the volume has a file or directory of its own", () => {
    const volume = tempDir();
    mkdirSync(join(volume, "..2026/deep"), { recursive: true });
    symlinkSync("..2026", join(volume, "..data"));
    symlinkSync("..data/deep", join(volume, "deep"));
    makeMountPoint(volume, "deep", true);
    makeMountPoint(volume, "deep/x", true);
    expect(readdirSync(join(volume, "..2026/deep"))).toEqual([]);
  });
});

test("what is mounted into a ConfigMap stays through every refresh, and goes when nothing is mounted there any more", async () => {
  const { manager, logger } = aManager(tempDir(), { mounts: false });
  const volumes: Volume[] = [
    { name: "c", configMap: { name: "cfg", defaultMode: 0o644 } },
    { name: "e", emptyDir: {} },
    { name: "h", hostPath: { path: "/etc/hostname", type: "" } },
  ];
  const into = [
    { name: "e", mountPath: "/c/data" },
    { name: "h", mountPath: "/c/file" },
  ];
  const pod = podWith(volumes, {}, into);
  await manager.setUp(pod, objects("one"), SIGNAL);
  await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL);
  const directory = manager.directories("uid1").volume("configmap", "c");
  const names = () => readdirSync(directory).filter((name) => !name.startsWith(".."));
  expect(names().sort()).toEqual(["data", "file", "k"]);
  expect(lstatSync(join(directory, "data")).isDirectory()).toBe(true);
  expect(lstatSync(join(directory, "file")).isFile()).toBe(true);
  const { ino } = lstatSync(join(directory, "data"));

  for (const _ of [1, 2]) await manager.refresh(pod, objects("two"), SIGNAL);
  expect(logger.lines).toEqual(['info Volume "c" of pod "default/web-node1" was brought up to date']);
  expect(lstatSync(join(directory, "data")).ino).toBe(ino);
  expect(lstatSync(join(directory, "file")).isFile()).toBe(true);

  await manager.refresh(podWith(volumes), objects("two"), SIGNAL);
  expect(names()).toEqual(["k"]);
});
