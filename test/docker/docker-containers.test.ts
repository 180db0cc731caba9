import { expect, test } from "bun:test";
import { DockerContainers } from "../../src/docker/docker-containers.ts";

test("attaching to a container that has ended is an error: the engine would wait until it starts again", async () => {
  const state = { Running: true };
  let closed = 0;
  const client = {
    ping: async () => {},
    attachContainer: async () => ({ chunks: async function* () {}, close: () => closed++ }),
    inspectContainer: async () => ({ State: state }),
  };
  const containers = new DockerContainers(client as never, (() => () => {}) as never);
  const streams = { stdin: false, stdout: true, stderr: true, tty: false };
  await containers.attach("c1", streams);
  expect(closed).toBe(0);
  state.Running = false;
  expect(containers.attach("c1", streams)).rejects.toThrow("container not running (c1)");
  client.inspectContainer = () => Promise.reject(new Error("gone"));
  expect(containers.attach("c1", streams)).rejects.toThrow("container not running (c1)");
  await Bun.sleep(0);
  expect(closed).toBe(2);
});

test("exec and attach ask an engine that hangs whether it is there, and nothing else", () => {
  const client = { ping: () => Promise.reject(new Error("did not answer within 10 s")) };
  const containers = new DockerContainers(client as never, (() => () => {}) as never);
  const streams = { stdin: false, stdout: true, stderr: true, tty: false };
  expect(containers.exec("c1", ["true"], streams)).rejects.toThrow("did not answer within 10 s");
  expect(containers.attach("c1", streams)).rejects.toThrow("did not answer within 10 s");
});
