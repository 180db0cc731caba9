import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildPauseImage } from "../../src/docker/pause-image.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { list, object, sleeper } from "../support/manifests.ts";
import { hasRegistry, TestRegistry } from "../support/registry.ts";
import type { TestNode } from "../support/test-node.ts";

const login = { user: "puller", password: "s3cret-of-the-registry" };
const pulled: string[] = [];
let registry: TestRegistry;

const WITH_SECRET = { imagePullSecrets: [{ name: "regcred" }] };

const pod = (image: string, spec: Record<string, unknown> = {}, imagePullPolicy = "IfNotPresent") =>
  sleeper("app", { image, imagePullPolicy, command: undefined }, spec);

const secret = () => {
  const auths = { [registry.address]: { username: login.user, password: login.password } };
  const data = { ".dockerconfigjson": btoa(JSON.stringify({ auths })) };
  return object("Secret", "regcred", { type: "kubernetes.io/dockerconfigjson", data });
};

function write(node: TestNode, file: string, ...objects: object[]): string {
  const path = join(node.directory, file);
  writeFileSync(path, JSON.stringify(list(...objects)));
  return path;
}

describeWithEngine("pods whose images must be fetched", () => {
  if (!hasRegistry) {
    console.warn("SKIPPED pods whose images must be fetched: docker-registry is not installed");
    return;
  }
  beforeAll(async () => {
    registry = await TestRegistry.start({ login });
  });
  afterAll(async () => {
    const { docker } = testNode();
    for (const image of pulled) await docker.removeImage(image, { force: true }).catch(() => {});
    await registry.cleanUp();
  });

  test("credentials from a Secret of the pod's manifest, which are never shown", async () => {
    const node = testNode();
    const { reference, id } = await registry.pushRunnable("private/secret:1");
    pulled.push(reference);
    const exit = await node.runOnce([write(node, "pod.yaml", secret(), pod(reference, WITH_SECRET))]);
    expect({ exitCode: exit.exitCode, stderr: exit.stderr }).toEqual({ exitCode: 0, stderr: expect.any(String) });
    const [container] = await node.containers("app");
    expect(container).toMatchObject({ State: "running", ImageID: id });
    for (const text of [login.password, btoa(login.password), btoa(`${login.user}:${login.password}`)]) {
      expect(exit.stderr + exit.stdout).not.toContain(text);
    }
  });

  test("without credentials --runonce fails and says why", async () => {
    const node = testNode();
    const { reference } = await registry.pushRunnable("private/none:1");
    const exit = await node.runOnce([write(node, "pod.yaml", pod(reference))]);
    expect(exit.exitCode).toBe(1);
    expect(exit.stdout + exit.stderr).toContain("no basic auth credentials");
    expect(await node.containers("app")).toEqual([]);
    // The doctor reports it before, and that the credentials of a pull help.
    const doctor = async (...objects: object[]) => {
      const flags = [...node.identityFlags(), `--pod-manifest-path=${write(node, "checked.yaml", ...objects)}`];
      const { stdout } = await node.spawn(["doctor", ...flags]).finished();
      return stdout.split("\n").find((line) => line.includes(`image ${reference}`));
    };
    expect(await doctor(pod(reference))).toMatch(/^FAIL .*cannot be pulled: .*no basic auth/);
    expect(await doctor(secret(), pod(reference, WITH_SECRET))).toMatch(/^ok .*the registry has it$/);
  });

  test("images of a directory are there before the first pod, no registry needed", async () => {
    const node = testNode();
    const directory = join(node.directory, "images");
    mkdirSync(directory);
    const { archive } = buildPauseImage(process.arch === "arm64" ? "arm64" : "amd64");
    writeFileSync(join(directory, "pause.tar.gz"), Bun.gzipSync(archive));
    const manifest = pod("kubelet-ts/pause:1", {}, "Never");
    const exit = await node.runOnce([`--images-dir=${directory}`, write(node, "pod.yaml", manifest)]);
    expect({ exitCode: exit.exitCode, stderr: exit.stderr }).toEqual({ exitCode: 0, stderr: expect.any(String) });
    expect(exit.stderr).toContain("pause.tar.gz");
  });

  test("an image that comes into the registry later is fetched automatically", async () => {
    const node = testNode();
    writeFileSync(
      join(node.rootDir, "config.json"),
      JSON.stringify({ auths: { [registry.address]: { auth: btoa(`${login.user}:${login.password}`) } } }),
    );
    await node.start();
    const image = `${registry.address}/private/later:1`;
    pulled.push(image);
    node.writeManifest("app.yaml", pod(image));
    const waiting = await node.until("the back-off to be shown", async () => {
      const state = await node.waitingOf("app");
      return state?.reason === "ImagePullBackOff" && state;
    });
    expect(waiting.message).toBe(`Back-off pulling image "${image}"`);
    expect((await node.statusOf("app"))?.phase).toBe("Pending");
    const { digest } = await registry.pushRunnable("private/later:1");
    const imageID = `docker-pullable://${registry.address}/private/later@${digest}`;
    const { status } = await node.untilPhase("app", "Running");
    expect(status.containerStatuses?.[0]).toMatchObject({ image, imageID });
  });
});
