import { describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Container, Pod, Volume } from "../../src/api/pod.ts";
import type { ObjectIndex } from "../../src/model/desired-pod.ts";
import { nfsVolumeName } from "../../src/volumes/docker-volume.ts";
import { Mounter } from "../../src/volumes/mounter.ts";
import { MountError, VolumeError } from "../../src/volumes/volume-error.ts";
import { usedVolumes, VolumeManager, type VolumeManagerOptions } from "../../src/volumes/volume-manager.ts";
import { aContainer, aPod } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeVolumeEngine } from "../support/fake-volume-engine.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { isRoot, mounting, tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();

const withMounts = test.if(mounting.ok);
const forRoot = test.if(isRoot);
const SIGNAL = new AbortController().signal;
const NO_OBJECTS: ObjectIndex = { configMaps: new Map(), secrets: new Map() };

const objects = (value: string): ObjectIndex => ({
  configMaps: new Map([["default/cfg", { metadata: { name: "cfg" }, data: { k: value } }]]),
  secrets: new Map([
    ["default/sec", { metadata: { name: "sec" }, type: "Opaque", data: { pw: btoa(`secret ${value}`) } }],
  ]),
});

function aManager(options: Partial<VolumeManagerOptions> = {}, { mounts = mounting.ok } = {}) {
  const engine = new FakeVolumeEngine();
  const logger = new RecordingLogger();
  const manager = new VolumeManager({
    rootDir: tempDir(),
    node: { name: "node1", ip: "192.0.2.1", cpuCount: 2, memoryBytes: 1024, bootId: "", machineId: "" },
    clock: new FakeClock(),
    logger,
    engine,
    ...(mounts && { mounter: new Mounter() }),
    ownerLabels: { "kubelet-ts.io/node": "node1" },
    ...options,
  });
  return { manager, engine, logger };
}

/** A pod whose one container mounts each volume at `/<name>`, then what `mounts` adds. */
function podWith(volumes: Volume[], spec: Partial<Pod["spec"]> = {}, mounts: Container["volumeMounts"] = []): Pod {
  const volumeMounts = [...volumes.map(({ name }) => ({ name, mountPath: `/${name}` })), ...mounts];
  return aPod(
    { containers: [aContainer({ volumeMounts })], volumes, ...spec },
    { uid: "uid1", labels: { app: "web" } },
  );
}

const firstContainer = (pod: Pod) => pod.spec.containers[0] as Container;
const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8);

describe("emptyDir (oracle 22)", () => {
  forRoot("0777 in the kubelet's place, contents stay over another setUp", async () => {
    const { manager } = aManager();
    const pod = podWith([{ name: "e", emptyDir: {} }]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    const { pod: podDir } = manager.directories("uid1");
    const path = join(podDir, "volumes/kubernetes.io~empty-dir/e");
    expect([modeOf(path), modeOf(join(path, "..")), modeOf(podDir)]).toEqual(["777", "755", "750"]);
    expect(existsSync(join(podDir, "plugins/kubernetes.io~empty-dir/e/ready"))).toBe(true);
    writeFileSync(join(path, "file"), "x");
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    expect(readdirSync(path)).toEqual(["file"]);
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { type: "bind", source: path, target: "/e", readOnly: false },
    ]);
  });

  forRoot("fsGroup: 2777 and the group (oracle 14)", async () => {
    const { manager } = aManager();
    await manager.setUp(
      podWith([{ name: "e", emptyDir: {} }], { securityContext: { fsGroup: 3333 } }),
      { objects: NO_OBJECTS },
      SIGNAL,
    );
    const path = manager.directories("uid1").volume("empty-dir", "e");
    expect(`${modeOf(path)} ${statSync(path).gid}`).toBe("2777 3333");
  });

  withMounts("Memory is a tmpfs of sizeLimit, 1777; without a limit of half the memory", async () => {
    const { manager } = aManager();
    const pod = podWith([
      { name: "m", emptyDir: { medium: "Memory", sizeLimit: "10Mi" } },
      { name: "all", emptyDir: { medium: "Memory" } },
    ]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    const [limited, whole] = ["m", "all"].map((name) => manager.directories("uid1").volume("empty-dir", name));
    const size = ({ blocks, bsize }: { blocks: number; bsize: number }) => blocks * bsize;
    expect(size(statfsSync(limited ?? ""))).toBe(10 * 2 ** 20);
    expect(size(statfsSync(whole ?? ""))).toBeGreaterThan(64 * 2 ** 20);
    expect(modeOf(limited ?? "")).toBe("1777");
    writeFileSync(join(limited ?? "", "file"), "x");
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    expect(readdirSync(limited ?? "")).toEqual(["file"]);
    expect(new Mounter().listBeneath(limited ?? "")).toHaveLength(1);
  });

  withMounts("a tmpfs that a reboot took away is mounted again", async () => {
    const { manager } = aManager();
    const pod = podWith([{ name: "m", emptyDir: { medium: "Memory" } }], { securityContext: { fsGroup: 3333 } });
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    const path = manager.directories("uid1").volume("empty-dir", "m");
    await new Mounter().unmount(path);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    expect(new Mounter().listBeneath(path)).toHaveLength(1);
    expect(`${modeOf(path)} ${statSync(path).gid}`).toBe("3777 3333");
  });

  test("Memory is refused where nothing can be mounted", async () => {
    const { manager } = aManager({}, { mounts: false });
    await expect(
      manager.setUp(podWith([{ name: "m", emptyDir: { medium: "Memory" } }]), { objects: NO_OBJECTS }, SIGNAL),
    ).rejects.toThrow(
      'MountVolume.SetUp failed for volume "m" : emptyDir with medium Memory needs a kubelet that runs as root and can mount',
    );
  });
});

describe("which volumes", () => {
  test("only those a container mounts, init containers included, or reads its environment from", () => {
    const volumes = ["init", "main", "file", "unused"].map((name) => ({ name, emptyDir: {} }));
    const fileKeyRef = { volumeName: "file", path: "env", key: "A", optional: false };
    const pod = aPod({
      volumes,
      initContainers: [aContainer({ volumeMounts: [{ name: "init", mountPath: "/i" }] })],
      containers: [
        aContainer({
          volumeMounts: [{ name: "main", mountPath: "/m" }],
          env: [{ name: "A", valueFrom: { fileKeyRef } }],
        }),
      ],
    });
    expect(usedVolumes(pod).map(({ name }) => name)).toEqual(["init", "main", "file"]);
  });

  test("every failure is told, the other volumes are ready", async () => {
    const { manager } = aManager();
    const pod = podWith([
      { name: "a", hostPath: { path: "/dev/null", type: "BlockDevice" } },
      { name: "b", configMap: { name: "no", defaultMode: 420 } },
      { name: "c", emptyDir: {} },
      { name: "d", csi: { driver: "d.example" } } as Volume,
    ]);
    const error = await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(VolumeError);
    expect(error.reason).toBe("FailedMount");
    expect(error.volume).toBe("a");
    expect(error.failures.map(({ message }: { message: string }) => message)).toEqual([
      'MountVolume.SetUp failed for volume "a" : hostPath type check failed: /dev/null is not a block device',
      'MountVolume.SetUp failed for volume "b" : configmap "no" not found',
      'MountVolume.SetUp failed for volume "d" : volumes of type csi are not supported without a cluster',
    ]);
    expect(existsSync(manager.directories("uid1").volume("empty-dir", "c"))).toBe(true);
  });

  test("an abort is an abort, no failed mount", async () => {
    const { manager } = aManager();
    const stopped = AbortSignal.abort(new Error("stop"));
    await expect(
      manager.setUp(podWith([{ name: "e", emptyDir: {} }]), { objects: NO_OBJECTS }, stopped),
    ).rejects.toThrow("stop");
  });

  test.each(["../../etc", "a/b", "..", ".", ""])("uid %p cannot name a directory", (uid) => {
    expect(() => aManager().manager.directories(uid)).toThrow("cannot be a directory name");
  });
});

describe("files from objects", () => {
  const VOLUMES: Volume[] = [
    { name: "c", configMap: { name: "cfg", defaultMode: 0o644 } },
    { name: "s", secret: { secretName: "sec", defaultMode: 0o400 } },
    {
      name: "d",
      downwardAPI: {
        defaultMode: 0o644,
        items: [{ path: "l", fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels" } }],
      },
    },
    {
      name: "p",
      projected: { defaultMode: 0o644, sources: [{ configMap: { name: "cfg" } }, { secret: { name: "sec" } }] },
    },
  ];
  const directory = (
    manager: VolumeManager,
    plugin: "configmap" | "secret" | "downward-api" | "projected",
    name: string,
  ) => manager.directories("uid1").volume(plugin, name);

  test("are written, mounted read-only, and follow the objects", async () => {
    const { manager } = aManager();
    const pod = podWith(VOLUMES);
    await manager.setUp(pod, { objects: objects("1") }, SIGNAL);
    const read = (plugin: Parameters<typeof directory>[1], path: string) =>
      readFileSync(join(directory(manager, plugin, ""), path), "utf8");
    const all = () => [
      read("configmap", "c/k"),
      read("secret", "s/pw"),
      read("downward-api", "d/l"),
      read("projected", "p/k"),
      read("projected", "p/pw"),
    ];
    expect(all()).toEqual(["1", "secret 1", 'app="web"', "1", "secret 1"]);
    expect((await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).map(({ readOnly }) => readOnly)).toEqual([
      true,
      true,
      true,
      true,
    ]);

    expect(await manager.refresh(pod, objects("1"))).toEqual({ changed: [], failures: [] });
    expect(await manager.refresh(pod, objects("2"))).toEqual({ changed: ["c", "s", "p"], failures: [] });
    const relabelled = { ...pod, metadata: { ...pod.metadata, labels: { app: "db" } } };
    expect(await manager.refresh(relabelled, objects("2"))).toEqual({ changed: ["d"], failures: [] });
    expect(all()).toEqual(["2", "secret 2", 'app="db"', "2", "secret 2"]);
  });

  test("keep what they had when an object vanishes", async () => {
    const { manager } = aManager();
    const pod = podWith(VOLUMES.slice(0, 2));
    await manager.setUp(pod, { objects: objects("1") }, SIGNAL);
    expect((await manager.refresh(pod, NO_OBJECTS)).failures).toEqual([
      { volume: "c", message: 'MountVolume.SetUp failed for volume "c" : configmap "cfg" not found' },
      { volume: "s", message: 'MountVolume.SetUp failed for volume "s" : secret "sec" not found' },
    ]);
    expect(readFileSync(join(directory(manager, "configmap", "c"), "k"), "utf8")).toBe("1");
  });

  test("a volume that was never set up is left to setUp", async () => {
    const { manager } = aManager();
    expect(await manager.refresh(podWith(VOLUMES), objects("1"))).toEqual({ changed: [], failures: [] });
    expect(manager.listPodDirs()).toEqual([]);
  });

  withMounts("secrets and projections never touch a disk", async () => {
    const { manager } = aManager();
    await manager.setUp(podWith(VOLUMES), { objects: objects("1") }, SIGNAL);
    const mounted = new Mounter().listBeneath(manager.directories("uid1").pod);
    expect(mounted.sort()).toEqual([directory(manager, "projected", "p"), directory(manager, "secret", "s")].sort());
  });

  forRoot("fsGroup may read them, and a refresh does not rewrite what is the same", async () => {
    const { manager } = aManager();
    const pod = podWith(VOLUMES, { securityContext: { fsGroup: 3333 } });
    await manager.setUp(pod, { objects: objects("1") }, SIGNAL);
    const file = statSync(join(directory(manager, "secret", "s"), "pw"));
    expect(`${(file.mode & 0o7777).toString(8)} ${file.gid}`).toBe("440 3333");
    expect(await manager.refresh(pod, objects("1"))).toEqual({ changed: [], failures: [] });
    await manager.refresh(pod, objects("2"));
    expect(statSync(join(directory(manager, "configmap", "c"), "k")).gid).toBe(3333);
  });
});

describe("mounts", () => {
  const H: Volume = { name: "h", hostPath: { path: "/srv/data", type: "" } };

  async function mountsOf(
    mounts: NonNullable<Container["volumeMounts"]>,
    volumes: Volume[] = [H],
    env = [{ name: "A", value: "a" }],
  ) {
    const { manager } = aManager();
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
    ).rejects.toThrow(new MountError(want));
  });

  test("a container that wants a device cannot have one", async () => {
    const { manager } = aManager();
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
    const { manager, engine } = aManager();
    engine.volumes.set("by-hand", { name: "by-hand", driver: "local", mountpoint: "", options: {}, labels: {} });
    const pod = podWith([
      { name: "a", persistentVolumeClaim: { claimName: "data" } },
      { name: "b", persistentVolumeClaim: { claimName: "by-hand", readOnly: true } },
    ]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    expect(engine.volumes.get("data")?.labels).toEqual({
      "kubelet-ts.io/node": "node1",
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
    const { manager, engine } = aManager();
    const pod = podWith([{ name: "a", persistentVolumeClaim: { claimName: "data" } }]);
    await manager.setUp({ ...pod, metadata: { ...pod.metadata, namespace: "shop" } }, { objects: NO_OBJECTS }, SIGNAL);
    expect([...engine.volumes.keys()]).toEqual(["shop_data"]);
  });

  test("nfs is a volume of the pod, gone with it", async () => {
    const { manager, engine } = aManager();
    const pod = podWith([{ name: "n", nfs: { server: "192.0.2.7", path: "/export", readOnly: true } }]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    expect(engine.volumes.get(NFS_NAME)).toEqual({
      name: NFS_NAME,
      driver: "local",
      mountpoint: "",
      options: { type: "nfs", device: ":/export", o: "addr=192.0.2.7,nfsvers=4,ro" },
      labels: { "kubelet-ts.io/node": "node1", "io.kubernetes.pod.uid": "uid1" },
    });
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { type: "volume", source: NFS_NAME, target: "/n", readOnly: true },
    ]);
    await manager.tearDown("uid1", SIGNAL);
    expect(engine.volumes.size).toBe(0);
  });

  test("a subPath of one that is no plain directory needs API 1.45", async () => {
    const { manager, engine } = aManager();
    const pod = podWith([{ name: "n", nfs: { server: "192.0.2.7", path: "/export", readOnly: true } }], {}, [
      { name: "n", mountPath: "/sub", subPath: "a" },
    ]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
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
    const { manager, engine } = aManager();
    const mountpoint = tempDir();
    engine.volumes.set("data", { name: "data", driver: "local", mountpoint, options: {}, labels: {} });
    const pod = podWith(
      [{ name: "a", persistentVolumeClaim: { claimName: "data" } }],
      { securityContext: { fsGroup: 3333 } },
      [{ name: "a", mountPath: "/sub", subPath: "x" }],
    );
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
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
    const { manager, engine } = aManager();
    engine.version = "1.48";
    const pod = podWith([IMAGE], {}, [{ name: "i", mountPath: "/sub", subPath: "etc" }]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    expect(engine.pulls).toEqual(["data:1 Always"]);
    const image = { type: "image", source: "sha256:data:1", readOnly: true } as const;
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { ...image, target: "/i" },
      { ...image, target: "/sub", subPath: "etc" },
    ]);
  });

  test("for older engines they are unpacked, and mounted read-only", async () => {
    const { manager, engine } = aManager();
    const contents = tempDir();
    mkdirSync(join(contents, "etc"));
    writeFileSync(join(contents, "etc/conf"), "from the image");
    writeFileSync(join(contents, ".dockerenv"), "");
    const tar = Bun.spawnSync(["tar", "-c", "-C", contents, "."]);
    engine.archive = tar.stdout;
    const pod = podWith([IMAGE]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    const directory = manager.directories("uid1").volume("image", "i");
    expect(readdirSync(directory)).toEqual(["etc"]);
    expect(readFileSync(join(directory, "etc/conf"), "utf8")).toBe("from the image");
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { type: "bind", source: directory, target: "/i", readOnly: true },
    ]);
  });

  test("a broken archive is a failed mount, and is tried again", async () => {
    const { manager, engine } = aManager();
    engine.archive = Buffer.from("this is no tar archive ".repeat(100));
    const pod = podWith([IMAGE]);
    for (let time = 0; time < 2; time++) {
      const error = await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL).catch((thrown) => thrown);
      expect(error.message).toStartWith(
        'MountVolume.SetUp failed for volume "i" : cannot unpack image sha256:data:1: tar: ',
      );
    }
    expect(engine.pulls).toHaveLength(2);
  });
});

describe("fileKeyRef's file", () => {
  const E: Volume = { name: "e", emptyDir: {} };

  test("is read from the emptyDir, never from outside of it", async () => {
    const { manager } = aManager();
    const pod = podWith([E]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    const directory = manager.directories("uid1").volume("empty-dir", "e");
    writeFileSync(join(directory, "env"), "A='1'");
    writeFileSync(join(directory, "big"), "x".repeat(65_537));
    mkdirSync(join(directory, "dir"));
    symlinkSync("env", join(directory, "inside"));
    symlinkSync("/etc/passwd", join(directory, "outside"));
    const read = (path: string) => manager.readEnvFile(pod, "e", path);
    expect(read("env")).toBe("A='1'");
    expect(read("inside")).toBe("A='1'");
    expect(read("none")).toBeUndefined();
    expect(() => read("outside")).toThrow("leads out");
    expect(() => read("dir")).toThrow("not a regular file");
    expect(() => read("big")).toThrow("larger than 65536 bytes");
  });
});

describe("an edit of the pod", () => {
  const edited = async (before: Pod, after: Pod, look: (manager: VolumeManager, engine: FakeVolumeEngine) => void) => {
    const { manager, engine } = aManager();
    await manager.setUp(before, { objects: objects("1") }, SIGNAL);
    look(manager, engine);
    await manager.setUp(after, { objects: objects("1") }, SIGNAL);
    return { manager, engine };
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

  test("of an image's reference looks for the other image", async () => {
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

  withMounts("leaves volumes it took out until they are asked away", async () => {
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
    const { manager, engine } = await edited(before, after, put);
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
    expect(await manager.refresh(after, objects("2"))).toEqual({ changed: ["c"], failures: [] });
  });
});

describe("tearDown", () => {
  withMounts("unmounts and removes everything of the pod, and only that", async () => {
    const { manager } = aManager();
    const outside = tempDir();
    writeFileSync(join(outside, "keep"), "");
    const pod = podWith(
      [
        { name: "e", emptyDir: {} },
        { name: "m", emptyDir: { medium: "Memory" } },
        { name: "s", secret: { secretName: "sec", defaultMode: 420 } },
        { name: "h", hostPath: { path: outside, type: "Directory" } },
      ],
      {},
      [
        { name: "h", mountPath: "/sub", subPath: "dir" },
        { name: "h", mountPath: "/file", subPath: "keep" },
      ],
    );
    await manager.setUp(pod, { objects: objects("1") }, SIGNAL);
    await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL);
    const { pod: podDir } = manager.directories("uid1");
    symlinkSync(outside, join(manager.directories("uid1").volume("empty-dir", "e"), "link"));
    writeFileSync(join(outside, "dir/also"), "");
    expect(new Mounter().listBeneath(podDir)).toHaveLength(4);
    expect(manager.listPodDirs()).toEqual(["uid1"]);
    await manager.tearDown("uid1", SIGNAL);
    expect(new Mounter().listBeneath(podDir)).toEqual([]);
    expect(manager.listPodDirs()).toEqual([]);
    expect(readdirSync(outside).sort()).toEqual(["dir", "keep"]);
    expect(readdirSync(join(outside, "dir"))).toEqual(["also"]);
    await manager.tearDown("uid1", SIGNAL);
  });

  withMounts("does not remove what somebody mounted there and keeps busy", async () => {
    const { manager } = aManager();
    const outside = tempDir();
    writeFileSync(join(outside, "keep"), "");
    const pod = podWith([{ name: "e", emptyDir: {} }]);
    await manager.setUp(pod, { objects: NO_OBJECTS }, SIGNAL);
    const inside = join(manager.directories("uid1").volume("empty-dir", "e"), "mnt");
    mkdirSync(inside);
    expect(Bun.spawnSync(["mount", "--bind", outside, inside]).exitCode).toBe(0);
    const busy = Bun.spawn(["sleep", "60"], { cwd: inside });
    try {
      expect(await manager.tearDown("uid1", SIGNAL).catch((error) => error.message)).toContain("umount");
      expect(readdirSync(outside)).toEqual(["keep"]);
    } finally {
      busy.kill("SIGKILL");
      await busy.exited;
    }
    await manager.tearDown("uid1", SIGNAL);
    expect(readdirSync(outside)).toEqual(["keep"]);
    expect(manager.listPodDirs()).toEqual([]);
  });

  test("a link in the place of the pod's directory is removed itself", async () => {
    const { manager } = aManager();
    const outside = tempDir();
    writeFileSync(join(outside, "keep"), "");
    const { pod: podDir } = manager.directories("uid2");
    mkdirSync(join(podDir, ".."), { recursive: true });
    symlinkSync(outside, podDir);
    await manager.tearDown("uid2", SIGNAL);
    expect(lstatSync(podDir, { throwIfNoEntry: false })).toBeUndefined();
    expect(readdirSync(outside)).toEqual(["keep"]);
  });
});

test("usage paths: what is set up, file systems apart from directories", async () => {
  const { manager } = aManager();
  const pod = podWith([
    { name: "e", emptyDir: { sizeLimit: "1Gi" } },
    { name: "c", configMap: { name: "cfg", defaultMode: 420 } },
    { name: "s", secret: { secretName: "sec", defaultMode: 420 } },
    { name: "h", hostPath: { path: "/tmp", type: "" } },
  ]);
  expect(manager.usagePaths(pod)).toEqual([]);
  await manager.setUp(pod, { objects: objects("1") }, SIGNAL);
  const directories = manager.directories("uid1");
  const secretOn = mounting.ok
    ? ({ method: "statfs", isEphemeral: false } as const)
    : ({ method: "du", isEphemeral: true } as const);
  expect(manager.usagePaths(pod)).toEqual([
    { name: "e", path: directories.volume("empty-dir", "e"), method: "du", isEphemeral: true, sizeLimit: "1Gi" },
    { name: "c", path: directories.volume("configmap", "c"), method: "du", isEphemeral: true },
    { name: "s", path: directories.volume("secret", "s"), ...secretOn },
  ]);
});
