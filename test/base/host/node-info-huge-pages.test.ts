import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readHugePages } from "../../../src/base/host/node-info.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("huge pages by resource name", () => {
  const directory = tempDir();
  for (const [name, count] of [
    ["hugepages-2048kB", "3"],
    ["hugepages-1048576kB", "0"],
    ["hugepages-64kB", "1"],
  ] as const) {
    mkdirSync(join(directory, name));
    writeFileSync(join(directory, name, "nr_hugepages"), `${count}\n`);
  }
  expect(readHugePages(directory)).toEqual({
    "hugepages-2Mi": 3 * 2 * 1024 * 1024,
    "hugepages-1Gi": 0,
    "hugepages-64Ki": 65_536,
  });
});

test("a kernel without them", () => {
  expect(readHugePages(join(tempDir(), "none"))).toEqual({});
});
