import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import type { Secret } from "../../../src/base/api/secret.ts";
import type { RegistryAuth } from "../../../src/base/model/registry-auth.ts";
import { gatherImages } from "../../../src/daemon/doctor/gather-images.ts";
import { DockerError } from "../../../src/docker/engine/docker-error.ts";
import type { Distribution, ImageInspect } from "../../../src/docker/engine/schemas.ts";

const pod = (image: string, imagePullPolicy: string, pullSecret?: string) =>
  ({
    metadata: { name: "web", namespace: "default" },
    spec: {
      containers: [{ name: "app", image, imagePullPolicy }],
      ...(pullSecret && { imagePullSecrets: [{ name: pullSecret }] }),
    },
  }) as unknown as Pod;

function engine(present: string[], password?: string) {
  const asked: string[] = [];
  return {
    asked,
    inspectImage: async (name: string) => {
      if (present.includes(name)) return { Architecture: "amd64" } as ImageInspect;
      throw new DockerError(404, "GET", "No such image");
    },
    inspectDistribution: async (name: string, { auth }: { auth?: RegistryAuth | undefined } = {}) => {
      asked.push(`${name} ${auth?.password ?? "-"}`);
      if (auth?.password !== password) throw new DockerError(401, "GET", "unauthorized");
      return {
        Descriptor: { digest: "sha256:1" },
        Platforms: [{ architecture: "arm64", os: "linux" }],
      } as Distribution;
    },
  };
}
const without = async () => [];

test("only images that have to be pulled are asked for", async () => {
  const client = engine(["here:1", "always:1"]);
  const pods = [
    pod("here:1", "IfNotPresent"),
    pod("always:1", "Always"),
    pod("never:1", "Never"),
    pod("new:1", "IfNotPresent"),
  ];
  const found = await gatherImages(client, pods, new Map(), without);
  expect(client.asked.sort()).toEqual(["always:1 -", "new:1 -"]);
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
  expect((await gatherImages(engine([], "new"), images, secrets, auths))[0]?.remote).toEqual({
    architectures: ["arm64"],
  });
  const [refused] = await gatherImages(engine([], "other"), images, secrets, auths);
  expect(refused?.remote).toMatchObject({ problem: expect.stringContaining("unauthorized") });
});

test("without credential look-up no registry is queried", async () => {
  const client = engine([]);
  await gatherImages(client, [pod("x:1", "Always")], new Map(), undefined);
  expect(client.asked).toEqual([]);
});
