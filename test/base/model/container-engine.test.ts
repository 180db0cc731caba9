import { describe } from "bun:test";
import type { EngineImage, ImageEngine, ImageInfo } from "../../../src/base/model/container-engine.ts";
import { toImageKey } from "../../../src/docker/docker-images.ts";
import { testEngineContract } from "../../support/engine-contract.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { FakeContainers } from "../../support/fake-containers.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { FakeVolumeEngine } from "../../support/volume-world.ts";

/** An engine with one image. */
function someImages(): ImageEngine {
  const id = "sha256:busybox";
  const image = { user: "", repoTags: ["busybox:test"], sizeBytes: 1 } as Partial<ImageInfo> as ImageInfo;
  const names = [id, ...image.repoTags];
  const listed = { id, tags: image.repoTags, keys: image.repoTags.map(toImageKey), isPause: false };
  return {
    imageStatus: async (ref) => (names.includes(ref) ? { ...image, id, ref } : undefined),
    list: async () => [listed as Partial<EngineImage> as EngineImage],
    remove: async () => true,
    pull: () => Promise.reject(new Error("no registry")),
  };
}

describe("the fake engine of the tests", () => {
  testEngineContract(() => {
    const clock = new FakeClock();
    return {
      pods: new FakeEngine(clock),
      containers: new FakeContainers(),
      images: someImages(),
      volumes: new FakeVolumeEngine(),
      finish: async (step) => {
        await clock.advance(100);
        return step;
      },
    };
  });
});
