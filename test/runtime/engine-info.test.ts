import { expect, test } from "bun:test";
import { DockerClient } from "../../src/docker/docker-client.ts";
import { readEngineInfo } from "../../src/runtime/engine-info.ts";
import { FakeDaemon } from "../support/fake-daemon.ts";

test.each<[string, boolean, string[], boolean]>([
  ["may lower OOM scores", true, ["name=seccomp,profile=default"], true],
  ["may not, where the kernel says so", false, ["name=seccomp,profile=default"], false],
  ["may not in a user namespace of its own", true, ["name=seccomp,profile=default", "name=rootless"], false],
])("an engine %s", async (_, kernel, SecurityOptions, want) => {
  using daemon = new FakeDaemon({ routes: { "GET /info": () => Response.json({ SecurityOptions }) } });
  const client = new DockerClient({ kind: "unix", path: daemon.socketPath });
  const info = await readEngineInfo(client, kernel);
  expect(info.negativeOomScores).toBe(want);
  expect(info.securityOptions).toEqual(SecurityOptions);
});
