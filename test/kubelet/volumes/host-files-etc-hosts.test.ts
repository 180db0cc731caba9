import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Pod } from "../../../src/base/api/pod.ts";
import { type HostsFileRequest, writeHostsFile } from "../../../src/kubelet/volumes/host-files.ts";
import { PodDirectories } from "../../../src/kubelet/volumes/pod-directories.ts";
import { aPod } from "../../support/builders.ts";
import { mounting, tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

function directories() {
  const made = new PodDirectories(tempDir(), "uid1");
  made.create();
  return made;
}

function write({ etcHosts }: PodDirectories, pod: Pod, request: Omit<HostsFileRequest, "spec">): string {
  writeHostsFile(etcHosts, { spec: pod.spec, ...request });
  return etcHosts;
}

const NAMES = { hostname: "web-node1", domain: "" };

test("etc-hosts is 0644 and is rewritten in place, since containers hold the file", () => {
  const place = directories();
  const pod = aPod({ hostAliases: [{ ip: "192.0.2.9", hostnames: ["nine"] }] });
  const path = write(place, pod, { podIps: ["10.0.0.1"], names: NAMES });
  expect(path).toBe(place.etcHosts);
  expect(readFileSync(path, "utf8")).toEndWith(
    "10.0.0.1\tweb-node1\n\n# Entries added by HostAliases.\n192.0.2.9\tnine\n",
  );
  const { ino, mode } = statSync(path);
  expect(mode & 0o777).toBe(0o644);
  write(place, pod, { podIps: ["10.0.0.2"], names: NAMES });
  expect(readFileSync(path, "utf8")).toContain("10.0.0.2\tweb-node1\n");
  expect(statSync(path).ino).toBe(ino);
});

test("a program that reads it meanwhile never misses a line that stays", async () => {
  const place = directories();
  const rewrite = (index: number) => {
    const hostAliases = [{ ip: "192.0.2.9", hostnames: index % 2 === 0 ? ["nine"] : ["nine", "neuf"] }];
    return write(place, aPod({ hostAliases }), { podIps: ["10.0.0.1"], names: NAMES });
  };
  const code = `let missed = 0; process.stdin.on("end", () => { console.log(missed); process.exit(); }).resume();
    const look = () => { for (let i = 0; i < 100; i++) missed += !fs.readFileSync(process.argv[1], "utf8").includes("nine"); setImmediate(look); };
    look(); console.log("ready");`;
  const argv = [process.execPath, "-e", `const fs = require("node:fs"); ${code}`, rewrite(0)];
  const reader = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe" });
  const output = reader.stdout.getReader();
  await output.read();
  for (let index = 0; index < 1_500; index++) rewrite(index);
  await reader.stdin.end();
  expect(new TextDecoder().decode((await output.read()).value)).toBe("0\n");
});

test("what an application wrote into it stays while nothing else changes", () => {
  const place = directories();
  const rewrite = () => write(place, aPod(), { podIps: ["10.0.0.1"], names: NAMES });
  const { mtimeMs } = statSync(rewrite());
  rewrite();
  expect(statSync(place.etcHosts).mtimeMs).toBe(mtimeMs);
});

test("with host networking the node's file is copied", () => {
  const place = directories();
  const nodeHostsPath = join(tempDir(), "hosts");
  writeFileSync(nodeHostsPath, "127.0.0.1 localhost node1\n");
  write(place, aPod({ hostNetwork: true }), { podIps: ["192.0.2.1"], names: NAMES, nodeHostsPath });
  expect(readFileSync(place.etcHosts, "utf8")).toBe(
    "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost node1\n",
  );
});

test("whatever a container makes of it: a file of 8 GB is not read, a link not followed", () => {
  const place = directories();
  const rewrite = () => write(place, aPod(), { podIps: ["10.0.0.1"], names: NAMES });
  const text = readFileSync(rewrite(), "utf8");
  const { ino } = statSync(place.etcHosts);
  truncateSync(place.etcHosts, 8 * 1024 ** 3);
  expect(readFileSync(rewrite(), "utf8")).toBe(text);
  expect(statSync(place.etcHosts).ino).toBe(ino);

  const outside = join(tempDir(), "outside");
  writeFileSync(outside, "kept");
  for (const exchange of [
    () => symlinkSync(outside, place.etcHosts),
    () => Bun.spawnSync(["mkfifo", place.etcHosts]),
    () => symlinkSync("/dev/zero", place.etcHosts),
  ]) {
    rmSync(place.etcHosts);
    exchange();
    expect(readFileSync(rewrite(), "utf8")).toBe(text);
  }
  expect(readFileSync(outside, "utf8")).toBe("kept");
});

test("a hosts file that cannot be written is named in the error", () => {
  const place = directories();
  rmSync(dirname(place.etcHosts), { recursive: true });
  expect(() => write(place, aPod(), { podIps: ["10.0.0.1"], names: NAMES })).toThrow(
    `Cannot write the pod's hosts file "${place.etcHosts}": ENOENT`,
  );
});

describe.skipIf(!mounting.ok)("on a full disk", () => {
  const disk = tempDir();
  beforeAll(() => {
    const { exitCode, stderr } = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]);
    if (exitCode !== 0) throw new Error(stderr.toString());
  });

  test("the error names the hosts file, new or rewritten", () => {
    const writer = (pod: string, podIp: string) => {
      const place = new PodDirectories(disk, pod);
      place.create();
      return () => write(place, aPod(), { podIps: [podIp], names: NAMES });
    };
    const existing = writer("uid1", "10.0.0.1");
    existing();
    const rewrite = writer("uid1", "10.0.0.2");
    const fresh = writer("uid2", "10.0.0.1");
    // The existing file gives its page back when it is rewritten, unless it was emptied.
    truncateSync(new PodDirectories(disk, "uid1").etcHosts, 0);
    expect(() => writeFileSync(join(disk, "filler"), Buffer.alloc(1024 * 1024))).toThrow("ENOSPC");
    for (const [pod, attempt] of [
      ["uid1", rewrite],
      ["uid2", fresh],
    ] as const) {
      const file = new PodDirectories(disk, pod).etcHosts;
      expect(attempt).toThrow(`Cannot write the pod's hosts file "${file}": ENOSPC`);
    }
  });
});
