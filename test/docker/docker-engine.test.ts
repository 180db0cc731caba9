import { expect, test } from "bun:test";
import { readEngineInfo, toImagesDir } from "../../src/docker/docker-engine.ts";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
import { aDockerEngine, OWNER } from "../support/docker-engine.ts";
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
  { when: "in the machine's containerd", status: IN_CONTAINERD, containerd: MACHINES, want: "/var/lib/containerd" },
  { when: "in a containerd that is its child", status: IN_CONTAINERD, containerd: OWN, want: "/data/docker" },
  { when: "an engine that does not say which", status: IN_CONTAINERD, containerd: null, want: "/data/docker" },
])("$when", ({ status, containerd, want }) => {
  expect(toImagesDir({ DockerRootDir: "/data/docker", DriverStatus: status, Containerd: containerd })).toBe(want);
});

test("an engine that was never reached is an error from the start", async () => {
  const engine = aDockerEngine("/nowhere/docker.sock");
  expect(engine.connectError).toBe("the Docker engine has not answered yet");
  expect(engine.info).toThrow("has not answered yet");
  await expect(engine.connect(new AbortController().signal)).rejects.toThrow("No Docker engine");
  expect(engine.connectError).toStartWith("No Docker engine at unix:///nowhere/docker.sock");
});

test("running containers that are not ours, without their labels and environment; a known one is not inspected again", async () => {
  const labels = (root: string) => ({ "kubelet-ts.io/node": OWNER.nodeName, "kubelet-ts.io/root": root });
  const listed = [
    { Id: "newer", Labels: labels("of another root directory") },
    { Id: "ours", Labels: labels(OWNER.rootHash) },
    { Id: "older", Labels: {} },
    { Id: "gone", Labels: {} },
    { Id: "ended", Labels: {} },
  ];
  const inspect = (Id: string, Pid: number, NetworkMode: string) => () =>
    Response.json({
      Id,
      Name: `/${Id}`,
      Created: "2026-11-21T06:36:00Z",
      State: { Pid, StartedAt: "2026-11-21T06:36:01Z" },
      Config: { Image: "db:1", Env: ["PASSWORD=secret"], Labels: { token: "secret" } },
      HostConfig: { NetworkMode },
    });
  using daemon = new FakeDaemon({
    routes: {
      "GET /containers/json": () => Response.json(listed),
      "GET /containers/newer/json": inspect("newer", 7, "container:other"),
      "GET /containers/older/json": inspect("older", 8, "bridge"),
      "GET /containers/ended/json": inspect("ended", 0, "bridge"),
    },
  });
  const { others } = aDockerEngine(daemon.socketPath);
  const { signal } = new AbortController();
  const started = { createdAt: new Date("2026-11-21T06:36:00Z"), startedAt: new Date("2026-11-21T06:36:01Z") };
  const want = [
    { id: "older", dockerName: "older", image: "db:1", ...started, pid: 8, hasOwnNetwork: true },
    { id: "newer", dockerName: "newer", image: "db:1", ...started, pid: 7, hasOwnNetwork: false },
  ];
  expect(await others.list(() => true, signal)).toEqual(want);
  const inspects = () =>
    daemon.requests.filter(({ path }) => /(older|newer)\/json$/.test(path)).map(({ path }) => path);
  expect(inspects()).toHaveLength(2);
  expect(await others.list(({ pid }) => pid === 8, signal)).toEqual(want);
  expect(inspects().slice(2)).toEqual(["/containers/newer/json"]);
});

test("of very many containers that are not ours, those that were created first are reported", async () => {
  const listed = Array.from({ length: 600 }, (_, index) => ({ Id: `c${600 - index}`, Labels: {} }));
  const routes = Object.fromEntries(
    listed.map(({ Id }) => [
      `GET /containers/${Id}/json`,
      () => Response.json({ Id, State: { Pid: 1 }, Config: {}, HostConfig: {} }),
    ]),
  );
  using daemon = new FakeDaemon({ routes: { ...routes, "GET /containers/json": () => Response.json(listed) } });
  const { others } = aDockerEngine(daemon.socketPath);
  const found = await others.list(() => true, new AbortController().signal);
  expect([found.length, found[0]?.id, found.at(-1)?.id]).toEqual([512, "c1", "c512"]);
});

test("containers that are not ours: what was read before a call was stopped is kept", async () => {
  // The last one is asked for when the first of them has been read: four are asked for at a time.
  const listed = ["e", "d", "c", "b", "a"].map((Id) => ({ Id, Labels: {} }));
  const stop = new AbortController();
  const inspect = (Id: string) => () => {
    if (Id === "e") stop.abort(new Error("too late"));
    return Response.json({ Id, State: { Pid: 1 }, Config: {}, HostConfig: {} });
  };
  const routes = Object.fromEntries(listed.map(({ Id }) => [`GET /containers/${Id}/json`, inspect(Id)]));
  using daemon = new FakeDaemon({ routes: { ...routes, "GET /containers/json": () => Response.json(listed) } });
  const { others } = aDockerEngine(daemon.socketPath);
  await expect(others.list(() => true, stop.signal)).rejects.toThrow("too late");
  const asked = daemon.requests.length;
  await others.list(() => true, new AbortController().signal);
  const inspected = daemon.requests.slice(asked).filter(({ path }) => path !== "/containers/json");
  expect(inspected.length).toBeLessThan(listed.length);
});
