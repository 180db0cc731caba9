import { expect, test } from "bun:test";
import { PullProgress, registryProblem } from "../../src/docker/docker-images.ts";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
import type { ProgressLine } from "../../src/docker/engine/schemas.ts";
import { someDockerImages } from "../support/docker-engine.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeDaemon } from "../support/fake-daemon.ts";

const LIST = [
  { Id: "sha256:a", RepoTags: ["web:1"], RepoDigests: ["web@sha256:d"], Created: 1, Size: 700 },
  { Id: "sha256:b", RepoTags: ["<none>:<none>"], RepoDigests: null, Created: 1, Size: 500 },
];

/** `answers`: a sequence of answers to the list; the last one stays. */
function setUp(apiVersion: string, ...answers: (() => Response)[]) {
  const asked: string[] = [];
  const daemon = new FakeDaemon({
    apiVersion,
    routes: {
      "GET /images/json": () => {
        asked.push("list");
        return (answers.length > 1 ? answers.shift() : answers[0])?.() ?? Response.json(LIST);
      },
      "GET /system/df": ({ query }) => {
        asked.push(`df ${query.get("type")}`);
        return Response.json(apiVersion === "1.52" ? { ImageUsage: { TotalSize: 900 } } : { LayersSize: 900 });
      },
    },
  });
  const clock = new FakeClock();
  const images = someDockerImages(new DockerClient({ kind: "unix", path: daemon.socketPath }), clock);
  return { asked, clock, daemon, images };
}

test.each([
  { api: "1.41", bytes: 1200, asked: ["list"] },
  { api: "1.42", bytes: 900, asked: ["list", "df image"] },
  { api: "1.52", bytes: 900, asked: ["list", "df image"] },
])("API $api: all images take up $bytes", async ({ api, bytes, asked }) => {
  const world = setUp(api);
  using _ = world.daemon;
  expect(await world.images.inventory()).toEqual({
    bytes,
    images: [
      { id: "sha256:a", names: ["web@sha256:d", "web:1"], sizeBytes: 700, createdSeconds: 1 },
      { id: "sha256:b", names: [], sizeBytes: 500, createdSeconds: 1 },
    ],
  });
  expect(world.asked).toEqual([...asked]);
});

test("however many ask, the engine is asked once a minute", async () => {
  const { asked, clock, daemon, images } = setUp("1.41");
  using _ = daemon;
  await Promise.all([images.inventory(), images.inventory()]);
  await clock.advance(59_000);
  await images.inventory();
  expect(asked).toEqual(["list"]);
  await clock.advance(1_000);
  await images.inventory();
  expect(asked).toEqual(["list", "list"]);
});

test("an error of the engine is returned, and the next caller asks again", async () => {
  const broken = () => Response.json({ message: "no store" }, { status: 500 });
  const { daemon, images } = setUp("1.41", broken, () => Response.json([]));
  using _ = daemon;
  await expect(images.inventory()).rejects.toThrow("no store");
  expect(await images.inventory()).toEqual({ bytes: 0, images: [] });
});

test.each([
  { text: "pull access denied for x, repository does not exist or may require 'docker login'", want: "denied" },
  { text: 'Head "http://r/v2/": no basic auth credentials', want: "denied" },
  { text: "http: server gave HTTP response to HTTPS client", want: "tls" },
  { text: "dial tcp: lookup r.io: no such host", want: "unreachable" },
  { text: "net/http: request canceled (Client.Timeout exceeded while awaiting headers)", want: "unreachable" },
  { text: "no matching manifest for linux/amd64 in the manifest list entries", want: "unknown" },
] as const)("$text: $want", ({ text, want }) => {
  expect(registryProblem(text)).toBe(want);
});

const line = (id: string, status: string, current = 0, total = 0) =>
  ({ id, status, progressDetail: { current, total } }) as ProgressLine;

test("layers add up as the engine reports them", () => {
  const progress = new PullProgress("app:1");
  const steps = [
    line("1", "Pulling from app"),
    line("a", "Pulling fs layer"),
    line("b", "Already exists"),
    line("a", "Downloading", 40, 100),
    line("a", "Download complete"),
    line("a", "Extracting", 10, 100),
    line("a", "Pull complete"),
    line("", "Status: Downloaded newer image for app:1"),
  ].map((step) => progress.add(step));
  expect(
    steps.map(({ layers, layersDone, downloadedBytes, totalBytes }) => [
      layers,
      layersDone,
      downloadedBytes,
      totalBytes,
    ]),
  ).toEqual([
    [0, 0, 0, 0],
    [1, 0, 0, 0],
    [2, 1, 0, 0],
    [2, 1, 40, 100],
    [2, 1, 100, 100],
    [2, 1, 100, 100],
    [2, 2, 100, 100],
    [2, 2, 100, 100],
  ]);
  expect(steps[0]?.image).toBe("app:1");
});
