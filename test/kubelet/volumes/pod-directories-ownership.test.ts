import { expect, test } from "bun:test";
import { chmodSync, lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { applyFsGroup } from "../../../src/kubelet/volumes/pod-directories.ts";
import { makeDeepTree } from "../../support/deep-tree.ts";
import { isRoot, tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

const GROUP = 3333;
const forRoot = test.if(isRoot);

function aTree() {
  const base = tempDir();
  const root = join(base, "volume");
  mkdirSync(join(root, "d/e"), { recursive: true });
  writeFileSync(join(root, "f"), "", { mode: 0o600 });
  writeFileSync(join(root, "d/run"), "", { mode: 0o755 });
  writeFileSync(join(base, "outside"), "", { mode: 0o600 });
  symlinkSync(join(base, "outside"), join(root, "link"));
  return { base, root };
}

const ownerAndMode = (path: string) => {
  const { gid, mode } = lstatSync(path);
  return `${gid} ${(mode & 0o7777).toString(8)}`;
};

forRoot("a writable volume: group, rw for it, setgid and x on directories", () => {
  const { base, root } = aTree();
  applyFsGroup(root, { fsGroup: GROUP, readOnly: false });
  expect(ownerAndMode(root)).toBe(`${GROUP} 2775`);
  expect(ownerAndMode(join(root, "d/e"))).toBe(`${GROUP} 2775`);
  expect(ownerAndMode(join(root, "f"))).toBe(`${GROUP} 660`);
  expect(ownerAndMode(join(root, "d/run"))).toBe(`${GROUP} 775`);
  expect(lstatSync(join(root, "link")).gid).toBe(GROUP);
  expect(ownerAndMode(join(base, "outside"))).toBe("0 600");
});

forRoot("a read-only volume: the group may read", () => {
  const { root } = aTree();
  applyFsGroup(root, { fsGroup: GROUP, readOnly: true });
  expect(ownerAndMode(join(root, "f"))).toBe(`${GROUP} 640`);
  expect(ownerAndMode(join(root, "d"))).toBe(`${GROUP} 2755`);
});

forRoot("OnRootMismatch believes the top directory, Always does not", () => {
  const { root } = aTree();
  applyFsGroup(root, { fsGroup: GROUP, readOnly: false });
  writeFileSync(join(root, "new"), "", { mode: 0o600 });
  applyFsGroup(root, { fsGroup: GROUP, readOnly: false, policy: "OnRootMismatch" });
  expect(statSync(join(root, "new")).mode & 0o777).toBe(0o600);
  applyFsGroup(root, { fsGroup: GROUP, readOnly: false, policy: "Always" });
  expect(statSync(join(root, "new")).mode & 0o777).toBe(0o660);
  applyFsGroup(root, { fsGroup: GROUP + 1, readOnly: false, policy: "OnRootMismatch" });
  expect(ownerAndMode(join(root, "new"))).toBe(`${GROUP + 1} 660`);
});

forRoot("a tree that is too deep is refused before descriptors run out", () => {
  const { root } = aTree();
  makeDeepTree(join(root, "d"), 1100);
  expect(() => applyFsGroup(root, { fsGroup: GROUP, readOnly: false })).toThrow("more than 1000 levels");
  // Faster than the clean-up of the temporary directory, on a busy machine by many seconds.
  Bun.spawnSync(["rm", "-rf", root]);
});

forRoot("without the permission to change a group the error says what is needed", () => {
  const { base, root } = aTree();
  const onlyLink = join(base, "only-link");
  mkdirSync(onlyLink);
  symlinkSync("nowhere", join(onlyLink, "link"));
  chmodSync(base, 0o755);
  const setUser = process.seteuid;
  if (!setUser) throw new Error("no seteuid here");
  setUser(65534);
  try {
    for (const volume of [root, onlyLink]) {
      expect(() => applyFsGroup(volume, { fsGroup: GROUP, readOnly: false })).toThrow(
        "cannot give the volume to fsGroup 3333: it takes a kubelet that runs as root",
      );
    }
  } finally {
    setUser(0);
  }
});
