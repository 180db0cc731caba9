import { expect, test } from "bun:test";
import { claimVolumeName } from "../../../src/kubelet/volumes/volume-plugins.ts";
import { aPod } from "../../support/builders.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { aManager, NO_OBJECTS, podWith, SIGNAL } from "../../support/volume-world.ts";

const tempDir = tempDirs();

test.each([
  { when: "is a limit where the engine can set one", bytes: 1024, want: { size: "1024" } },
  { when: "is left out", bytes: 1024, refusal: "create c: quota size requested but no quota support", want: {} },
  { when: "is unknown without a document", bytes: undefined, want: {} },
  { when: "another refusal", bytes: 1024, refusal: "no space left on device", want: "no space left on device" },
])("the size of a claim $when", async ({ bytes, refusal, want }) => {
  const { manager, engine } = aManager(tempDir(), { claimBytesOf: () => bytes });
  const create = engine.createVolume.bind(engine);
  engine.createVolume = async (volume) => {
    if (refusal && "size" in volume.options) throw new Error(refusal);
    return create(volume);
  };
  const pod = podWith([{ name: "c", persistentVolumeClaim: { claimName: "cc" } }]);
  const setUp = manager.setUp(pod, NO_OBJECTS, SIGNAL).then(() => engine.volumes.get("cc")?.options);
  if (typeof want === "string") await expect(setUp).rejects.toThrow(want);
  else expect(await setUp).toEqual(want as Record<string, string>);
});

test.each([
  ["default", "data", "data"],
  ["shop", "data", "shop_data"],
  // Docker refuses names of one character.
  ["default", "w", "default_w"],
])("the Docker volume of a claim in namespace %s named %s is %s", (namespace, claimName, want) => {
  expect(claimVolumeName(aPod({}, { namespace }), claimName)).toBe(want);
});
