import { expect, test } from "bun:test";
import type { Secret } from "../../../src/base/api/config-objects.ts";
import type { Pod } from "../../../src/base/api/pod.ts";
import { gatherImages } from "../../../src/daemon/doctor/gather-facts.ts";
import { DockerHost } from "../../../src/docker/docker-host.ts";
import { FakeDaemon, type FakeRoute } from "../../support/fake-daemon.ts";

const pod = (image: string, imagePullPolicy: string, pullSecret?: string) =>
  ({
    metadata: { name: "web", namespace: "default" },
    spec: {
      containers: [{ name: "app", image, imagePullPolicy }],
      ...(pullSecret && { imagePullSecrets: [{ name: pullSecret }] }),
    },
  }) as unknown as Pod;

const IMAGES = ["here:1", "always:1", "new:1", "x:1"];

/** Docker with some images, and a registry that wants this password; absent: none. */
function anEngine(present: string[], password?: string) {
  const asked: string[] = [];
  const inspect = present.map((name): [string, FakeRoute] => [
    `GET /images/${name}/json`,
    () => Response.json({ Id: "sha256:1", Architecture: "amd64" }),
  ]);
  const distribution = IMAGES.map((name): [string, FakeRoute] => [
    `GET /distribution/${name}/json`,
    ({ headers }) => {
      const auth = headers.get("X-Registry-Auth");
      const given = auth === null ? undefined : JSON.parse(Buffer.from(auth, "base64url").toString()).password;
      asked.push(`${name} ${given ?? "-"}`);
      return given === password
        ? Response.json({ Descriptor: { digest: "sha256:1" }, Platforms: [{ architecture: "arm64", os: "linux" }] })
        : Response.json({ message: "unauthorized" }, { status: 401 });
    },
  ]);
  const daemon = new FakeDaemon({ routes: Object.fromEntries([...inspect, ...distribution]) });
  const host = new DockerHost({ endpoint: daemon.socketPath, environment: {} });
  return { host, asked, [Symbol.dispose]: () => daemon[Symbol.dispose]() };
}
const without = async () => [];

test("only images that have to be pulled are asked for", async () => {
  using engine = anEngine(["here:1", "always:1"]);
  const pods = [
    pod("here:1", "IfNotPresent"),
    pod("always:1", "Always"),
    pod("never:1", "Never"),
    pod("new:1", "IfNotPresent"),
  ];
  const found = await gatherImages(engine.host, pods, new Map(), without);
  expect(engine.asked.sort()).toEqual(["always:1 -", "new:1 -"]);
  expect(found.map(({ name, present, remote }) => [name, present, remote])).toEqual([
    ["here:1", true, undefined],
    ["always:1", true, { architectures: ["arm64"] }],
    ["never:1", false, undefined],
    ["new:1", false, { architectures: ["arm64"] }],
  ]);
});

test("the pod's credentials are tried one after the other, and what the registry says last is the problem", async () => {
  const secret = { metadata: { name: "login", namespace: "default" } } as Secret;
  const secrets = new Map([["default/login", secret]]);
  const auths = async (_: unknown, pullSecrets: readonly Secret[]) =>
    pullSecrets.length > 0 ? [{ password: "old" }, { password: "new" }] : [];
  const images = [pod("x:1", "IfNotPresent", "login")];
  using engine = anEngine([], "new");
  const [found] = await gatherImages(engine.host, images, secrets, auths);
  expect(found?.remote).toEqual({ architectures: ["arm64"] });
  using other = anEngine([], "other");
  const [refused] = await gatherImages(other.host, images, secrets, auths);
  expect(refused?.remote).toEqual({ problem: "unauthorized" });
});

test("without credential look-up no registry is queried", async () => {
  using engine = anEngine([]);
  await gatherImages(engine.host, [pod("x:1", "Always")], new Map(), undefined);
  expect(engine.asked).toEqual([]);
});
