import { parseMounts } from "../../base/files/mount-points.ts";
import type { CgroupHierarchy } from "../../base/host/pod-cgroups.ts";

/** The controllers that are read, with their names on cgroup v2: `cpuacct` is part of `cpu` there, and `blkio` is `io`. */
const V2_NAMES = {
  cpu: "cpu",
  cpuacct: "cpu",
  cpuset: "cpuset",
  memory: "memory",
  pids: "pids",
  blkio: "io",
  hugetlb: "hugetlb",
} as const;

type CgroupController = keyof typeof V2_NAMES;

export interface CgroupLayout {
  /** A controller that the kernel lacks, or that is not mounted, is absent. */
  controllers: ReadonlyMap<CgroupController, CgroupHierarchy>;
  /** The v2 hierarchy; in hybrid mode it holds pressure information and no controllers. */
  unified?: CgroupHierarchy;
}

/** Cgroup directories of one process or one pod, by controller; `unified` for what only cgroup v2 has. */
export type CgroupDirectories = Readonly<Partial<Record<CgroupController | "unified", CgroupDirectory>>>;

export interface CgroupDirectory {
  version: 1 | 2;
  path: string;
}

/** The mounts of `/proc/self/mountinfo`, in its order. Nothing is assumed about `/sys/fs/cgroup` or systemd. */
export function parseCgroupMounts(mountinfo: string): CgroupHierarchy[] {
  return parseMounts(mountinfo).flatMap(({ type, mountPoint, root, options }): CgroupHierarchy[] => {
    if (type === "cgroup2") return [{ version: 2, mountPoint, root, controllers: [] }];
    const controllers = options.split(",").filter((option) => option !== "rw");
    return type === "cgroup" ? [{ version: 1, mountPoint, root, controllers }] : [];
  });
}

/** @param unifiedControllers text of `cgroup.controllers` at the v2 mount point, "" when there is none */
export function toCgroupLayout(mounts: readonly CgroupHierarchy[], unifiedControllers: string): CgroupLayout {
  const unified = preferRootMount(mounts.filter(({ version }) => version === 2));
  const controllers = new Map<CgroupController, CgroupHierarchy>();
  const inUnified = new Set(unifiedControllers.trim().split(/\s+/));
  for (const [controller, v2Name] of Object.entries(V2_NAMES) as [CgroupController, string][]) {
    const v1 = preferRootMount(mounts.filter((mount) => mount.version === 1 && mount.controllers.includes(controller)));
    const mount = v1 ?? (unified && inUnified.has(v2Name) ? unified : undefined);
    if (mount) controllers.set(controller, mount);
  }
  return { controllers, ...(unified && { unified }) };
}

/** Controllers without which limits have no effect, and the way to get them; undefined where all are there. */
export function findMissingControllers(there: readonly string[]): { problem: string; fix: string } | undefined {
  const missing = ["cpu", "memory", "pids"].filter((name) => !there.includes(name));
  if (missing.length === 0) return undefined;
  const enable = missing.map((name) => `cgroup_enable=${name}`).join(" ");
  const fix = `boot with ${enable} (on a Raspberry Pi in /boot/firmware/cmdline.txt)`;
  return { problem: `no controller for ${missing.join(", ")}: limits have no effect`, fix };
}

// A hierarchy may be mounted several times; inside containers often with only a part of it.
function preferRootMount(mounts: readonly CgroupHierarchy[]): CgroupHierarchy | undefined {
  return mounts.find(({ root }) => root === "/") ?? mounts[0];
}

/** `/proc/<pid>/cgroup`: the cgroup path in each hierarchy, by controller; `""` is the v2 hierarchy. */
export function parseProcCgroup(text: string): Map<string, string> {
  const paths = new Map<string, string>();
  for (const line of text.split("\n")) {
    const first = line.indexOf(":");
    const second = line.indexOf(":", first + 1);
    if (second < 0) continue;
    for (const controller of line.slice(first + 1, second).split(",")) paths.set(controller, line.slice(second + 1));
  }
  return paths;
}

export function toProcessDirectories(layout: CgroupLayout, paths: ReadonlyMap<string, string>): CgroupDirectories {
  return directories(layout, (mount, controller) => paths.get(mount.version === 2 ? "" : controller));
}

/** Directories of a cgroup that has the same path in every hierarchy, e.g. `/` or `/kubepods`. */
export function toCgroupDirectories(layout: CgroupLayout, cgroupPath: string): CgroupDirectories {
  return directories(layout, () => cgroupPath);
}

/** Directories one level up: from a container to its pod. */
export function parentDirectories(child: CgroupDirectories): CgroupDirectories {
  const parent: { -readonly [K in keyof CgroupDirectories]: CgroupDirectories[K] } = {};
  for (const [controller, directory] of Object.entries(child) as [keyof CgroupDirectories, CgroupDirectory][]) {
    parent[controller] = { version: directory.version, path: directory.path.slice(0, directory.path.lastIndexOf("/")) };
  }
  return parent;
}

function directories(
  layout: CgroupLayout,
  pathOf: (mount: CgroupHierarchy, controller: string) => string | undefined,
): CgroupDirectories {
  const found: { -readonly [K in keyof CgroupDirectories]: CgroupDirectories[K] } = {};
  for (const [controller, mount] of layout.controllers) {
    const path = pathOf(mount, controller);
    if (path !== undefined) found[controller] = { version: mount.version, path: joinMount(mount, path) };
  }
  if (layout.unified) {
    const path = pathOf(layout.unified, "");
    if (path !== undefined) found.unified = { version: 2, path: joinMount(layout.unified, path) };
  }
  return found;
}

function joinMount({ mountPoint, root }: CgroupHierarchy, cgroupPath: string): string {
  let path = cgroupPath;
  if (root !== "/" && (path === root || path.startsWith(`${root}/`))) path = path.slice(root.length);
  return path === "/" || path === "" ? mountPoint : `${mountPoint}${path}`;
}

/** The directory of the cgroup where one hierarchy is enough. */
export function mainDirectory(directories: CgroupDirectories): string {
  const directory = directories.memory ?? directories.cpuacct ?? directories.cpu ?? directories.unified;
  return directory?.path ?? "/nonexistent";
}
