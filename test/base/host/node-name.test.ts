import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { keepNodeName, nodeNameOfPod, readKeptNames } from "../../../src/base/host/node-name.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();
const machine = hostname().toLowerCase();

test("a machine that is renamed keeps the name under which its root directory is used", () => {
  const root = tempDir();
  mkdirSync(join(root, "state"));
  writeFileSync(join(root, "state/node-name.json"), '{"owner":"old","name":"old","former":[]}');
  const { name, notices } = keepNodeName(root, "");
  expect(name).toBe("old");
  expect(notices).toEqual([
    `This machine is called "${machine}" now; the node stays "old", so that no pod is restarted. To rename it, set --hostname-override=${machine}`,
  ]);
});

test("--hostname-override renames the node; containers and state keep the first name", () => {
  const root = tempDir();
  expect(keepNodeName(root, "")).toEqual({ name: machine, notices: [] });
  expect(keepNodeName(root, "")).toEqual({ name: machine, notices: [] });
  expect(keepNodeName(root, "B").notices[0]).toContain(`The node was "${machine}" and is "b" now`);
  expect(keepNodeName(root, "c").name).toBe("c");
  expect(keepNodeName(root, "b").name).toBe("b");
  expect(readKeptNames(root, "any")).toEqual({ owner: machine, name: "b", former: ["c", machine], isChosen: true });
  expect(keepNodeName(root, "")).toMatchObject({ name: "b" });
  expect(readKeptNames(root, "any").isChosen).toBeUndefined();
  // Containers have the first name on their labels.
  const names = ["web-b", "web-c", `web-${machine}`, "web-7d9"];
  expect(names.map((pod) => nodeNameOfPod(root, pod, machine))).toEqual(["b", "c", machine, machine]);
});

test("a damaged file counts as none, and one that cannot be written is reported", () => {
  const root = tempDir();
  mkdirSync(join(root, "state"));
  writeFileSync(join(root, "state/node-name.json"), '{"owner":');
  expect(readKeptNames(root, "a")).toEqual({ owner: "a", name: "a", former: [] });
  writeFileSync(join(root, "file"), "");
  chmodSync(join(root, "file"), 0o400);
  expect(keepNodeName(join(root, "file"), "a").notices[0]).toContain("The name of the node cannot be kept");
});

test("names that the disk does not give are not replaced by another one", () => {
  const root = tempDir();
  mkdirSync(join(root, "state"));
  symlinkSync("node-name.json", join(root, "state/node-name.json"));
  for (const read of [() => readKeptNames(root, "a"), () => keepNodeName(root, "a")]) {
    expect(read).toThrow("which keeps the name of this node: ELOOP");
  }
});

test("a new name that cannot be kept is not used: a later start would run the pods of this one twice", () => {
  const root = tempDir();
  keepNodeName(root, "a");
  mkdirSync(join(root, "state/node-name.json.tmp"));
  expect(keepNodeName(root, "b")).toEqual({
    name: "a",
    notices: [expect.stringContaining('The node stays "a": its new name cannot be kept')],
  });
});
