import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { LOCAL_TEXT_FILES } from "../../../src/base/files/whole-file.ts";
import type { PodEvent } from "../../../src/base/model/pod-event.ts";
import { DockerClient } from "../../../src/docker/engine/docker-client.ts";
import { DockerUnreachableError } from "../../../src/docker/engine/docker-error.ts";
import { ImageCredentials } from "../../../src/docker/image-credentials.ts";
import { ImageManager, type ImageManagerOptions } from "../../../src/kubelet/images/image-manager.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { someDockerImages } from "../../support/docker-engine.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { FakeDaemon, type FakeRoute } from "../../support/fake-daemon.ts";
import { imageFailure } from "../../support/image-failure.ts";
import { aMetrics, samplesOf } from "../../support/metrics.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { until } from "../../support/until.ts";

const never = new AbortController().signal;
const LIMITS = { maxParallel: 0, perSecond: 0, burst: 0, progressDeadlineMs: 0 };
const REF = "127.0.0.1:5000/oracle/app:1";
const NOT_FOUND = `manifest for ${REF} not found: manifest unknown: manifest unknown`;
const SHOWN = `rpc error: code = Unknown desc = Error response from daemon: ${NOT_FOUND}`;

let clock: FakeClock;
let daemon: FakeDaemon;
let manager: ImageManager;
let events: string[];
/** Images on the engine. */
let images: Set<string>;
/** Answers of a pull. */
let pull: FakeRoute;
let stop: AbortController;
let logger: RecordingLogger;

function start(options: Partial<ImageManagerOptions> = {}, { socketPath }: FakeDaemon = daemon): void {
  logger = new RecordingLogger();
  const record = (_: unknown, { type, reason, message, fieldPath }: PodEvent) => {
    events.push(`${type} ${reason} ${message} (${fieldPath})`);
  };
  manager = new ImageManager({
    images: someDockerImages(new DockerClient({ kind: "unix", path: socketPath }), clock),
    clock,
    logger,
    recorder: { record },
    credentials: new ImageCredentials({ rootDir: "/nonexistent", homeDir: "", logger, files: LOCAL_TEXT_FILES }),
    limits: LIMITS,
    metrics: aMetrics(),
    ...options,
  });
}

beforeEach(() => {
  clock = new FakeClock();
  events = [];
  images = new Set();
  stop = new AbortController();
  pull = pullWell;
  const inspect: FakeRoute = ({ path }) => {
    const name = path.slice("/images/".length, -"/json".length);
    return images.has(name)
      ? Response.json({ Id: `sha256:${name}`, RepoTags: [name], Config: { User: "1000", Volumes: { "/data": {} } } })
      : Response.json({ message: `No such image: ${name}` }, { status: 404 });
  };
  const routes: Record<string, FakeRoute> = { "POST /images/create": (request) => pull(request) };
  for (const ref of [REF, "busybox:latest"]) routes[`GET /images/${ref}/json`] = inspect;
  daemon = new FakeDaemon({ routes });
  start();
});
afterEach(() => {
  stop.abort();
  daemon[Symbol.dispose]();
});

const pullWell = ({ query }: Parameters<FakeRoute>[0]) => {
  images.add(`${query.get("fromImage")}:${query.get("tag")}`);
  return new Response("");
};
const failing = () => imageFailure(ensure("Always"));
const pulls = () => daemon.requests.filter(({ path }) => path === "/images/create").length;
const refuse = (message: string, status = 404) => {
  pull = () => Response.json({ message }, { status });
};

function ensure(imagePullPolicy: "Always" | "IfNotPresent" | "Never", image = REF, pod: Pod = aPod()) {
  return manager.ensureImage(pod, aContainer({ image, imagePullPolicy }), { pullSecrets: [] }, never);
}

describe("policies", () => {
  test.each([
    { policy: "Never", there: true, pulled: 0 },
    { policy: "IfNotPresent", there: true, pulled: 0 },
    { policy: "IfNotPresent", there: false, pulled: 1 },
    { policy: "Always", there: true, pulled: 1 },
    { policy: "Always", there: false, pulled: 1 },
  ] as const)("$policy, there: $there → $pulled pulls", async ({ policy, there, pulled }) => {
    if (there) images.add(REF);
    const info = await ensure(policy);
    expect(info).toMatchObject({ id: `sha256:${REF}`, ref: REF, user: "1000", volumes: ["/data"], repoTags: [REF] });
    expect(pulls()).toBe(pulled);
    expect(events).toEqual(
      pulled === 0
        ? [`Normal Pulled Container image "${REF}" already present on machine (spec.containers{app})`]
        : [
            `Normal Pulling Pulling image "${REF}" (spec.containers{app})`,
            // The clock stands still.
            `Normal Pulled Successfully pulled image "${REF}" in 0s (spec.containers{app})`,
          ],
    );
  });

  test("Never, not there", async () => {
    expect(await imageFailure(ensure("Never"))).toMatchObject({
      reason: "ErrImageNeverPull",
      message: `Container image "${REF}" is not present with pull policy of Never`,
    });
    expect(events).toEqual([
      `Warning ErrImageNeverPull Container image "${REF}" is not present with pull policy of Never (spec.containers{app})`,
      "Warning Failed Error: ErrImageNeverPull (spec.containers{app})",
    ]);
  });

  test("a name without tag means latest, and is shown as it was written", async () => {
    expect((await ensure("Always", "busybox")).ref).toBe("busybox:latest");
    expect(events[0]).toBe('Normal Pulling Pulling image "busybox" (spec.containers{app})');
  });

  test("a bad name", async () => {
    const message =
      'Failed to apply default image tag "UPPER/Case:bad": couldn\'t parse image reference "UPPER/Case:bad": invalid reference format: repository name must be lowercase';
    expect(await imageFailure(ensure("IfNotPresent", "UPPER/Case:bad"))).toMatchObject({
      reason: "InvalidImageName",
      message,
    });
    expect(events).toEqual([
      `Warning InspectFailed ${message} (spec.containers{app})`,
      "Warning Failed Error: InvalidImageName (spec.containers{app})",
    ]);
    expect(daemon.requests).toEqual([]);
  });

  /** The failure to have an image that the engine answers for like this. */
  async function failureOf(image: string, message: string, status: number) {
    const route = () => Response.json({ message }, { status });
    using other = new FakeDaemon({ routes: { [`GET /images/${image}/json`]: route } });
    start({}, other);
    return await imageFailure(ensure("IfNotPresent", image));
  }

  test("a name that only the engine finds bad", async () => {
    const why = "invalid reference format: repository name must be lowercase";
    expect(await failureOf("UPPER/x:1", `no such image: UPPER/x:1: ${why}`, 400)).toMatchObject({
      reason: "InvalidImageName",
      message: `Failed to apply default image tag "UPPER/x:1": couldn't parse image reference "UPPER/x:1": ${why}`,
    });
  });

  test("an engine that cannot answer is not an engine without the image", async () => {
    const error = await failureOf(REF, "layer corrupt", 500);
    expect(error.reason).toBe("ImageInspectError");
    expect(error.message).toContain("layer corrupt");
    expect(events[0]).toStartWith(`Warning InspectFailed Failed to inspect image "${REF}"`);
  });

  test("an init container's events say so", async () => {
    images.add(REF);
    const container = aContainer({ name: "setup", image: REF });
    const pod = aPod({ initContainers: [container] });
    await manager.ensureImage(pod, container, { pullSecrets: [] }, never);
    expect(events[0]).toEndWith("(spec.initContainers{setup})");
  });
});

describe("back-off", () => {
  test("10 s, 20 s, 40 s … 300 s, per pod and image; the reasons alternate as recorded", async () => {
    refuse(NOT_FOUND);
    for (const delayMs of [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
      expect(await imageFailure(ensure("IfNotPresent"))).toMatchObject({
        reason: "ErrImagePull",
        message: SHOWN,
        retryAfterMs: 2000,
        problem: "unknown",
      });
      expect(await imageFailure(ensure("IfNotPresent"))).toMatchObject({
        reason: "ImagePullBackOff",
        message: `Back-off pulling image "${REF}"`,
        retryAfterMs: delayMs,
      });
      await clock.advance(delayMs - 1);
      expect(await imageFailure(ensure("IfNotPresent"))).toMatchObject({ reason: "ImagePullBackOff", retryAfterMs: 1 });
      await clock.advance(1);
    }
    expect(pulls()).toBe(7);
    expect(events.slice(0, 5)).toEqual([
      `Normal Pulling Pulling image "${REF}" (spec.containers{app})`,
      `Warning Failed Failed to pull image "${REF}": ${SHOWN} (spec.containers{app})`,
      "Warning Failed Error: ErrImagePull (spec.containers{app})",
      `Normal BackOff Back-off pulling image "${REF}" (spec.containers{app})`,
      "Warning Failed Error: ImagePullBackOff (spec.containers{app})",
    ]);
  });

  test("two containers that wait for the same pull have failed once", async () => {
    refuse(NOT_FOUND);
    await Promise.all([failing(), failing()]);
    expect(await failing()).toMatchObject({ reason: "ImagePullBackOff", retryAfterMs: 10_000 });
    expect(pulls()).toBe(1);
  });

  test("the hint is logged once, however many pods wait", async () => {
    refuse(NOT_FOUND);
    const other = aPod({}, { uid: "other" });
    await Promise.all([failing(), failing(), imageFailure(ensure("Always", REF, other))]);
    await clock.advance(10_000);
    await failing();
    const warnings = logger.lines.filter((line) => line.startsWith("warn"));
    expect(warnings).toEqual([`warn Image "${REF}" cannot be pulled: check the name and the tag`]);
  });

  test("a pull is counted once for all waiting callers", async () => {
    const metrics = aMetrics();
    start({ metrics });
    refuse(NOT_FOUND);
    await Promise.all([failing(), failing()]);
    pull = pullWell;
    await clock.advance(10_000);
    await ensure("Always");
    expect(samplesOf(metrics.runtimeOperations)).toEqual(['{operation_type="pull_image"} 2']);
    expect(samplesOf(metrics.runtimeOperationErrors)).toEqual(['{operation_type="pull_image"} 1']);
  });

  test("another pod is not delayed by it", async () => {
    refuse(NOT_FOUND);
    await imageFailure(ensure("IfNotPresent"));
    expect(await imageFailure(ensure("IfNotPresent", REF, aPod({}, { uid: "other" })))).toMatchObject({
      reason: "ErrImagePull",
    });
  });

  test("an image that appears in another way ends it", async () => {
    refuse(NOT_FOUND);
    await imageFailure(ensure("IfNotPresent"));
    images.add(REF);
    expect((await ensure("IfNotPresent")).ref).toBe(REF);
  });

  test("a successful pull resets the back-off", async () => {
    refuse(NOT_FOUND);
    await failing();
    await clock.advance(10_000);
    await failing();
    await clock.advance(20_000);
    pull = pullWell;
    await ensure("Always");
    refuse(NOT_FOUND);
    expect(await failing()).toMatchObject({ reason: "ErrImagePull" });
    expect(await failing()).toMatchObject({ reason: "ImagePullBackOff", retryAfterMs: 10_000 });
  });

  test("an engine that was unreachable is not a failure of the image", async () => {
    daemon[Symbol.dispose]();
    await expect(ensure("Always")).rejects.toBeInstanceOf(DockerUnreachableError);
  });
});

describe("failures distinguished", () => {
  test.each([
    { status: 404, message: NOT_FOUND, reason: "ErrImagePull", problem: "unknown" },
    { status: 500, message: "unauthorized: authentication required", reason: "ErrImagePull", problem: "denied" },
    {
      status: 500,
      message: 'Get "http://127.0.0.1:5999/v2/": dial tcp 127.0.0.1:5999: connect: connection refused',
      reason: "ErrImagePull",
      problem: "unreachable",
    },
    { status: 500, message: "x509: certificate signed by unknown authority", reason: "ErrImagePull", problem: "tls" },
    { status: 503, message: "Service Unavailable", reason: "RegistryUnavailable", problem: "unreachable" },
    { status: 500, message: "no space left on device", reason: "ErrImagePull", problem: "other" },
  ])("$status $message: $reason, $problem", async ({ status, message, reason, problem }) => {
    refuse(message, status);
    const error = await imageFailure(ensure("IfNotPresent"));
    expect({ reason: error.reason as string, problem: error.problem as string }).toEqual({ reason, problem });
    expect(error.message).toBe(
      reason === "RegistryUnavailable"
        ? `image pull failed for ${REF} because the registry is unavailable.`
        : `rpc error: code = Unknown desc = Error response from daemon: ${message}`,
    );
  });

  test("a stalled pull is cancelled", async () => {
    start({ limits: { ...LIMITS, progressDeadlineMs: 30 } });
    pull = () => new Response(new ReadableStream({ start() {} }));
    const error = await imageFailure(ensure("IfNotPresent"));
    expect(error).toMatchObject({ reason: "ErrImagePull", problem: "stalled" });
    expect(error.message).toContain("no progress");
  });
});

describe("concurrent requests", () => {
  test.each([
    { limits: { maxParallel: 1 }, begun: [1, 2, 3] },
    { limits: { maxParallel: 0 }, begun: [3] },
    { limits: { perSecond: 2, burst: 1 }, begun: [1, 2, 3] },
  ])("pulls begin within the limits: $limits", async ({ limits, begun }) => {
    start({ limits: { ...LIMITS, ...limits } });
    const ends: (() => void)[] = [];
    pull = (request) => new Promise((resolve) => ends.push(() => resolve(pullWell(request))));
    for (const name of ["a", "b", "c"]) manager.pull(`127.0.0.1:5000/oracle/${name}:1`, stop.signal).catch(() => {});
    for (const count of begun) {
      await until(`${count} pulls`, () => pulls() === count);
      await settle();
      expect(pulls()).toBe(count);
      if ("perSecond" in limits) await clock.advance(500);
      else ends.shift()?.();
    }
  });

  test("one pull per image, an event for each", async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    pull = (request) => go.then(() => pullWell(request));
    const waiting = Array.from({ length: 20 }, (_, index) =>
      ensure("IfNotPresent", REF, aPod({}, { uid: `pod${index}` })),
    );
    await until("all to wait", () => events.length === 20);
    resolve();
    await Promise.all(waiting);
    expect(pulls()).toBe(1);
    expect(events.filter((event) => event.includes("Successfully pulled"))).toHaveLength(20);
  });

  test("all credentials are tried; a pod without any does not profit from the pull of one that has them", async () => {
    const auth = (password: string) => ({ username: "puller", password, serveraddress: "127.0.0.1:5000" });
    start({ credentials: { lookUp: async (_, secrets) => (secrets.length > 0 ? [auth("old"), auth("s3cret")] : []) } });
    pull = (request) => {
      const sent = Buffer.from(request.headers.get("X-Registry-Auth") ?? "", "base64url").toString();
      if (sent.includes("s3cret")) return pullWell(request);
      return Response.json({ message: "unauthorized: authentication required" }, { status: 500 });
    };
    const container = aContainer({ image: REF, imagePullPolicy: "Always" });
    const outcomes = await Promise.allSettled(
      [[{ metadata: { name: "regcred" }, type: "" }], []].map((pullSecrets, index) =>
        manager.ensureImage(aPod({}, { uid: `pod${index}` }), container, { pullSecrets }, never),
      ),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(JSON.stringify([events, logger.lines])).not.toContain("s3cret");
  });

  test("the signal of the last waiting caller ends the pull", async () => {
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    pull = () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode("{}\n")),
          cancel: () => resolve(),
        }),
      );
    const call = manager.ensureImage(aPod(), aContainer({ image: REF }), { pullSecrets: [] }, stop.signal);
    await until("the pull to begin", () => pulls() === 1);
    stop.abort(new Error("shutting down"));
    await expect(call).rejects.toThrow("shutting down");
    await gone;
  });

  test("progress is reported with the image's name", async () => {
    const seen: string[] = [];
    start({ onProgress: ({ image, layersDone, layers }) => void seen.push(`${image} ${layersDone}/${layers}`) });
    pull = () => {
      images.add(REF);
      return new Response(
        '{"id":"a","status":"Downloading","progressDetail":{"current":1,"total":2}}\n{"id":"a","status":"Pull complete"}\n',
      );
    };
    await ensure("IfNotPresent");
    expect(seen).toEqual([`${REF} 0/1`, `${REF} 1/1`]);
  });
});
