import { expect, test } from "bun:test";
import { readEngineInfo, toImagesDir } from "../../src/docker/docker-engine.ts";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { aDockerEngine } from "../support/docker-engine.ts";
import { FakeDaemon } from "../support/fake-daemon.ts";

test.each<[string, boolean, string[], boolean]>([
  ["may lower OOM scores", true, ["name=seccomp,profile=default"], true],
  ["may not, where the kernel refuses", false, ["name=seccomp,profile=default"], false],
  ["may not in a user namespace of its own", true, ["name=seccomp,profile=default", "name=rootless"], false],
])("an engine %s", async (_, kernel, SecurityOptions, want) => {
  using daemon = new FakeDaemon({ routes: { "GET /info": () => Response.json({ SecurityOptions }) } });
  const client = new DockerClient({ kind: "unix", path: daemon.socketPath });
  const info = await readEngineInfo(client, kernel);
  expect(info.negativeOomScores).toBe(want);
  expect(info.securityOptions).toEqual(SecurityOptions);
});

const IN_CONTAINERD = [["driver-type", "io.containerd.snapshotter.v1"]];
const OVERLAY2 = [["Backing Filesystem", "extfs"]];
const MACHINES = { Address: "/run/containerd/containerd.sock" };
const OWN = { Address: "/var/run/docker/containerd/containerd.sock" };

test.each([
  { when: "layers of the engine's own", status: OVERLAY2, containerd: MACHINES, want: "/data/docker" },
  {
    when: "images in the machine's containerd",
    status: IN_CONTAINERD,
    containerd: MACHINES,
    want: "/var/lib/containerd",
  },
  {
    when: "images in a containerd that is the engine's child",
    status: IN_CONTAINERD,
    containerd: OWN,
    want: "/data/docker",
  },
  {
    when: "an engine that does not say which containerd",
    status: IN_CONTAINERD,
    containerd: null,
    want: "/data/docker",
  },
])("$when", ({ status, containerd, want }) => {
  expect(toImagesDir({ DockerRootDir: "/data/docker", DriverStatus: status, Containerd: containerd })).toBe(want);
});

test("an engine that was never reached is an error from the start", async () => {
  const engine = aDockerEngine({ client: new DockerClient({ kind: "unix", path: "/nowhere/docker.sock" }) });
  expect(engine.connectError).toBe("the Docker engine has not answered yet");
  expect(engine.info).toThrow("has not answered yet");
  await expect(engine.connect(new AbortController().signal)).rejects.toThrow("No Docker engine");
  expect(engine.connectError).toStartWith("No Docker engine at unix:///nowhere/docker.sock");
});
