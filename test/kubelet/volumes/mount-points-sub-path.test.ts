import { describe, expect, test } from "bun:test";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Container, Volume } from "../../../src/base/api/pod.ts";
import { bindSubPath } from "../../../src/kubelet/volumes/mount-points.ts";
import { Mounter } from "../../../src/kubelet/volumes/mounter.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { PathAttacker } from "../../support/path-attacker.ts";
import { mounting, tempDirs } from "../../support/temp-dir.ts";
import { aManager } from "../../support/volume-world.ts";

const tempDir = tempDirs();

const withMounts = test.if(mounting.ok);
const SIGNAL = new AbortController().signal;
const OBJECTS = {
  configMaps: new Map([["default/cfg", { metadata: { name: "cfg" }, data: { k: "1" } }]]),
  secrets: new Map(),
};

/** A volume manager, and a pod of one container with one volume and these mounts. */
async function aWorld(
  volume: Volume,
  mounts: Partial<NonNullable<Container["volumeMounts"]>[number]>[],
  mounter = true,
) {
  const { manager, logger } = aManager(tempDir(), mounter ? {} : { mounts: false });
  const volumeMounts = mounts.map((mount, index) => ({ name: volume.name, mountPath: `/${index}`, ...mount }));
  const container = aContainer({ volumeMounts });
  const pod = aPod({ containers: [container], volumes: [volume] }, { uid: "uid1" });
  await manager.setUp(pod, OBJECTS, SIGNAL);
  const mountsFor = (env: { name: string; value: string }[] = []) => manager.mountsFor(pod, container, env, SIGNAL);
  const at = (index: number) => manager.directories("uid1").subPath(volume.name, "app", index);
  return {
    manager,
    pod,
    logger,
    mountsFor,
    at,
    directory: manager.directories("uid1").volume("empty-dir", volume.name),
  };
}

const EMPTY: Volume = { name: "v", emptyDir: {} };

withMounts("missing paths are made with the volume's mode, parents 0755, at the kubelet's path", async () => {
  const { mountsFor, at, directory } = await aWorld(EMPTY, [{ subPath: "inner/dir" }, { subPathExpr: "x-$(POD)" }]);
  const mounts = await mountsFor([{ name: "POD", value: "p-node1" }]);
  expect(mounts.map(({ source }) => source)).toEqual([at(0), at(1)]);
  const mode = (path: string) => (fs.statSync(path).mode & 0o7777).toString(8);
  expect([
    mode(join(directory, "inner")),
    mode(join(directory, "inner/dir")),
    mode(join(directory, "x-p-node1")),
  ]).toEqual([(0o777 & ~process.umask()).toString(8), "777", "777"]);
  fs.writeFileSync(join(at(0), "seen"), "");
  expect(fs.readdirSync(join(directory, "inner/dir"))).toEqual(["seen"]);
});

withMounts("again gives the same mounts, and only once", async () => {
  const { mountsFor, at } = await aWorld(EMPTY, [{ subPath: "a" }]);
  expect(await mountsFor()).toEqual(await mountsFor());
  expect(new Mounter().listBeneath(at(0))).toHaveLength(1);
});

withMounts("a path that is another directory or a file by now is bound again", async () => {
  const { mountsFor, at, directory } = await aWorld(EMPTY, [{ subPath: "a" }]);
  await mountsFor();
  fs.renameSync(join(directory, "a"), join(directory, "old"));
  fs.mkdirSync(join(directory, "a/new"), { recursive: true });
  await mountsFor();
  expect(fs.readdirSync(at(0))).toEqual(["new"]);
  fs.rmSync(join(directory, "a"), { recursive: true });
  fs.writeFileSync(join(directory, "a"), "a file");
  await mountsFor();
  expect(fs.readFileSync(at(0), "utf8")).toBe("a file");
  expect(new Mounter().listBeneath(at(0))).toHaveLength(1);
});

describe("a single file of a configMap", () => {
  const CONFIG: Volume = { name: "c", configMap: { name: "cfg", defaultMode: 420 } };

  withMounts("is bound, through the links of the atomic writer", async () => {
    const { mountsFor, at } = await aWorld(CONFIG, [{ subPath: "k" }]);
    expect(await mountsFor()).toEqual([{ type: "bind", source: at(0), target: "/0", readOnly: true, relabel: true }]);
    expect(fs.readFileSync(at(0), "utf8")).toBe("1");
  });

  withMounts("shows the new contents when the container is made again after a refresh", async () => {
    const { manager, pod, mountsFor, at } = await aWorld(CONFIG, [{ subPath: "k" }]);
    await mountsFor();
    const next = new Map([["default/cfg", { metadata: { name: "cfg" }, data: { k: "2" } }]]);
    await manager.refresh(pod, { ...OBJECTS, configMaps: next }, SIGNAL);
    expect(fs.readFileSync(at(0), "utf8")).toBe("1");
    await mountsFor();
    expect(fs.readFileSync(at(0), "utf8")).toBe("2");
  });

  test("works without root too, by its real path, since no other user writes there", async () => {
    const { manager, mountsFor } = await aWorld(CONFIG, [{ subPath: "k" }], false);
    const [mount] = await mountsFor();
    expect(mount?.source).toStartWith(`${manager.directories("uid1").volume("configmap", "c")}/..2026`);
    expect(fs.readFileSync(mount?.source ?? "", "utf8")).toBe("1");
  });
});

test("a volume others write to is refused where nothing can be bound", async () => {
  const { mountsFor } = await aWorld(EMPTY, [{ subPath: "a" }], false);
  await expect(mountsFor()).rejects.toThrow(
    'failed to prepare subPath for volumeMount "v" of container "app": it takes a kubelet that runs as root and can mount',
  );
});

describe("a path that leads out", () => {
  withMounts("is refused without naming its target; the log has that", async () => {
    const { mountsFor, directory, logger, at } = await aWorld(EMPTY, [{ subPath: "out" }]);
    fs.symlinkSync("/etc", join(directory, "out"));
    const error = await mountsFor().catch((thrown) => thrown);
    expect(error.reason).toBe("CreateContainerConfigError");
    expect(error.message).toBe('failed to prepare subPath for volumeMount "v" of container "app"');
    expect(logger.lines).toEqual([`warn ${error.message}: "out" has a symbolic link that leads out`]);
    expect(new Mounter().listBeneath(at(0))).toEqual([]);
  });

  withMounts("is not made either", async () => {
    const { mountsFor, directory } = await aWorld(EMPTY, [{ subPath: "out/new" }]);
    const outside = tempDir();
    fs.symlinkSync(outside, join(directory, "out"));
    await expect(mountsFor()).rejects.toThrow("failed to prepare subPath");
    expect(fs.readdirSync(outside)).toEqual([]);
  });

  withMounts("has the links of a hostPath itself followed: that path belongs to the machine", async () => {
    const base = tempDir();
    fs.mkdirSync(join(base, "real/sub"), { recursive: true });
    fs.writeFileSync(join(base, "real/sub/file"), "x");
    fs.symlinkSync("real", join(base, "link"));
    const { mountsFor, at } = await aWorld({ name: "h", hostPath: { path: join(base, "link"), type: "" } }, [
      { subPath: "sub" },
    ]);
    await mountsFor();
    expect(fs.readdirSync(at(0))).toEqual(["file"]);
  });
});

withMounts("against a program that exchanges the path all the time, nothing from outside is ever mounted", async () => {
  const volume = join(tempDir(), "volume");
  fs.mkdirSync(volume, { mode: 0o777 });
  const target = join(tempDir(), "target");
  const mounter = new Mounter();
  const attacker = new PathAttacker(volume, tempDir());
  const outside = fs.statSync(join(attacker.outside, "in"));
  try {
    for (let attempt = 0; attempt < 40 || !attacker.hasDoneEnough; attempt++) {
      // Refused when a link was there, or the entry was gone, at the moment of the check.
      const refusal = await bindSubPath(volume, "x/in", target, mounter).catch((error: Error) => error);
      if (!refusal) expect(marksIn(target)).not.toContain("outside");
      expect(fs.statSync(target, { throwIfNoEntry: false })?.ino).not.toBe(outside.ino);
    }
  } finally {
    await attacker.stop();
  }
  expect(fs.readdirSync(attacker.outside)).toEqual(["in"]);
  expect(fs.readdirSync(join(attacker.outside, "in"))).toEqual(["mark"]);
});

/** Nothing where we made the directory between two of the attacker's moves, or where it has been removed since. */
function marksIn(directory: string): string[] {
  try {
    return fs.readdirSync(directory).map((name) => fs.readFileSync(join(directory, name), "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return [];
  }
}
