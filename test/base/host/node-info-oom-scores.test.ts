import { expect, test } from "bun:test";
import { mayLowerOomScores } from "../../../src/base/host/node-info.ts";

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
