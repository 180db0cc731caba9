import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Secret } from "../../src/base/api/secret.ts";
import { LOCAL_TEXT_FILES } from "../../src/base/files/text-files.ts";
import { SystemClock } from "../../src/base/host/system-clock.ts";
import type { ImageInfo } from "../../src/base/model/container-engine.ts";
import type { PodEvent } from "../../src/base/model/pod-event.ts";
import { isNotFound } from "../../src/docker/engine/docker-error.ts";
import { ImageCredentials } from "../../src/docker/image-credentials.ts";
import { preloadImages } from "../../src/docker/image-preload.ts";
import { buildPauseImage } from "../../src/docker/pause-image.ts";
import { ImageManager } from "../../src/kubelet/images/image-manager.ts";
import { aContainer, aPod } from "../support/builders.ts";
import { someDockerImages } from "../support/docker-engine.ts";
import { describeWithEngine } from "../support/engine.ts";
import { imageFailure } from "../support/image-failure.ts";
import { aMetrics } from "../support/metrics.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { hasRegistry, TestRegistry } from "../support/registry.ts";
import { TestDocker } from "../support/test-docker.ts";
import { engineSocketPath, RUN_ID } from "../support/test-node.ts";

const client = new TestDocker({ kind: "unix", path: engineSocketPath() });
const never = new AbortController().signal;
const scratch = mkdtempSync(join(tmpdir(), `kubelet-ts-t-${RUN_ID}-images-`));
/** Everything pulled or loaded here, to be removed again. */
const pulled = new Set<string>();

let events: string[];
let rootDir: string;
const logger = new RecordingLogger();

const aManager = (): ImageManager =>
  new ImageManager({
    images: someDockerImages(client),
    clock: new SystemClock(),
    logger,
    recorder: {
      record: (_, { type, reason, message }: PodEvent) => void events.push(`${type} ${reason} ${message}`),
    },
    credentials: new ImageCredentials({ rootDir, homeDir: join(rootDir, "home"), logger, files: LOCAL_TEXT_FILES }),
    limits: { maxParallel: 0, perSecond: 0, burst: 0, progressDeadlineMs: 60_000 },
    metrics: aMetrics(),
  });

type Policy = "Always" | "IfNotPresent" | "Never";

async function ensure(
  image: string,
  policy: Policy = "IfNotPresent",
  { manager = aManager(), pod = aPod(), pullSecrets = [] as Secret[] } = {},
): Promise<ImageInfo> {
  pulled.add(image);
  return manager.ensureImage(pod, aContainer({ image, imagePullPolicy: policy }), { pullSecrets }, never);
}

async function forgetImages(): Promise<void> {
  for (const image of pulled) {
    try {
      await client.removeImage(image, { force: true });
    } catch (error) {
      if (!isNotFound(error) && !(error instanceof Error && error.message.includes(" 400: "))) throw error;
    }
  }
  pulled.clear();
}

beforeEach(() => {
  events = [];
  rootDir = mkdtempSync(join(scratch, "root-"));
});
afterAll(async () => {
  await forgetImages();
  rmSync(scratch, { recursive: true, force: true });
});

describeWithEngine("images from a registry", () => {
  if (!hasRegistry) {
    console.warn("SKIPPED images from a registry: docker-registry is not installed");
    return;
  }
  describe("credentials", () => {
    let locked: TestRegistry;
    let image: { reference: string; id: string };
    const login = { user: "puller", password: "s3cret" };
    const auths = (key: string, entry: object) => JSON.stringify({ auths: { [key]: entry } });
    const auth = (password = login.password) => ({ auth: btoa(`${login.user}:${password}`) });

    const secret = (password = login.password) => {
      const data = { ".dockerconfigjson": btoa(auths(locked.address, auth(password))) };
      const metadata = { name: "regcred", namespace: "default" };
      return { metadata, type: "kubernetes.io/dockerconfigjson", data } as Secret;
    };

    beforeAll(async () => {
      locked = await TestRegistry.start({ login });
      image = await locked.push("private/app:1");
    });
    afterAll(() => locked.cleanUp());
    beforeEach(forgetImages);

    test("a wrong password", async () => {
      writeFileSync(join(rootDir, "config.json"), auths(locked.address, auth("wrong")));
      const error = await imageFailure(ensure(image.reference));
      expect(error).toMatchObject({ reason: "ErrImagePull", problem: "denied" });
      expect(error.message).toEndWith("Error response from daemon: unauthorized: authentication required");
      expect(JSON.stringify([events, logger.lines])).not.toContain("wrong");
    });

    test("the machine's are tried when the pod's own are wrong", async () => {
      expect((await ensure(image.reference, "Always", { pullSecrets: [secret()] })).id).toBe(image.id);
      await forgetImages();
      writeFileSync(join(rootDir, "config.json"), auths(locked.address, auth()));
      expect((await ensure(image.reference, "Always", { pullSecrets: [secret("old")] })).id).toBe(image.id);
    });

    test("an image on the engine is for every pod, whichever pulled it; Always asks the registry", async () => {
      writeFileSync(join(rootDir, "config.json"), auths(locked.address, auth()));
      expect((await ensure(image.reference)).id).toBe(image.id);
      expect(JSON.stringify(events)).not.toContain(login.password);
      writeFileSync(join(rootDir, "config.json"), "{}");
      expect((await ensure(image.reference)).id).toBe(image.id);
      expect(await imageFailure(ensure(image.reference, "Always"))).toMatchObject({ problem: "denied" });
    });

    test("a pod that has no credentials does not profit from the pull of one that has", async () => {
      const manager = aManager();
      const outcomes = await Promise.allSettled([
        ensure(image.reference, "Always", { manager, pod: aPod({}, { uid: "with" }), pullSecrets: [secret()] }),
        ensure(image.reference, "Always", { manager, pod: aPod({}, { uid: "without" }) }),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    });
  });

  describe("a directory of images", () => {
    test("is loaded before anything is pulled, once; a broken archive does not stop the others", async () => {
      const directory = mkdtempSync(join(scratch, "images-"));
      const state = join(scratch, "state/preloaded-images.json");
      const name = `kts-pre-${Math.random().toString(36).slice(2, 8)}:1`;
      pulled.add(name);
      writeFileSync(join(directory, "a-broken.tar"), "no archive at all");
      writeFileSync(join(directory, "b.tar.gz"), Bun.gzipSync(archiveNamed(name)));
      writeFileSync(join(directory, "c.txt"), "not read");
      /** Names that were loaded now, not found there. */
      const load = async () => {
        const own = new RecordingLogger();
        expect(await preloadImages(client, directory, state, own, never)).toEqual([name]);
        expect(own.lines.filter((line) => line.startsWith("error")).join()).toMatch(
          /a-broken.tar": .*POST .images.load/,
        );
        return own.lines.flatMap((line) => /^info Loaded (.*) from/.exec(line)?.[1] ?? []);
      };

      expect(await load()).toEqual([name]);
      expect((await ensure(name, "Never")).repoTags).toContain(name);
      expect(await load()).toEqual([]);
      await client.removeImage(name, { force: true });
      expect(await load()).toEqual([name]);
      writeFileSync(state, "not what was written");
      expect(await load()).toEqual([name]);
      expect(JSON.parse(readFileSync(state, "utf8"))).toMatchObject({ version: 1 });
    });

    test("zstd is decompressed before the engine; a file that is not an archive is reported", async () => {
      const directory = join(scratch, "zstd");
      mkdirSync(join(directory, "a-directory.tar"), { recursive: true });
      const name = `kts-zst-${Math.random().toString(36).slice(2, 8)}:1`;
      pulled.add(name);
      const packed = Bun.zstdCompressSync(archiveNamed(name));
      writeFileSync(join(directory, "good.tar.zst"), packed);
      writeFileSync(join(directory, "torn.tar.zst"), packed.subarray(0, packed.length - 20));
      const own = new RecordingLogger();
      expect(await preloadImages(client, directory, join(scratch, "zstd-state.json"), own, never)).toEqual([name]);
      const errors = own.lines.filter((line) => line.startsWith("error"));
      expect(errors).toEqual([
        expect.stringContaining('a-directory.tar": it is not a file'),
        expect.stringMatching(/torn.tar.zst": not zstd, or truncated/),
      ]);
    });
  });
});

/** The pause image under another name: the smallest archive there is. */
function archiveNamed(name: string): Uint8Array<ArrayBuffer> {
  const { archive } = buildPauseImage(process.arch === "arm64" ? "arm64" : "amd64");
  // Both names are as long, so that the archive stays one: only its manifest.json says them, and tar sums up no data.
  const text = Buffer.from(archive).toString("latin1");
  const padded = `["${name}"]`.padEnd('["kubelet-ts/pause:1"]'.length, " ");
  return new Uint8Array(Buffer.from(text.replace('["kubelet-ts/pause:1"]', padded), "latin1"));
}
