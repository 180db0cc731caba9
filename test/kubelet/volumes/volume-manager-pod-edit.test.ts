import { describe, expect, test } from "bun:test";
import { readdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod, Volume } from "../../../src/base/api/pod.ts";
import { Mounter } from "../../../src/kubelet/volumes/mounter.ts";
import type { VolumeManager } from "../../../src/kubelet/volumes/volume-manager.ts";
import { isRoot, mounting, tempDirs } from "../../support/temp-dir.ts";
import type { FakeVolumeEngine } from "../../support/volume-world.ts";
import { aManager, firstContainer, objects, podWith, SIGNAL } from "../../support/volume-world.ts";

const tempDir = tempDirs();
const withMounts = test.if(mounting.ok);
const forRoot = test.if(isRoot);
const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8);

describe("an edit of the pod", () => {
  const edited = async (before: Pod, after: Pod, check: (manager: VolumeManager, engine: FakeVolumeEngine) => void) => {
    const { manager, engine, logger } = aManager(tempDir());
    await manager.setUp(before, objects("1"), SIGNAL);
    check(manager, engine);
    await manager.setUp(after, objects("1"), SIGNAL);
    return { manager, engine, logger };
  };
  const memory = (sizeLimit: string) => podWith([{ name: "m", emptyDir: { medium: "Memory", sizeLimit } }]);
  const pathOf = (manager: VolumeManager) => manager.directories("uid1").volume("empty-dir", "m");
  const put = (manager: VolumeManager) => writeFileSync(join(pathOf(manager), "file"), "x");

  withMounts("of a tmpfs' limit changes its size and keeps its contents", async () => {
    const { manager } = await edited(memory("1Mi"), memory("3Mi"), put);
    const { blocks, bsize } = statfsSync(pathOf(manager));
    expect(blocks * bsize).toBe(3 * 2 ** 20);
    expect(readdirSync(pathOf(manager))).toEqual(["file"]);
  });

  withMounts("of the pod's memory limit lets a tmpfs grow, and never keeps the pod from starting", async () => {
    const bounded = (memory: string) => {
      const pod = podWith([{ name: "m", emptyDir: { medium: "Memory" } }]);
      for (const container of pod.spec.containers) container.resources = { limits: { memory } };
      return pod;
    };
    const sizeOf = (manager: VolumeManager) => {
      const { blocks, bsize } = statfsSync(pathOf(manager));
      return blocks * bsize;
    };
    const full = (manager: VolumeManager) => writeFileSync(join(pathOf(manager), "file"), Buffer.alloc(2 ** 20));
    const grown = await edited(bounded("1Mi"), bounded("3Mi"), full);
    expect(sizeOf(grown.manager)).toBe(3 * 2 ** 20);
    await grown.manager.setUp(bounded("64Ki"), objects("1"), SIGNAL);
    expect(readdirSync(pathOf(grown.manager))).toEqual(["file"]);
  });

  withMounts("from memory to disk begins empty", async () => {
    const { manager } = await edited(memory("1Mi"), podWith([{ name: "m", emptyDir: {} }]), put);
    expect(new Mounter().listBeneath(pathOf(manager))).toEqual([]);
    expect(readdirSync(pathOf(manager))).toEqual([]);
    expect(modeOf(pathOf(manager))).toBe("777");
  });

  forRoot("of the fsGroup gives the files to the new group", async () => {
    const volumes: Volume[] = [
      { name: "m", emptyDir: {} },
      { name: "c", configMap: { name: "cfg", defaultMode: 420 } },
    ];
    const group = (fsGroup: number) => podWith(volumes, { securityContext: { fsGroup } });
    const { manager } = await edited(group(3333), group(4444), put);
    expect(statSync(join(pathOf(manager), "file")).gid).toBe(4444);
    expect(statSync(join(manager.directories("uid1").volume("configmap", "c"), "k")).gid).toBe(4444);
  });

  test("of an image's reference uses the other image", async () => {
    const image = (reference: string) => podWith([{ name: "i", image: { reference, pullPolicy: "IfNotPresent" } }]);
    const { manager, engine } = await edited(image("a:1"), image("a:2"), () => {});
    engine.version = "1.48";
    expect(engine.pulls).toEqual(["a:1 IfNotPresent", "a:2 IfNotPresent"]);
    const pod = image("a:2");
    expect((await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL))[0]?.source).toBe("sha256:a:2");
  });

  test("of an nfs path makes another volume", async () => {
    const nfs = (path: string) => podWith([{ name: "n", nfs: { server: "s", path } }]);
    const { manager, engine } = await edited(nfs("/a"), nfs("/b"), () => {});
    expect([...engine.volumes.values()].map(({ options }) => options.device)).toEqual([":/a", ":/b"]);
    await manager.tearDown("uid1", SIGNAL);
    expect(engine.volumes.size).toBe(0);
  });

  withMounts("keeps removed volumes until removeUnused is called", async () => {
    const sub = [{ name: "m", mountPath: "/sub", subPath: "a" }];
    const before = podWith(
      [
        { name: "m", emptyDir: {} },
        { name: "s", secret: { secretName: "sec", defaultMode: 420 } },
        { name: "n", nfs: { server: "s", path: "/e" } },
        { name: "c", configMap: { name: "cfg", defaultMode: 420 } },
      ],
      {},
      sub,
    );
    const after = podWith([
      { name: "c", configMap: { name: "cfg", defaultMode: 420 } },
      { name: "s", emptyDir: {} },
    ]);
    const { manager, engine, logger } = await edited(before, after, put);
    await manager.mountsFor(before, firstContainer(before), [], SIGNAL);
    expect(readdirSync(pathOf(manager)).sort()).toEqual(["a", "file"]);
    await manager.removeUnused(after, SIGNAL);
    const directories = manager.directories("uid1");
    const left = readdirSync(directories.volumes).flatMap((plugin) =>
      readdirSync(join(directories.volumes, plugin)).map((name) => `${plugin} ${name}`),
    );
    expect(left.sort()).toEqual(["kubernetes.io~configmap c", "kubernetes.io~empty-dir s"]);
    expect(new Mounter().listBeneath(directories.pod)).toEqual([]);
    expect(engine.volumes.size).toBe(0);
    await manager.refresh(after, objects("2"), SIGNAL);
    expect(logger.lines).toEqual(['info Volume "c" of pod "default/web-node1" was brought up to date']);
  });
});
