import { expect, test } from "bun:test";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { EngineConnection } from "../../src/docker/engine-connection.ts";

test("an engine that was never reached is an error from the start", async () => {
  const client = new DockerClient({ kind: "unix", path: "/nowhere/docker.sock" });
  const engine = new EngineConnection({ client, cgroupDriver: "", mayLowerOomScores: () => true });
  expect(engine.connectError).toBe("the Docker engine has not answered yet");
  expect(engine.info).toThrow("has not answered yet");
  await expect(engine.connect(new AbortController().signal)).rejects.toThrow("No Docker engine");
  expect(engine.connectError).toStartWith("No Docker engine at unix:///nowhere/docker.sock");
});
