import { describe, expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { claimVolumeName, setUpClaim } from "../../../src/kubelet/volumes/docker-volume.ts";
import { FakeVolumeEngine } from "../../support/fake-volume-engine.ts";

const POD = { metadata: { name: "p", namespace: "default" }, spec: { securityContext: {} } } as unknown as Pod;
const signal = new AbortController().signal;

/** The local driver on a file system without project quotas. */
class EngineWithoutQuota extends FakeVolumeEngine {
  override async createVolume(volume: Parameters<FakeVolumeEngine["createVolume"]>[0]): Promise<void> {
    if ("size" in volume.options) throw new Error("create c: quota size requested but no quota support");
    return super.createVolume(volume);
  }
}

const optionsAfter = async (engine: FakeVolumeEngine, sizeBytes?: number) => {
  await setUpClaim("cc", POD, engine, {}, undefined, signal, sizeBytes);
  return engine.volumes.get("cc")!.options;
};

describe("the size of a claim", () => {
  test("is a limit where the engine can set one", async () => {
    expect(await optionsAfter(new FakeVolumeEngine(), 1024)).toEqual({ size: "1024" });
  });
  test("is left out where it cannot", async () => {
    expect(await optionsAfter(new EngineWithoutQuota(), 1024)).toEqual({});
  });
  test("is unknown without a document", async () => {
    expect(await optionsAfter(new FakeVolumeEngine())).toEqual({});
  });
  test("other refusals are errors", async () => {
    const engine = new FakeVolumeEngine();
    engine.createVolume = async () => {
      throw new Error("no space left on device");
    };
    await expect(optionsAfter(engine, 1024)).rejects.toThrow("no space left");
  });
  test("a volume with a limit still gets the group of the pod", async () => {
    const engine = new FakeVolumeEngine();
    engine.volumes.set("cc", { name: "cc", driver: "local", mountpoint: "/v/c", options: { size: "1" }, labels: {} });
    const pod = { ...POD, spec: { securityContext: { fsGroup: 5 } } } as unknown as Pod;
    const groups: number[] = [];
    const applyFsGroup = async (_: string, { fsGroup }: { fsGroup: number }) => void groups.push(fsGroup);
    await setUpClaim("cc", pod, engine, {}, applyFsGroup, signal);
    expect(groups).toEqual([5]);
  });
});

test.each([
  ["default", "data", "data"],
  ["shop", "data", "shop_data"],
  // Docker refuses names of one character.
  ["default", "w", "default_w"],
])("the Docker volume of a claim in namespace %s named %s is %s", (namespace, claimName, want) => {
  expect(claimVolumeName({ ...POD, metadata: { ...POD.metadata, namespace } }, claimName)).toBe(want);
});
