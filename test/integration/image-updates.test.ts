import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildPauseImage } from "../../src/docker/pause-image.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { askApi } from "../support/local-api.ts";
import { HOST, list, object, sleeper } from "../support/manifests.ts";
import { hasRegistry, type PushedImage, TestRegistry } from "../support/registry.ts";
import type { TestNode } from "../support/test-node.ts";

const login = { user: "puller", password: "s3cret-of-updates" };
const used = new Set<string>();
let registry: TestRegistry;

interface Row {
  owner: string;
  state: string;
  current?: string;
  currentTag?: string;
  candidate?: string;
  message: string;
  rejected: { ref: string }[];
}

async function rows(node: TestNode): Promise<Row[]> {
  return (await askApi(node, "GET", "/apis/kubelet-ts.io/v1/imageupdates")).json.items;
}

async function update(node: TestNode): Promise<number> {
  const { exitCode, stderr, stdout } = await node.run("updates --now --wait --timeout=90s");
  if (exitCode === null || exitCode > 1) throw new Error(stderr + stdout);
  return exitCode;
}

async function push(name: string, isBroken = false): Promise<PushedImage> {
  // The kernel cannot run the program of a plain one.
  const pushed = await (isBroken ? registry.push(name) : registry.pushRunnable(name));
  used.add(pushed.id);
  return pushed;
}

const spec = (more: object = {}) => ({ ...HOST, imagePullSecrets: [{ name: "regcred" }], ...more });
const ofImage = (image: string, more: object = {}) => ({ image, command: undefined, ...more });
const pod = (image: string, annotations: object, more: object = {}, container: object = {}) =>
  sleeper("web", ofImage(image, container), spec(more), { annotations });

const secret = () =>
  object("Secret", "regcred", {
    type: "kubernetes.io/dockerconfigjson",
    stringData: {
      ".dockerconfigjson": JSON.stringify({
        auths: { [registry.address]: { username: login.user, password: login.password } },
      }),
    },
  });

const write = (node: TestNode, ...objects: object[]) =>
  node.writeManifest(
    "web.yaml",
    ["# several documents", secret(), ...objects]
      .map((object) => (typeof object === "string" ? object : JSON.stringify(object)))
      .join("\n---\n"),
  );

const wanting = (image: string, more: Record<string, unknown> = {}, imagePullPolicy = "IfNotPresent") =>
  sleeper("app", ofImage(image, { imagePullPolicy }), more);

/** A file with these objects, outside of the manifest directory. */
function manifestOf(node: TestNode, ...objects: object[]): string {
  const path = join(node.directory, "objects.json");
  writeFileSync(path, JSON.stringify(list(...objects)));
  return path;
}

const runningImage = async (node: TestNode) => (await node.runningContainer("app")).ImageID;

const isPinned = (node: TestNode) =>
  node.until("the image to be pinned", async () => (await rows(node))[0]?.state === "pinned");

describeWithEngine("images of a registry with a password, and their updates", () => {
  if (!hasRegistry) {
    console.warn("SKIPPED images of a registry: docker-registry is not installed");
    return;
  }
  beforeAll(async () => {
    registry = await TestRegistry.start({ login });
  });
  afterAll(async () => {
    const { docker } = testNode();
    for (const image of used) await docker.removeImage(image, { force: true }).catch(() => {});
    await registry.cleanUp();
  });

  test.concurrent("a newer digest is kept, a bad one is rolled back and not tried again, and the digest outlives restarts", async () => {
    const node = testNode();
    const first = await push("digest/app:1");
    const annotations = { "kubelet-ts.io/image-update": "digest", "kubelet-ts.io/update-deadline": "8s" };
    write(node, pod(first.reference, annotations, {}, { imagePullPolicy: "Always" }));
    let kubelet = await node.start();
    await isPinned(node);
    const [container] = await node.containers("app");

    const second = await push("digest/app:1");
    expect(await update(node)).toBe(0);
    expect(await runningImage(node)).toBe(second.id);
    expect((await rows(node))[0]).toMatchObject({ owner: "default/web", state: "pinned", currentTag: "1" });
    expect((await rows(node))[0]?.current).toEndWith(`@${second.digest}`);
    expect((await node.pods())[0]?.spec.containers[0]?.image).toBe(first.reference);

    const broken = await push("digest/app:1", true);
    expect(await update(node)).toBe(1);
    expect(await runningImage(node)).toBe(second.id);
    const failed = (await rows(node))[0]!;
    expect(failed).toMatchObject({ state: "failed", rejected: [{ ref: expect.stringContaining(broken.digest) }] });
    const events = await node.run("events --for=pod/web");
    expect(events.stdout).toContain("ImageUpdateFailed");
    const { Id } = await node.runningContainer("app");
    await update(node);
    expect((await node.runningContainer("app")).Id).toBe(Id);

    // The registry's newest image is the bad one: neither a restart nor a new container takes it.
    await kubelet.stop();
    await node.docker.removeContainer(Id, { force: true });
    kubelet = await node.start();
    await node.until("the container to run again", async () => (await runningImage(node)) === second.id);
    for (const text of [login.password, btoa(`${login.user}:${login.password}`)]) {
      expect(kubelet.log + events.stdout + JSON.stringify(failed)).not.toContain(text);
    }

    expect(await node.run("updates --undo web")).toMatchObject({ exitCode: 0 });
    await node.until("the previous image to run", async () => (await runningImage(node)) === first.id);
    expect(container).toMatchObject({ ImageID: first.id });
  });

  test.concurrent("the node's default, its schedule and its window", async () => {
    const node = testNode();
    const first = await push("node/app:1");
    write(node, pod(first.reference, {}));
    const flags = ["--image-update=digest", "--image-update-schedule=@every 2s", "--image-update-jitter=1s"];
    await node.start([...flags, "--image-update-window=0 0 1 1 * +1s"]);
    await isPinned(node);
    await push("node/app:1");
    await node.until("the window to be waited for", async () =>
      Boolean((await rows(node))[0]?.message.startsWith("waits for the window at")),
    );
    expect(await runningImage(node)).toBe(first.id);
    expect((await node.run("updates")).stdout).toMatch(/^default\/web .* new /m);
  });

  test.concurrent("credentials from a Secret of the pod's manifest, which are never shown", async () => {
    const node = testNode();
    const { reference, id } = await push("private/secret:1");
    const exit = await node.runOnce([manifestOf(node, secret(), wanting(reference, spec()))]);
    expect({ exitCode: exit.exitCode, stderr: exit.stderr }).toEqual({ exitCode: 0, stderr: expect.any(String) });
    const [container] = await node.containers("app");
    expect(container).toMatchObject({ State: "running", ImageID: id });
    for (const text of [login.password, btoa(login.password), btoa(`${login.user}:${login.password}`)]) {
      expect(exit.stderr + exit.stdout).not.toContain(text);
    }
  });

  test.concurrent("without credentials --runonce fails and says why", async () => {
    const node = testNode();
    const { reference } = await push("private/none:1");
    const exit = await node.runOnce([manifestOf(node, wanting(reference))]);
    expect(exit.exitCode).toBe(1);
    expect(exit.stdout + exit.stderr).toContain("no basic auth credentials");
    expect(await node.containers("app")).toEqual([]);
    // The doctor reports it before, and that the credentials of a pull help.
    const doctor = async (...objects: object[]) => {
      const flags = [...node.identityFlags(), `--pod-manifest-path=${manifestOf(node, ...objects)}`];
      const { stdout } = await node.spawn(["doctor", ...flags]).finished();
      return stdout.split("\n").find((line) => line.includes(`image ${reference}`));
    };
    expect(await doctor(wanting(reference))).toMatch(/^FAIL .*cannot be pulled: .*no basic auth/);
    expect(await doctor(secret(), wanting(reference, spec()))).toMatch(/^ok .*the registry has it$/);
  });

  test.concurrent("images of a directory are there before the first pod, no registry needed", async () => {
    const node = testNode();
    const directory = join(node.directory, "images");
    mkdirSync(directory);
    const { archive } = buildPauseImage(process.arch === "arm64" ? "arm64" : "amd64");
    writeFileSync(join(directory, "pause.tar.gz"), Bun.gzipSync(archive));
    const manifest = wanting("kubelet-ts/pause:1", {}, "Never");
    const exit = await node.runOnce([`--images-dir=${directory}`, manifestOf(node, manifest)]);
    expect({ exitCode: exit.exitCode, stderr: exit.stderr }).toEqual({ exitCode: 0, stderr: expect.any(String) });
    expect(exit.stderr).toContain("pause.tar.gz");
  });

  test.concurrent("an image that comes into the registry later is fetched automatically", async () => {
    const node = testNode();
    writeFileSync(
      join(node.rootDir, "config.json"),
      JSON.stringify({ auths: { [registry.address]: { auth: btoa(`${login.user}:${login.password}`) } } }),
    );
    await node.start();
    const image = `${registry.address}/private/later:1`;
    node.writeManifest("app.yaml", wanting(image));
    const waiting = await node.until("the back-off to be shown", async () => {
      const state = await node.waitingOf("app");
      return state?.reason === "ImagePullBackOff" && state;
    });
    expect(waiting.message).toBe(`Back-off pulling image "${image}"`);
    expect((await node.statusOf("app"))?.phase).toBe("Pending");
    const { digest } = await push("private/later:1");
    const imageID = `docker-pullable://${registry.address}/private/later@${digest}`;
    await node.untilPhase("app", "Running");
    await node.until("the image with its digest", async () => {
      const [app] = (await node.statusOf("app"))?.containerStatuses ?? [];
      return app?.image === image && app.imageID === imageID;
    });
  });
});
