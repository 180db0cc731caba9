import { expect, test } from "bun:test";
import { DockerClient } from "../../src/docker/engine/docker-client.ts";
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
