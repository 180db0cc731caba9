import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LOCAL_TEXT_FILES } from "../../src/base/files/text-files.ts";
import { SystemClock } from "../../src/base/host/system-clock.ts";
import type { Clock } from "../../src/base/model/clock.ts";
import { ImageCredentials } from "../../src/docker/image-credentials.ts";
import { ImageError } from "../../src/docker/image-error.ts";
import { ImageManager } from "../../src/docker/image-manager.ts";
import { aContainer, aPod } from "../support/builders.ts";
import { someDockerImages } from "../support/docker-engine.ts";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import type { PrivateEngine } from "../support/private-engine.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { BadNetwork, hasRegistry, type PushedImage, TestRegistry } from "../support/registry.ts";
import { until } from "../support/until.ts";

const BUSYBOX = "busybox:test";
const LAYER_BYTES = 300_000;

/** The machine's clock, which can be put forward. */
class PutForwardClock implements Clock {
  readonly #clock = new SystemClock();
  aheadMs = 0;
  now = () => new Date(this.#clock.now().getTime() + this.aheadMs);
  monotonicMs = () => this.#clock.monotonicMs() + this.aheadMs;
  sleep = (ms: number, signal?: AbortSignal) => this.#clock.sleep(ms, signal);
  schedule = (ms: number, callback: () => void) => this.#clock.schedule(ms, callback);
}

describeWithEngine("a registry that dies in the middle of a layer and stays dead", () => {
  if (!hasRegistry) {
    console.warn("SKIPPED a registry that dies: docker-registry is not installed");
    return;
  }
  const scratch = mkdtempSync(join(tmpdir(), "kubelet-ts-dead-registry-"));
  let engine: PrivateEngine;
  let registry: TestRegistry;
  let network: BadNetwork;
  let image: PushedImage;
  let reference: string;

  beforeAll(async () => {
    // An engine tries a layer five times, for about a minute; that is Docker's patience, not ours.
    engine = await privateEngine({ flags: ["--max-download-attempts=1"] });
    await engine.provideImages(BUSYBOX);
    registry = await TestRegistry.start();
    image = await registry.push("oracle/dead:1", LAYER_BYTES);
    network = await BadNetwork.before(registry);
    reference = image.reference.replace(registry.address, network.address);
  });
  afterAll(async () => {
    network.close();
    await registry.cleanUp();
    rmSync(scratch, { recursive: true, force: true });
  });

  async function dieInTheMiddle(): Promise<void> {
    const before = network.spoilt;
    network.layers = "stall";
    await until("half a layer", () => network.spoilt > before);
    network.close();
    network.layers = "pass";
  }

  test("it is asked after 10, 20, 40 s, …, others get their images, and minutes later it is back", async () => {
    const events: string[] = [];
    const logger = new RecordingLogger();
    const clock = new PutForwardClock();
    const manager = new ImageManager({
      client: engine.docker,
      images: someDockerImages(engine.docker, clock),
      clock,
      logger,
      recorder: { record: (_, { type, reason, message }) => void events.push(`${type} ${reason} ${message}`) },
      credentials: new ImageCredentials({ rootDir: scratch, homeDir: scratch, logger, files: LOCAL_TEXT_FILES }),
      limits: { maxParallel: 0, perSecond: 0, burst: 0 },
      progressDeadlineMs: 60_000,
    });
    const never = new AbortController().signal;
    const app = aPod({}, { uid: "dead" });
    const ask = async () => {
      try {
        const container = aContainer({ image: reference, imagePullPolicy: "IfNotPresent" });
        return await manager.ensureImage(app, container, { pullSecrets: [] }, never);
      } catch (error) {
        if (error instanceof ImageError) return error;
        throw error;
      }
    };

    const [first] = await Promise.all([ask(), dieInTheMiddle()]);
    expect(first).toMatchObject({ reason: "ErrImagePull", problem: "unreachable" });
    expect(events).toContain(`Warning Failed Failed to pull image "${reference}": ${(first as ImageError).message}`);
    expect(JSON.stringify(logger.lines)).toContain("check the registry's address and the network");

    for (const seconds of [10, 20, 40]) {
      expect(await ask()).toMatchObject({ reason: "ImagePullBackOff" });
      expect(events).toContain(`Normal BackOff Back-off pulling image "${reference}"`);
      clock.aheadMs += seconds * 1000;
      expect(await ask()).toMatchObject({
        reason: "ErrImagePull",
        problem: "unreachable",
        message: expect.stringContaining("connection refused"),
      });
    }
    const other = aContainer({ image: BUSYBOX, imagePullPolicy: "IfNotPresent" });
    await manager.ensureImage(aPod({}, { uid: "other" }), other, { pullSecrets: [] }, never);

    await network.open();
    expect(await ask()).toMatchObject({ reason: "ImagePullBackOff" });
    clock.aheadMs += 80_000;
    expect(await ask()).toMatchObject({ id: image.id });
    await engine.docker.removeImage(reference, { force: true });
  });

  test("its pod waits and says why, the others run on, and it comes up when the registry does", async () => {
    const node = testNode({ socketPath: engine.socketPath });
    const kubelet = await node.start();
    node.writeManifest("other.yaml", sleeper("other", { name: "other" }));
    const { Id: otherId } = await node.runningContainer("other");
    const dead = dieInTheMiddle();
    node.writeManifest("app.yaml", sleeper("app", { image: reference, command: undefined }));
    await dead;

    const reasons = new Set<string>();
    await node.until("the pod to wait between two pulls", async () => {
      const reason = (await node.waitingOf("app"))?.reason;
      if (reason) reasons.add(reason);
      return reason === "ImagePullBackOff";
    });
    expect([...reasons]).toContain("ErrImagePull");
    expect(kubelet.log).toContain(`Failed to pull image "${reference}"`);
    expect(await node.containers("app")).toEqual([]);
    expect(await node.runningContainer("other")).toMatchObject({ Id: otherId });

    await network.open();
    await node.until("the image to be fetched", async () => {
      const [shown] = await engine.docker.listImages({ filters: { reference: [reference] } });
      return shown?.Id === image.id;
    });
    expect(await node.runningContainer("other")).toMatchObject({ Id: otherId });
  });
});
