import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { lockRootDir } from "../../../src/base/host/root-directory.ts";
import { findApiSocket } from "../../../src/cli/client/api-client.ts";
import type { CommandRequest } from "../../../src/cli/sub-command.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("a kubelet that answers commands and serves no API yet is waited for", async () => {
  const rootDir = tempDir();
  const lock = await lockRootDir(rootDir);
  lock!.publish({
    pid: process.pid,
    version: "0.1.0",
    nodeName: "node1",
    rootDir,
    mode: "supervise",
    readOnlyUrl: "http://127.0.0.1:10255",
    readOnlyPort: 10255,
    dockerEndpoint: "unix:///var/run/docker.sock",
  });
  const request = { value: (flag: string) => (flag === "root-dir" ? rootDir : undefined) } as CommandRequest;
  setTimeout(() => writeFileSync(join(rootDir, "api.sock"), ""), 150);
  expect(await findApiSocket(request)).toBe(join(rootDir, "api.sock"));
  lock!.release();
});
