import { expect, test } from "bun:test";
import { parseUpperDir, readWritableLayerPath } from "../../src/docker/docker-pods.ts";

const OVERLAY =
  "651 570 0:59 / / rw,relatime - overlay overlay rw,lowerdir=/d/snapshots/808/fs:/d/snapshots/4/fs,upperdir=/d/snapshots/810/fs,workdir=/d/snapshots/810/work";
const PROC = "652 651 0:61 / /proc rw,nosuid - proc proc rw";

test.each([
  { when: "an overlay", mountinfo: `${OVERLAY}\n${PROC}\n`, want: "/d/snapshots/810/fs" },
  {
    when: "the last of two roots counts",
    mountinfo: `1 1 8:1 / / rw - ext4 /dev/vda rw\n${OVERLAY}\n`,
    want: "/d/snapshots/810/fs",
  },
  { when: "a blank in it", mountinfo: OVERLAY.replaceAll("/d/", "/my\\040disk/"), want: "/my disk/snapshots/810/fs" },
  { when: "an overlay without an upper", mountinfo: "1 1 0:5 / / ro - overlay overlay ro,lowerdir=/a:/b", want: "" },
  { when: "another file system", mountinfo: `1 1 8:1 / / rw - ext4 /dev/vda rw\n${PROC}\n`, want: "" },
  { when: "nothing", mountinfo: "", want: "" },
])("$when", ({ mountinfo, want }) => {
  expect(parseUpperDir(mountinfo)).toBe(want);
});

test("a process that is not the container's is not read", () => {
  expect(readWritableLayerPath(process.pid, "a".repeat(64))).toBe("");
  expect(readWritableLayerPath(0, "a".repeat(64))).toBe("");
});
