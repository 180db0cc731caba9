import { expect, test } from "bun:test";
import { createServer } from "node:net";
import { askInstance, type InstanceIntroduction, lockRootDir, parseInstanceHashes } from "../../src/host/root-lock.ts";

let count = 0;
/** Of no root directory, and no other test's. */
const aHash = () => `test${process.pid.toString(16).padStart(8, "0")}${(count++).toString(16).padStart(4, "0")}`;

const US: InstanceIntroduction = {
  pid: 42,
  version: "0.1.0",
  nodeName: "node1",
  rootDir: "/var/lib/kubelet",
  mode: "supervise",
  readOnlyUrl: "http://127.0.0.1:10255",
  readOnlyPort: 10255,
  socketPath: "/var/lib/kubelet/kubelet-ts.sock",
  dockerEndpoint: "unix:///var/run/docker.sock",
};

test("one claims a root, the next is refused until it is given up", async () => {
  const hash = aHash();
  const release = await lockRootDir(hash, () => US);
  expect(release).toBeFunction();
  expect(await lockRootDir(hash, () => US)).toBeUndefined();
  release?.();
  const again = await lockRootDir(hash, () => US);
  expect(again).toBeFunction();
  again?.();
});

test("who works on a root says who it is, as it is at that moment", async () => {
  const hash = aHash();
  let readOnlyUrl: string | undefined;
  const release = await lockRootDir(hash, () => ({ ...US, readOnlyUrl }));
  const { readOnlyUrl: _, ...unbound } = US;
  expect(await askInstance(hash)).toEqual(unbound as InstanceIntroduction);
  readOnlyUrl = "http://127.0.0.1:12345";
  expect(await askInstance(hash)).toEqual({ ...US, readOnlyUrl });
  release?.();
});

test("nobody works on a root", async () => {
  expect(await askInstance(aHash())).toBeUndefined();
});

test.each([
  ["an older version, which says nothing", ""],
  ["something else", "HTTP/1.1 400 Bad Request\r\n\r\n"],
  ["half an introduction", '{"pid":1}\n'],
  ["JSON that is none", "null\n"],
  ["more than anybody has to say", "x".repeat(100_000)],
])("%s is silent", async (_, said) => {
  const hash = aHash();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(said);
  });
  await new Promise<void>((resolve) => server.listen(`\0kubelet-ts-${hash}`, resolve));
  expect(await askInstance(hash)).toBe("silent");
  server.close();
});

test("everybody who runs is in /proc/net/unix", () => {
  const text = [
    "Num       RefCount Protocol Flags    Type St Inode Path",
    "00000000cce1e504: 00000002 00000000 00010000 0001 01 5337722 @kubelet-ts-8a812f9d8f74823a",
    "00000000cce1e505: 00000003 00000000 00000000 0001 03 5337723 @kubelet-ts-8a812f9d8f74823a",
    "00000000b42945c7: 00000002 00000000 00010000 0001 01 5326376 @kubelet-ts-586662b34db37d81",
    "00000000b42945c8: 00000002 00000000 00010000 0001 01 5326377 @kubelet-ts-no",
    "00000000b42945c9: 00000002 00000000 00010000 0001 01 5326378 /run/systemd/notify",
    "",
  ].join("\n");
  expect(parseInstanceHashes(text)).toEqual(["8a812f9d8f74823a", "586662b34db37d81"]);
});
