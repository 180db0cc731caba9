import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { askApi } from "../support/local-api.ts";
import { hasRegistry, type PushedImage, TestRegistry } from "../support/registry.ts";
import type { TestNode } from "../support/test-node.ts";

const login = { user: "puller", password: "s3cret-of-updates" };
const used = new Set<string>();
let registry: TestRegistry;

const run = (node: TestNode, ...words: string[]) => node.spawn([`--root-dir=${node.rootDir}`, ...words]).finished();

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
  const { exitCode, stderr, stdout } = await run(node, "updates", "--now", "--wait", "--timeout=90s");
  if (exitCode === null || exitCode > 1) throw new Error(stderr + stdout);
  if (exitCode === 1) console.log(`${stdout}${stderr}${await node.diagnosis()}`);
  return exitCode;
}

async function push(name: string): Promise<PushedImage> {
  const pushed = await registry.pushRunnable(name);
  used.add(pushed.id);
  return pushed;
}

/** An image whose program the kernel cannot run. */
async function pushBroken(name: string): Promise<PushedImage> {
  const pushed = await registry.push(name);
  used.add(pushed.id);
  return pushed;
}

const pod = (image: string, annotations: object, more: object = {}, container: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", annotations },
  spec: {
    terminationGracePeriodSeconds: 1,
    imagePullSecrets: [{ name: "regcred" }],
    containers: [{ name: "app", image, ...container }],
    ...more,
  },
});

const secret = () => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "regcred" },
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

const runningImage = async (node: TestNode) => (await node.runningContainer("app")).ImageID;

const isPinned = (node: TestNode) =>
  node.until("the image to be pinned", async () => (await rows(node))[0]?.state === "pinned");

describeWithEngine("updates of images", () => {
  if (!hasRegistry) {
    console.warn("SKIPPED updates of images: docker-registry is not installed");
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

  test("a newer digest is kept, a bad one is rolled back and not tried again, and the digest outlives restarts", async () => {
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

    const broken = await pushBroken("digest/app:1");
    expect(await update(node)).toBe(1);
    expect(await runningImage(node)).toBe(second.id);
    const failed = (await rows(node))[0]!;
    expect(failed).toMatchObject({ state: "failed", rejected: [{ ref: expect.stringContaining(broken.digest) }] });
    const events = await run(node, "events", "--for=pod/web");
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

    expect(await run(node, "updates", "--undo", "web")).toMatchObject({ exitCode: 0 });
    await node.until("the previous image to run", async () => (await runningImage(node)) === first.id);
    expect(container).toMatchObject({ ImageID: first.id });
  });

  test("pinning restarts nothing; a pod blocks updates by a file and by an annotation", async () => {
    const node = testNode();
    const first = await push("lock/app:1");
    const volumes = [{ name: "data", hostPath: { path: node.directory } }];
    const annotations = {
      "kubelet-ts.io/image-update": "digest",
      "kubelet-ts.io/image-update-lock": "data/updates.lock",
    };
    writeFileSync(join(node.directory, "updates.lock"), "");
    write(node, pod(first.reference, annotations, { volumes }));
    await node.start();
    await isPinned(node);
    const { Id } = await node.runningContainer("app");
    const second = await push("lock/app:1");
    await update(node);
    expect((await rows(node))[0]).toMatchObject({ state: "held", message: "held by the file data/updates.lock" });
    expect((await node.runningContainer("app")).Id).toBe(Id);

    write(node, pod(first.reference, { ...annotations, "kubelet-ts.io/image-update-hold": "true" }, { volumes }));
    await node.until("the annotation to hold", async () => (await rows(node))[0]?.message === "held by its annotation");
    rmSync(join(node.directory, "updates.lock"));
    expect((await rows(node))[0]).toMatchObject({ message: "held by its annotation" });
    expect((await node.runningContainer("app")).Id).toBe(Id);

    write(node, pod(first.reference, annotations, { volumes }));
    await node.until("the new image to run", async () => (await runningImage(node)) === second.id);
  });

  test("semver takes the highest tag of its range, for all pods of a Deployment one after the other", async () => {
    const node = testNode();
    for (const tag of ["1.4.1", "1.4.9", "1.5.0", "1.4.10-rc.1", "latest"]) await push(`range/app:${tag}`);
    const newest = await push("range/app:1.4.10");
    const { metadata, spec } = pod(`${registry.address}/range/app:1.4.1`, {});
    write(node, {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", annotations: { "kubelet-ts.io/image-update": "semver:~1.4" } },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: "web" } },
        template: { metadata: { ...metadata, labels: { app: "web" } }, spec },
      },
    });
    await node.start();
    await isPinned(node);
    expect(await update(node)).toBe(0);
    const images = (await node.containers("app"))
      .filter(({ State }) => State === "running")
      .map(({ ImageID }) => ImageID);
    expect(images).toEqual([newest.id, newest.id]);
    expect(await rows(node)).toMatchObject([
      { owner: "default/Deployment/web", state: "pinned", currentTag: "1.4.10" },
    ]);
    const slip = await run(node, "updates", "--undo", "wob");
    expect(slip).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("default/Deployment/web") });
  });

  test("the node's default, its schedule and its window", async () => {
    const node = testNode();
    const first = await push("node/app:1");
    write(node, pod(first.reference, {}));
    const flags = ["--image-update=digest", "--image-update-schedule=@every 2s", "--image-update-jitter=1s"];
    const kubelet = await node.start([...flags, "--image-update-window=0 0 1 1 * +1s"]);
    await isPinned(node);
    await push("node/app:1");
    await node.until("the window to be waited for", async () =>
      Boolean((await rows(node))[0]?.message.startsWith("waits for the window at")),
    );
    expect(await runningImage(node)).toBe(first.id);
    expect((await run(node, "updates")).stdout).toMatch(/^default\/web .* new /m);
    await kubelet.stop();
  });
});
