import { describe, expect, test } from "bun:test";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Pod, Volume } from "../../../src/base/api/pod.ts";
import { usedVolumes } from "../../../src/base/model/pod.ts";
import { replacedClaims } from "../../../src/controllers/claims.ts";
import { Mounter } from "../../../src/kubelet/volumes/mounter.ts";
import type { VolumeManager } from "../../../src/kubelet/volumes/volume-manager.ts";
import { PodStepError } from "../../../src/plan/waiting-reasons.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { samplesOf } from "../../support/metrics.ts";
import type { RecordingLogger } from "../../support/recording-logger.ts";
import { isRoot, mounting, tempDirs } from "../../support/temp-dir.ts";
import { aManager, firstContainer, NO_OBJECTS, objects, podWith, SIGNAL } from "../../support/volume-world.ts";

const tempDir = tempDirs();
const withMounts = test.if(mounting.ok);
const forRoot = test.if(isRoot);
/** A volume manager that has set up the pod's volumes. */
async function setUp(pod: Pod, index = NO_OBJECTS) {
  const world = aManager(tempDir());
  await world.manager.setUp(pod, index, SIGNAL);
  return { ...world, pod };
}

/** Names of the volumes that were brought up to date since the last call. */
const refreshed = ({ lines }: RecordingLogger) => lines.splice(0).map((line) => /Volume "(.*?)"/.exec(line)?.[1]);

const modeOf = (path: string) => (fs.statSync(path).mode & 0o7777).toString(8);

describe("emptyDir", () => {
  forRoot("0777 at the kubelet's path, contents stay over another setUp", async () => {
    const { manager, pod } = await setUp(podWith([{ name: "e", emptyDir: {} }]));
    const { pod: podDir } = manager.directories("uid1");
    const path = join(podDir, "volumes/kubernetes.io~empty-dir/e");
    expect([modeOf(path), modeOf(join(path, "..")), modeOf(podDir)]).toEqual(["777", "755", "750"]);
    expect(fs.existsSync(join(podDir, "plugins/kubernetes.io~empty-dir/e/ready"))).toBe(true);
    fs.writeFileSync(join(path, "file"), "x");
    await manager.setUp({ ...pod }, NO_OBJECTS, SIGNAL);
    expect(fs.readdirSync(path)).toEqual(["file"]);
    expect(await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL)).toEqual([
      { type: "bind", source: path, target: "/e", readOnly: false, relabel: true },
    ]);
  });

  forRoot("fsGroup: 2777 and the group", async () => {
    const { manager } = await setUp(podWith([{ name: "e", emptyDir: {} }], { securityContext: { fsGroup: 3333 } }));
    const path = manager.directories("uid1").volume("empty-dir", "e");
    expect(`${modeOf(path)} ${fs.statSync(path).gid}`).toBe("2777 3333");
  });

  withMounts("Memory is a tmpfs of sizeLimit, 1777; without a limit of half the memory", async () => {
    const { manager, pod } = await setUp(
      podWith([
        { name: "m", emptyDir: { medium: "Memory", sizeLimit: "10Mi" } },
        { name: "all", emptyDir: { medium: "Memory" } },
      ]),
    );
    const [limited, whole] = ["m", "all"].map((name) => manager.directories("uid1").volume("empty-dir", name));
    const size = ({ blocks, bsize }: { blocks: number; bsize: number }) => blocks * bsize;
    expect(size(fs.statfsSync(limited ?? ""))).toBe(10 * 2 ** 20);
    expect(size(fs.statfsSync(whole ?? ""))).toBeGreaterThan(64 * 2 ** 20);
    expect(modeOf(limited ?? "")).toBe("1777");
    fs.writeFileSync(join(limited ?? "", "file"), "x");
    await manager.setUp({ ...pod }, NO_OBJECTS, SIGNAL);
    expect(fs.readdirSync(limited ?? "")).toEqual(["file"]);
    expect(new Mounter().listBeneath(limited ?? "")).toHaveLength(1);
  });

  withMounts("mode, owner and mount options of the annotation win over the group's; an edit takes effect", async () => {
    const pod = (options: string) => {
      const volumes = [
        { name: "e", emptyDir: {} },
        { name: "m", emptyDir: { medium: "Memory" } },
      ];
      const it = podWith(volumes, { securityContext: { fsGroup: 3333 } });
      return { ...it, metadata: { ...it.metadata, annotations: { "kubelet-ts.io/empty-dir-options": options } } };
    };
    const { manager } = await setUp(pod("e:mode=0750,uid=33,gid=34;m:mode=0700,noexec,nodev"));
    const shown = () =>
      ["e", "m"].map((name) => {
        const path = manager.directories("uid1").volume("empty-dir", name);
        return `${modeOf(path)} ${fs.statSync(path).uid}:${fs.statSync(path).gid}`;
      });
    expect(shown()).toEqual(["750 33:34", "700 0:3333"]);
    const m = manager.directories("uid1").volume("empty-dir", "m");
    expect(
      fs
        .readFileSync("/proc/self/mountinfo", "utf8")
        .split("\n")
        .find((line) => line.includes(m)),
    ).toMatch(/nodev,noexec/);
    await manager.setUp(pod("e:uid=35"), NO_OBJECTS, SIGNAL);
    expect(shown()).toEqual(["2770 35:3333", "2770 0:3333"]);
  });

  withMounts("a tmpfs that a reboot took away is mounted again", async () => {
    const { manager, pod } = await setUp(
      podWith([{ name: "m", emptyDir: { medium: "Memory" } }], { securityContext: { fsGroup: 3333 } }),
    );
    const path = manager.directories("uid1").volume("empty-dir", "m");
    await new Mounter().unmount(path);
    await manager.setUp({ ...pod }, NO_OBJECTS, SIGNAL);
    expect(new Mounter().listBeneath(path)).toHaveLength(1);
    expect(`${modeOf(path)} ${fs.statSync(path).gid}`).toBe("3777 3333");
  });

  test("Memory is refused where nothing can be mounted", async () => {
    const { manager } = aManager(tempDir(), { mounts: false });
    await expect(
      manager.setUp(podWith([{ name: "m", emptyDir: { medium: "Memory" } }]), NO_OBJECTS, SIGNAL),
    ).rejects.toThrow(
      'MountVolume.SetUp failed for volume "m" : emptyDir with medium Memory needs a kubelet that runs as root and can mount',
    );
  });
});

const failed = (volume: string, why: string) =>
  new PodStepError("FailedMount", `MountVolume.SetUp failed for volume "${volume}" : ${why}`);

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

  test("every failure is reported, the other volumes are ready", async () => {
    const { manager, metrics, recorder } = aManager(tempDir());
    const pod = podWith([
      { name: "a", hostPath: { path: "/dev/null", type: "BlockDevice" } },
      { name: "b", configMap: { name: "no", defaultMode: 420 } },
      { name: "c", emptyDir: {} },
      { name: "d", csi: { driver: "d.example" } } as Volume,
    ]);
    await expect(manager.setUp(pod, NO_OBJECTS, SIGNAL)).rejects.toThrow(
      failed("a", "hostPath type check failed: /dev/null is not a block device"),
    );
    expect(recorder.events).toEqual(
      [
        failed("b", 'configmap "no" not found'),
        failed("d", "volumes of type csi are not supported without a cluster"),
      ].map(({ message }) => `web-node1 FailedMount ${message}`),
    );
    expect(fs.existsSync(manager.directories("uid1").volume("empty-dir", "c"))).toBe(true);
    const labels = (plugin: string) => `{operation_name="volume_mount",volume_plugin="kubernetes.io/${plugin}"} 1`;
    expect(samplesOf(metrics.storageOperationErrors)).toEqual(["host-path", "configmap", "csi"].map(labels));
    expect(samplesOf(metrics.storageOperationDuration).at(-1)).toBe(`_count${labels("empty-dir")}`);
  });

  test.each<[Volume, string | undefined]>([
    [{ name: "v", hostPath: { path: "/dev/null", type: "BlockDevice" } }, "/dev/null is not a block device"],
    [{ name: "v", configMap: { name: "no", defaultMode: 420 } }, 'configmap "no" not found'],
    [{ name: "v", image: { reference: "no" } }, "no such image"],
    [{ name: "v", csi: { driver: "d.example" } } as Volume, "not supported without a cluster"],
    [{ name: "v", emptyDir: {} }, undefined],
  ])("check of %j finds %p, and makes nothing", async (volume, problem) => {
    const images = { ensureImage: () => Promise.reject(new Error("no such image")) };
    const { manager } = aManager(tempDir(), { images });
    const found = await manager.check(podWith([volume]), NO_OBJECTS, SIGNAL).catch((error: Error) => error);
    expect(found instanceof PodStepError ? found.message : found).toEqual(
      problem === undefined ? undefined : expect.stringContaining(problem),
    );
    expect(fs.existsSync(manager.directories("uid1").pod)).toBe(false);
  });

  test("one that fails for two minutes is reported, and again as long as it fails; not when it is ready or gone", async () => {
    const { manager, clock, recorder } = aManager(tempDir());
    const pod = podWith([
      { name: "a", emptyDir: {} },
      { name: "b", configMap: { name: "cfg", defaultMode: 420 } },
    ]);
    const waited =
      "web-node1 FailedMount Unable to attach or mount volumes: unmounted volumes=[b], unattached volumes=[a b]: timed out waiting for the condition";
    await expect(manager.setUp(pod, NO_OBJECTS, SIGNAL)).rejects.toThrow("not found");
    await clock.advance(122_999);
    await expect(manager.setUp(pod, NO_OBJECTS, SIGNAL)).rejects.toThrow("not found");
    expect(recorder.events).toEqual([]);
    await clock.advance(1);
    expect(recorder.events).toEqual([waited]);
    await clock.advance(123_000);
    expect(recorder.events).toEqual([waited, waited]);
    await manager.setUp(pod, objects("1"), SIGNAL);
    expect(clock.pendingTimers).toBe(0);
    await expect(manager.setUp({ ...pod }, NO_OBJECTS, SIGNAL)).rejects.toThrow("not found");
    await manager.tearDown("uid1", SIGNAL);
    expect(clock.pendingTimers).toBe(0);
  });

  test("an abort is an abort, no failed mount", async () => {
    const { manager } = aManager(tempDir());
    const stopped = AbortSignal.abort(new Error("stop"));
    await expect(manager.setUp(podWith([{ name: "e", emptyDir: {} }]), NO_OBJECTS, stopped)).rejects.toThrow("stop");
  });

  test.each(["../../etc", "a/b", "..", ".", ""])("uid %p cannot name a directory", (uid) => {
    expect(() => aManager(tempDir()).manager.directories(uid)).toThrow("cannot be a directory name");
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
  type Plugin = "configmap" | "secret" | "downward-api" | "projected";
  const directory = (manager: VolumeManager, plugin: Plugin, name: string) =>
    manager.directories("uid1").volume(plugin, name);

  test("are written, mounted read-only, and follow the objects", async () => {
    const { manager, pod, logger } = await setUp(podWith(VOLUMES), objects("1"));
    const read = (plugin: Plugin, path: string) => fs.readFileSync(join(directory(manager, plugin, ""), path), "utf8");
    const all = () => [
      read("configmap", "c/k"),
      read("secret", "s/pw"),
      read("downward-api", "d/l"),
      read("projected", "p/k"),
      read("projected", "p/pw"),
    ];
    expect(all()).toEqual(["1", "secret 1", 'app="web"', "1", "secret 1"]);
    const mounts = await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL);
    expect(mounts.map(({ readOnly }) => readOnly)).toEqual(Array(4).fill(true));

    await manager.refresh(pod, objects("1"), SIGNAL);
    expect(refreshed(logger)).toEqual([]);
    await manager.refresh(pod, objects("2"), SIGNAL);
    expect(refreshed(logger)).toEqual(["c", "s", "p"]);
    const relabelled = { ...pod, metadata: { ...pod.metadata, labels: { app: "db" } } };
    await manager.refresh(relabelled, objects("2"), SIGNAL);
    expect(refreshed(logger)).toEqual(["d"]);
    expect(all()).toEqual(["2", "secret 2", 'app="db"', "2", "secret 2"]);
  });

  test("keep what they had when an object vanishes", async () => {
    const { manager, pod, recorder } = await setUp(podWith(VOLUMES.slice(0, 2)), objects("1"));
    await expect(manager.refresh(pod, NO_OBJECTS, SIGNAL)).rejects.toThrow(failed("c", 'configmap "cfg" not found'));
    expect(recorder.events).toEqual([`web-node1 FailedMount ${failed("s", 'secret "sec" not found').message}`]);
    expect(fs.readFileSync(join(directory(manager, "configmap", "c"), "k"), "utf8")).toBe("1");
  });

  test("a volume that was never set up is left to setUp", async () => {
    const { manager, logger } = aManager(tempDir());
    await manager.refresh(podWith(VOLUMES), objects("1"), SIGNAL);
    expect(refreshed(logger)).toEqual([]);
    expect(await manager.listPodDirs()).toEqual([]);
  });

  withMounts("secrets, projections and downward API files never touch a disk", async () => {
    const { manager } = await setUp(podWith(VOLUMES), objects("1"));
    const mounted = new Mounter().listBeneath(manager.directories("uid1").pod);
    expect(mounted.sort()).toEqual([
      directory(manager, "downward-api", "d"),
      directory(manager, "projected", "p"),
      directory(manager, "secret", "s"),
    ]);
    const lines = fs.readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    for (const target of mounted) {
      const line = lines.find((each) => each.includes(` ${target} `)) ?? "";
      for (const option of ["nosuid", "nodev", "noexec"]) expect(line.split(" ")[5]!.split(",")).toContain(option);
    }
  });

  forRoot("fsGroup may read them, and a refresh does not rewrite what is the same", async () => {
    const pod = podWith(VOLUMES, { securityContext: { fsGroup: 3333 } });
    const { manager, logger } = await setUp(pod, objects("1"));
    const file = fs.statSync(join(directory(manager, "secret", "s"), "pw"));
    expect(`${(file.mode & 0o7777).toString(8)} ${file.gid}`).toBe("440 3333");
    await manager.refresh(pod, objects("1"), SIGNAL);
    expect(refreshed(logger)).toEqual([]);
    await manager.refresh(pod, objects("2"), SIGNAL);
    expect(fs.statSync(join(directory(manager, "configmap", "c"), "k")).gid).toBe(3333);
  });
});

const E: Volume = { name: "e", emptyDir: {} };

test("fileKeyRef's file: is read from the emptyDir, never from outside of it", async () => {
  const { manager, pod } = await setUp(podWith([E]));
  const directory = manager.directories("uid1").volume("empty-dir", "e");
  fs.writeFileSync(join(directory, "env"), "A='1'");
  fs.writeFileSync(join(directory, "big"), "x".repeat(65_537));
  fs.mkdirSync(join(directory, "dir"));
  fs.symlinkSync("env", join(directory, "inside"));
  fs.symlinkSync("/etc/passwd", join(directory, "outside"));
  const read = (path: string) => manager.readEnvFile(pod, "e", path);
  expect(await read("env")).toBe("A='1'");
  expect(await read("inside")).toBe("A='1'");
  expect(await read("none")).toBeUndefined();
  expect(read("outside")).rejects.toThrow("leads out");
  expect(read("dir")).rejects.toThrow("not a regular file");
  expect(read("big")).rejects.toThrow("larger than 65536 bytes");
});

describe("tearDown", () => {
  withMounts("unmounts and removes everything of the pod, and only that", async () => {
    const outside = tempDir();
    fs.writeFileSync(join(outside, "keep"), "");
    const { manager, pod } = await setUp(
      podWith(
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
      ),
      objects("1"),
    );
    await manager.mountsFor(pod, firstContainer(pod), [], SIGNAL);
    const { pod: podDir } = manager.directories("uid1");
    fs.symlinkSync(outside, join(manager.directories("uid1").volume("empty-dir", "e"), "link"));
    fs.writeFileSync(join(outside, "dir/also"), "");
    expect(new Mounter().listBeneath(podDir)).toHaveLength(4);
    expect(await manager.listPodDirs()).toEqual(["uid1"]);
    await manager.tearDown("uid1", SIGNAL);
    expect(new Mounter().listBeneath(podDir)).toEqual([]);
    expect(await manager.listPodDirs()).toEqual([]);
    expect(fs.readdirSync(outside).sort()).toEqual(["dir", "keep"]);
    expect(fs.readdirSync(join(outside, "dir"))).toEqual(["also"]);
    await manager.tearDown("uid1", SIGNAL);
  });

  withMounts("does not remove a foreign mount that is in use", async () => {
    const outside = tempDir();
    fs.writeFileSync(join(outside, "keep"), "");
    const { manager } = await setUp(podWith([{ name: "e", emptyDir: {} }]));
    const inside = join(manager.directories("uid1").volume("empty-dir", "e"), "mnt");
    fs.mkdirSync(inside);
    expect(Bun.spawnSync(["mount", "--bind", outside, inside]).exitCode).toBe(0);
    const busy = Bun.spawn(["sleep", "60"], { cwd: inside });
    try {
      expect(await manager.tearDown("uid1", SIGNAL).catch((error) => error.message)).toContain("umount");
      expect(fs.readdirSync(outside)).toEqual(["keep"]);
    } finally {
      busy.kill("SIGKILL");
      await busy.exited;
    }
    await manager.tearDown("uid1", SIGNAL);
    expect(fs.readdirSync(outside)).toEqual(["keep"]);
    expect(await manager.listPodDirs()).toEqual([]);
  });

  test("a link in the place of the pod's directory is removed itself", async () => {
    const { manager } = aManager(tempDir());
    const outside = tempDir();
    fs.writeFileSync(join(outside, "keep"), "");
    const { pod: podDir } = manager.directories("uid2");
    fs.mkdirSync(join(podDir, ".."), { recursive: true });
    fs.symlinkSync(outside, podDir);
    await manager.tearDown("uid2", SIGNAL);
    expect(fs.lstatSync(podDir, { throwIfNoEntry: false })).toBeUndefined();
    expect(fs.readdirSync(outside)).toEqual(["keep"]);
  });
});

test("usage paths, without reading the disk: file systems apart from directories", () => {
  const { manager } = aManager(tempDir());
  const pod = podWith([
    { name: "e", emptyDir: { sizeLimit: "1Gi" } },
    { name: "c", configMap: { name: "cfg", defaultMode: 420 } },
    { name: "s", secret: { secretName: "sec", defaultMode: 420 } },
    { name: "h", hostPath: { path: "/tmp", type: "" } },
  ]);
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

test("claims have the directory they are bound to, or that of their Docker volume", () => {
  const volumes: Volume[] = [
    { name: "data", persistentVolumeClaim: { claimName: "disk" } },
    { name: "own", persistentVolumeClaim: { claimName: "own" } },
    { name: "share", persistentVolumeClaim: { claimName: "export" } },
    { name: "plain", hostPath: { path: "/etc", type: "" } },
  ];
  const resolved = podWith([
    { name: "data", hostPath: { path: "/srv/disk", type: "Directory" } },
    { name: "own", persistentVolumeClaim: { claimName: "own" } },
    { name: "share", nfs: { server: "nas", path: "/export" } },
    { name: "plain", hostPath: { path: "/etc", type: "" } },
  ]);
  const claims = replacedClaims(podWith(volumes), resolved);
  expect(claims).toEqual({ data: "disk", share: "export" });
  const { manager } = aManager(tempDir());
  const bound = { name: "data", path: "/srv/disk", method: "statfs" as const, isEphemeral: false, claimName: "disk" };
  expect(manager.usagePaths(resolved, claims)).toEqual([bound]);
  expect(manager.usagePaths(resolved, claims, "/var/lib/docker")).toEqual([
    bound,
    { name: "own", path: "/var/lib/docker/volumes/own/_data", method: "du", isEphemeral: false, claimName: "own" },
  ]);
});
