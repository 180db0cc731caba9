import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mayLowerOomScores, readHugePages } from "../../../src/base/host/node-info.ts";
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

const status = (effective: string, bounding: string) => `Name:\tx\nCapEff:\t${effective}\nCapBnd:\t${bounding}\n`;
const ALL = "000001ffffffffff";
const WITHOUT = "000001fffeffffff";
const NONE = "0000000000000000";

test.each<[string, boolean, string, string, boolean]>([
  ["root on a machine", true, status(ALL, ALL), status(ALL, ALL), true],
  ["root in a container that lacks it", true, status(WITHOUT, WITHOUT), status(ALL, ALL), false],
  ["a user with an engine that runs as root", false, status(NONE, NONE), status(ALL, ALL), true],
  ["a user where not even init may", false, status(NONE, WITHOUT), status(ALL, WITHOUT), false],
  ["a kernel that says nothing", true, "", "", true],
])("%s", (_, isRoot, own, init, want) => expect(mayLowerOomScores(isRoot, own, init)).toBe(want));
