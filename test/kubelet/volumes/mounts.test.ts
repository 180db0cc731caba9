import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Container, Volume } from "../../../src/base/api/pod.ts";
import { nfsVolumeName } from "../../../src/kubelet/volumes/volume-plugins.ts";
import { PodStepError } from "../../../src/plan/waiting-reasons.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { mounting, tempDirs } from "../../support/temp-dir.ts";
import { aManager, firstContainer, NO_OBJECTS, podWith, SIGNAL } from "../../support/volume-world.ts";

const tempDir = tempDirs();
const withMounts = test.if(mounting.ok);

describe("mounts", () => {
  const H: Volume = { name: "h", hostPath: { path: "/srv/data", type: "" } };

  async function mountsOf(
    mounts: NonNullable<Container["volumeMounts"]>,
    volumes: Volume[] = [H],
    env = [{ name: "A", value: "a" }],
  ) {
    const { manager } = aManager(tempDir());
    const container = aContainer({ volumeMounts: mounts });
    const pod = aPod({ containers: [container], volumes }, { uid: "uid1" });
    return await manager.mountsFor(pod, container, env, SIGNAL);
  }

  test("keep the order of volumeMounts, with read-only, propagation and recursion", async () => {
    const bind = { type: "bind", source: "/srv/data" } as const;
    expect(
      await mountsOf([
        { name: "h", mountPath: "/none", mountPropagation: "None" },
        { name: "h", mountPath: "relative" },
        { name: "h", mountPath: "/h2cro", mountPropagation: "HostToContainer", readOnly: true },
        { name: "h", mountPath: "/bidi", mountPropagation: "Bidirectional" },
        { name: "h", mountPath: "/rro", readOnly: true, recursiveReadOnly: "Enabled" },
        { name: "h", mountPath: "/rrod", readOnly: true, recursiveReadOnly: "Disabled" },
      ]),
    ).toEqual([
      { ...bind, target: "/none", readOnly: false },
      { ...bind, target: "/relative", readOnly: false },
      { ...bind, target: "/h2cro", readOnly: true, propagation: "HostToContainer" },
      { ...bind, target: "/bidi", readOnly: false, propagation: "Bidirectional" },
      { ...bind, target: "/rro", readOnly: true, recursiveReadOnly: "Enabled" },
      { ...bind, target: "/rrod", readOnly: true },
    ]);
  });

  test.each<{ mount: NonNullable<Container["volumeMounts"]>[number]; want: string }>([
    { mount: { name: "x", mountPath: "/x" }, want: 'cannot find volume "x" to mount into container "app"' },
    {
      mount: { name: "h", mountPath: "/x", subPath: "/etc" },
      want: "error SubPath `/etc` must not be an absolute path",
    },
    {
      mount: { name: "h", mountPath: "/x", subPath: "a/../b" },
      want: "unable to provision SubPath `a/../b`: must not contain '..'",
    },
    { mount: { name: "h", mountPath: "/x", subPathExpr: "$(A)/$(NONE)" }, want: "missing value for NONE" },
    {
      mount: { name: "h", mountPath: "/x", subPathExpr: "$(UP)" },
      want: "unable to provision SubPath `../x`: must not contain '..'",
    },
  ])("$want", async ({ mount, want }) => {
    await expect(
      mountsOf(
        [mount],
        [H],
        [
          { name: "UP", value: "../x" },
          { name: "A", value: "a" },
        ],
      ),
    ).rejects.toThrow(new PodStepError("CreateContainerConfigError", want));
  });

  test("a container that wants a device cannot have one", async () => {
    const { manager } = aManager(tempDir());
    const container = aContainer({ volumeDevices: [{ name: "h", devicePath: "/dev/x" }] });
    await expect(
      manager.mountsFor(aPod({ containers: [container] }, { uid: "uid1" }), container, [], SIGNAL),
    ).rejects.toThrow('cannot find volume "h" to pass into container "app"');
  });
});

describe("Docker volumes", () => {
  /** Ends in a hash of what is mounted. */
  const NFS_NAME = nfsVolumeName("uid1", { name: "n", nfs: { server: "192.0.2.7", path: "/export", readOnly: true } });

  test("a claim is a volume of that name, made with our labels when missing, kept at the end", async () => {
    const { manager, engine } = aManager(tempDir());
    engine.volumes.set("by-hand", { name: "by-hand", driver: "local", mountpoint: "", options: {}, labels: {} });
    const pod = podWith([
      { name: "a", persistentVolumeClaim: { claimName: "data" } },
      { name: "b", persistentVolumeClaim: { claimName: "by-hand", readOnly: true } },
    ]);
    await manager.setUp(pod, NO_OBJECTS, SIGNAL);
    expect(engine.volumes.get("data")?.labels).toEqual({
      "kubelet-ts.io/claim": "data",
      "kubelet-ts.io/claim-namespace": "default",
    });
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { type: "volume", source: "data", target: "/a", readOnly: false },
      { type: "volume", source: "by-hand", target: "/b", readOnly: true },
    ]);
    await manager.tearDown("uid1", SIGNAL);
    expect([...engine.volumes.keys()]).toEqual(["by-hand", "data"]);
  });

  test("claims of other namespaces do not clash", async () => {
    const { manager, engine } = aManager(tempDir());
    const pod = podWith([{ name: "a", persistentVolumeClaim: { claimName: "data" } }]);
    await manager.setUp({ ...pod, metadata: { ...pod.metadata, namespace: "shop" } }, NO_OBJECTS, SIGNAL);
    expect([...engine.volumes.keys()]).toEqual(["shop_data"]);
  });

  test("nfs is a volume of the pod, gone with it", async () => {
    const { manager, engine } = aManager(tempDir());
    const pod = podWith([{ name: "n", nfs: { server: "192.0.2.7", path: "/export", readOnly: true } }]);
    await manager.setUp(pod, NO_OBJECTS, SIGNAL);
    expect(engine.volumes.get(NFS_NAME)).toEqual({
      name: NFS_NAME,
      driver: "local",
      mountpoint: "",
      options: { type: "nfs", device: ":/export", o: "addr=192.0.2.7,nfsvers=4.1,ro" },
      labels: { "io.kubernetes.pod.uid": "uid1" },
    });
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { type: "volume", source: NFS_NAME, target: "/n", readOnly: true },
    ]);
    await manager.tearDown("uid1", SIGNAL);
    expect(engine.volumes.size).toBe(0);
  });

  test("options of a PersistentVolume of nfs are passed on, and may choose the version", async () => {
    const { manager, engine } = aManager(tempDir());
    const nfs = { server: "192.0.2.7", path: "/export", mountOptions: ["nfsvers=4.2", "soft"] };
    await manager.setUp(podWith([{ name: "n", nfs }]), NO_OBJECTS, SIGNAL);
    const [volume] = engine.volumes.values();
    expect(volume?.options).toEqual({ type: "nfs", device: ":/export", o: "addr=192.0.2.7,rw,nfsvers=4.2,soft" });
  });

  describe("a PersistentVolume of the kind local", () => {
    const localWith = (path: string, mountOptions?: string[]) => ({
      name: "l",
      hostPath: { path, type: "Directory" as const, local: { readOnly: false, ...(mountOptions && { mountOptions }) } },
    });

    test.skipIf(process.getuid?.() !== 0)("gets the group of the pod once", async () => {
      const { manager } = aManager(tempDir());
      const directory = tempDir();
      const pod = podWith([localWith(directory)], { securityContext: { fsGroup: 2345 } });
      await manager.setUp(pod, NO_OBJECTS, SIGNAL);
      expect(statSync(directory)).toMatchObject({ gid: 2345 });
      writeFileSync(join(directory, "of-root"), "");
      await manager.setUp({ ...pod }, NO_OBJECTS, SIGNAL);
      expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toMatchObject([{ source: directory }]);
      // Directories hand their group on; the mode is what a second change would show.
      expect(statSync(join(directory, "of-root")).mode & 0o020).toBe(0);
    });

    withMounts("is mounted with its options, and only unmounted when the pod is gone", async () => {
      const { manager } = aManager(tempDir());
      const directory = tempDir();
      writeFileSync(join(directory, "file"), "kept");
      const pod = podWith([localWith(directory, ["noexec", "ro"])]);
      await manager.setUp(pod, NO_OBJECTS, SIGNAL);
      await manager.setUp({ ...pod }, NO_OBJECTS, SIGNAL);
      const [mount] = await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL);
      const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
      const shown = lines.filter((line) => line.includes(` ${mount!.source} `));
      expect(shown).toHaveLength(1);
      expect(shown[0]).toMatch(/ ro,.*noexec/);
      await manager.tearDown("uid1", SIGNAL);
      expect(existsSync(mount!.source)).toBe(false);
      expect(readFileSync(join(directory, "file"), "utf8")).toBe("kept");
    });

    test("is refused with options where nothing can be mounted", async () => {
      const { manager } = aManager(tempDir(), { mounts: false });
      const pod = podWith([localWith(tempDir(), ["noexec"])]);
      await expect(manager.setUp(pod, NO_OBJECTS, SIGNAL)).rejects.toThrow("mount options of local volumes");
    });
  });

  test("a subPath of one that is no plain directory needs API 1.45", async () => {
    const { manager, engine } = aManager(tempDir());
    const pod = podWith([{ name: "n", nfs: { server: "192.0.2.7", path: "/export", readOnly: true } }], {}, [
      { name: "n", mountPath: "/sub", subPath: "a" },
    ]);
    await manager.setUp(pod, NO_OBJECTS, SIGNAL);
    await expect(manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).rejects.toThrow("needs Docker 26 (API 1.45)");
    engine.version = "1.45";
    expect((await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL))[1]).toEqual({
      type: "volume",
      source: NFS_NAME,
      target: "/sub",
      readOnly: true,
      subPath: "a",
    });
  });

  withMounts("a subPath of a plain one is bound from the host, and fsGroup owns it", async () => {
    const { manager, engine } = aManager(tempDir());
    const mountpoint = tempDir();
    engine.volumes.set("data", { name: "data", driver: "local", mountpoint, options: {}, labels: {} });
    const pod = podWith(
      [{ name: "a", persistentVolumeClaim: { claimName: "data" } }],
      { securityContext: { fsGroup: 3333 } },
      [{ name: "a", mountPath: "/sub", subPath: "x" }],
    );
    await manager.setUp(pod, NO_OBJECTS, SIGNAL);
    const source = manager.directories("uid1").subPath("a", "app", 1);
    expect((await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL))[1]).toEqual({
      type: "bind",
      source,
      target: "/sub",
      readOnly: false,
    });
    expect(statSync(mountpoint).gid).toBe(3333);
    expect(statSync(source).ino).toBe(statSync(join(mountpoint, "x")).ino);
  });
});

describe("image volumes", () => {
  const IMAGE: Volume = { name: "i", image: { reference: "data:1", pullPolicy: "Always" } };

  test("engines from 1.48 on mount them by id, pulled once", async () => {
    const { manager, engine } = aManager(tempDir());
    engine.version = "1.48";
    const pod = podWith([IMAGE], {}, [{ name: "i", mountPath: "/sub", subPath: "etc" }]);
    await manager.setUp(pod, NO_OBJECTS, SIGNAL);
    await manager.setUp({ ...pod }, NO_OBJECTS, SIGNAL);
    expect(engine.pulls).toEqual(["data:1 Always"]);
    const image = { type: "image", source: "sha256:data:1", readOnly: true } as const;
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { ...image, target: "/i" },
      { ...image, target: "/sub", subPath: "etc" },
    ]);
  });

  test("for older engines they are unpacked, and mounted read-only", async () => {
    const { manager, engine } = aManager(tempDir());
    const contents = tempDir();
    mkdirSync(join(contents, "etc"));
    writeFileSync(join(contents, "etc/conf"), "from the image");
    writeFileSync(join(contents, ".dockerenv"), "");
    const tar = Bun.spawnSync(["tar", "-c", "-C", contents, "."]);
    engine.archive = tar.stdout;
    const pod = podWith([IMAGE]);
    await manager.setUp(pod, NO_OBJECTS, SIGNAL);
    const directory = manager.directories("uid1").volume("image", "i");
    expect(readdirSync(directory)).toEqual(["etc"]);
    expect(readFileSync(join(directory, "etc/conf"), "utf8")).toBe("from the image");
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { type: "bind", source: directory, target: "/i", readOnly: true, relabel: true },
    ]);
  });

  test("a broken archive is a failed mount, and is tried again", async () => {
    const { manager, engine } = aManager(tempDir());
    engine.archive = Buffer.from("this is not a tar archive ".repeat(100));
    const pod = podWith([IMAGE]);
    for (let time = 0; time < 2; time++) {
      const error = await manager.setUp(pod, NO_OBJECTS, SIGNAL).catch((thrown) => thrown);
      expect(error.message).toStartWith(
        'MountVolume.SetUp failed for volume "i" : cannot unpack image sha256:data:1: tar: ',
      );
    }
    expect(engine.pulls).toHaveLength(2);
  });
});
