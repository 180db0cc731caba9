import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../files/whole-file.ts";
import type { CgroupPlan, CgroupWrite } from "../model/cgroup-plan.ts";
import type { Logger } from "../model/logger.ts";
import { codeOf, unlessCode } from "../text/error-message.ts";
import { runProgram } from "./run-program.ts";

/** One mounted cgroup hierarchy, as `/proc/self/mountinfo` has it. */
export interface CgroupHierarchy {
  version: 1 | 2;
  mountPoint: string;
  /** Cgroup at the mount point: `/`, or another one inside a container. */
  root: string;
  /** v1: controllers of this hierarchy, e.g. `cpu`, `cpuacct`, `name=systemd`. v2: none here, see `cgroup.controllers`. */
  controllers: readonly string[];
}

export interface PodCgroupsOptions {
  hierarchies: readonly CgroupHierarchy[];
  /** Version of the hierarchy in which the engine places containers; 1 in hybrid mode, although v2 is mounted as well. */
  cgroupVersion: () => 1 | 2;
  log: Logger;
  /** Runs `systemctl` to its end; rejects when it fails. Only used under the systemd driver. */
  systemctl(args: readonly string[]): Promise<void>;
  /** Where systemd keeps what `set-property --runtime` has set. Default: `/run/systemd/system.control`. */
  sliceSettingsDirectory?: string;
}

/** Controllers that must be enabled on cgroup v2 so that a pod and its containers have their files. */
const V2_CONTROLLERS = ["cpu", "cpuset", "io", "memory", "pids", "hugetlb"] as const;

/** Where the file is missing, creating it would be refused with EACCES instead of ENOENT. */
const NO_CREATE = { flag: "r+" } as const;

/**
 * The cgroups of pods and QoS classes: bounded before the sandbox starts in them, removed when empty. Writes are
 * synchronous: these files respond in microseconds.
 */
export class PodCgroups {
  readonly #options: PodCgroupsOptions;
  /** Files the kernel does not have, each logged once. */
  readonly #missing = new Set<string>();
  /** Slices that systemd is forgetting at this moment, by name. */
  readonly #forgetting = new Map<string, Promise<void>>();

  constructor(options: PodCgroupsOptions) {
    this.#options = options;
  }

  /**
   * Creates a cgroup with its parents and sets its bounds, again if it exists.
   * @throws Error when a bound cannot be set
   */
  async ensure(plan: CgroupPlan): Promise<void> {
    if (!plan.slice) return this.#writeFiles(plan, () => true);
    const { name, properties } = plan.slice;
    // Else the stop of the slice would end what is started in it now. Its own failure is logged already.
    await this.#forgetting.get(name)?.catch(() => {});
    try {
      await this.#options.systemctl(["set-property", "--runtime", name, ...properties]);
    } catch (cause) {
      throw new Error(`Cannot set ${properties.join(" ")} of "${name}": ${String(cause)}`, { cause });
    }
    // systemd has no property for hugetlb.
    this.#writeFiles(plan, ({ controller }) => controller === "hugetlb");
  }

  /**
   * Removes the cgroup in every hierarchy; systemd would keep a slice until the machine is restarted.
   * @returns false while something is inside
   * @throws Error when systemd does not stop the slice
   */
  async remove(path: string): Promise<boolean> {
    const directories = this.#options.hierarchies.map((hierarchy) => toCgroupDirectory(hierarchy, path));
    if (path.endsWith(".slice")) {
      if (directories.some(hasProcesses)) return false;
      const name = basename(path);
      const forgotten = this.#forgetting.getOrInsertComputed(name, () => this.#forget(name, directories));
      try {
        await forgotten;
      } finally {
        this.#forgetting.delete(name);
      }
    }
    return directories.map(removeTree).every((isGone) => isGone);
  }

  async #forget(name: string, directories: readonly string[]): Promise<void> {
    const settings = join(this.#options.sliceSettingsDirectory ?? "/run/systemd/system.control", `${name}.d`);
    if (!existsSync(settings) && !directories.some((directory) => existsSync(directory))) return;
    await this.#options.systemctl(["stop", name]);
    // `systemctl revert` would do as much, and have systemd read every unit of the machine again.
    rmSync(settings, { recursive: true, force: true });
  }

  /** Kills every process in a cgroup, and in those below it; nothing where there is none. */
  kill(path: string): void {
    const directories = this.#options.hierarchies.map((hierarchy) => toCgroupDirectory(hierarchy, path));
    for (const pid of new Set(directories.flatMap(processesOf))) {
      this.#options.log.warn("The engine has removed a container whose process runs: it is killed", { pid, path });
      unlessCode(["ESRCH", "EPERM"], () => process.kill(pid, "SIGKILL"));
    }
  }

  /** true when the cgroup exists in any hierarchy. */
  exists(path: string): boolean {
    return this.#options.hierarchies.some((hierarchy) => existsSync(toCgroupDirectory(hierarchy, path)));
  }

  #writeFiles(plan: CgroupPlan, isWanted: (write: CgroupWrite) => boolean): void {
    for (const controller of ["cpu", "memory", "pids", "hugetlb"] as const) {
      const hierarchy = this.#hierarchyOf(controller);
      const all = hierarchy?.version === 2 ? plan.v2Writes : plan.v1Writes;
      const writes = all.filter((write) => write.controller === controller && isWanted(write));
      if (writes.length === 0) continue;
      const directory = hierarchy && toCgroupDirectory(hierarchy, plan.path);
      if (hierarchy && directory) this.#create(hierarchy, directory, controller);
      for (const write of writes) {
        if (directory) this.#write(plan, directory, write);
        else this.#onMissing(plan, write);
      }
    }
  }

  #hierarchyOf(controller: CgroupWrite["controller"]): CgroupHierarchy | undefined {
    const { hierarchies } = this.#options;
    return (
      hierarchies.find(({ version, controllers }) => version === 1 && controllers.includes(controller)) ??
      // In hybrid mode the v2 hierarchy has no controllers, and no files for them.
      (this.#options.cgroupVersion() === 2 ? hierarchies.find(({ version }) => version === 2) : undefined)
    );
  }

  #create({ version, mountPoint }: CgroupHierarchy, directory: string, controller: CgroupWrite["controller"]): void {
    const missing: string[] = [];
    for (let path = directory; path !== mountPoint && path !== "/"; path = dirname(path)) missing.unshift(path);
    for (const path of missing) {
      if (version === 2) this.#enableControllers(dirname(path));
      try {
        mkdirSync(path, { mode: 0o755 });
        // Before 5.11 the bound of a cgroup holds for those below it only if this is set while it is empty.
        if (version === 1 && controller === "memory") tryWrite(join(path, "memory.use_hierarchy"), "1");
      } catch (cause) {
        if (codeOf(cause) === "EEXIST") continue;
        throw new Error(`Cannot create cgroup "${path}": ${String(cause)}`, { cause });
      }
    }
  }

  /** One by one, because a write with a controller that the kernel lacks enables none. */
  #enableControllers(parent: string): void {
    for (const controller of V2_CONTROLLERS) tryWrite(join(parent, "cgroup.subtree_control"), `+${controller}`);
  }

  #write(plan: CgroupPlan, directory: string, write: CgroupWrite): void {
    const path = join(directory, write.file);
    try {
      writeFileSync(path, write.value, NO_CREATE);
    } catch (cause) {
      if (codeOf(cause) === "ENOENT") return this.#onMissing(plan, write);
      throw new Error(`Cannot set ${write.file} of cgroup "${directory}" to ${write.value}: ${String(cause)}`, {
        cause,
      });
    }
  }

  /** Without the file there is no bound: fine if none is wanted, an error if one is. */
  #onMissing({ path }: CgroupPlan, { file, value, isIdle }: CgroupWrite): void {
    if (!isIdle) throw new Error(`Cannot set ${file} of cgroup "${path}" to ${value}: this kernel has no such file`);
    if (this.#missing.has(file)) return;
    this.#missing.add(file);
    this.#options.log.debug("The kernel has no such cgroup file; nothing is bounded by it", { file });
  }
}

/** Where a cgroup is mounted. */
export function toCgroupDirectory({ mountPoint, root }: CgroupHierarchy, path: string): string {
  // In a container with a bind mount of part of the hierarchy, the mount point is that part.
  return join(mountPoint, root !== "/" && path.startsWith(`${root}/`) ? path.slice(root.length) : path);
}

function tryWrite(path: string, value: string): void {
  try {
    writeFileSync(path, value, NO_CREATE);
  } catch {
    // Refused where it is already so, or where there is no such thing.
  }
}

/** Processes of a cgroup and of those below it; the kernel writes 0 for one of another PID namespace. */
function processesOf(directory: string): number[] {
  const text = unlessCode(["ENOENT", "ENODEV", "EOPNOTSUPP"], () =>
    readBoundedText(join(directory, "cgroup.procs"), SYSTEM_FILE_BYTES),
  );
  const own = (text ?? "").split("\n").map(Number);
  return [...own.filter((pid) => pid > 1), ...childrenOf(directory).flatMap(processesOf)];
}

/** Whether a process is in the cgroup or in one below it. */
function hasProcesses(directory: string): boolean {
  try {
    if (readBoundedText(join(directory, "cgroup.procs"), SYSTEM_FILE_BYTES) !== "") return true;
  } catch (error) {
    // ENODEV: the cgroup was removed meanwhile. EOPNOTSUPP: a threaded cgroup cannot be read and may have processes.
    if (codeOf(error) !== "ENOENT" && codeOf(error) !== "ENODEV") return true;
  }
  return childrenOf(directory).some(hasProcesses);
}

/** Full paths of the cgroups directly below; none when it does not exist. */
function childrenOf(directory: string): string[] {
  const entries = unlessCode(["ENOENT"], () => readdirSync(directory, { withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(directory, name));
}

/** Removes a cgroup and the empty ones below it; false when one is in use. */
function removeTree(directory: string): boolean {
  const childrenGone = childrenOf(directory).map(removeTree).every(Boolean);
  if (!childrenGone) return false;
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return true;
    if (codeOf(error) === "EBUSY" || codeOf(error) === "ENOTEMPTY") return false;
    throw new Error(`Cannot remove cgroup "${directory}": ${String(error)}`, { cause: error });
  }
}

/** systemd answers within milliseconds; 90 s is its own limit for jobs. */
const SYSTEMCTL_LIMITS = { timeoutMs: 90_000, maxBytes: 65_536 };

/** @throws Error with what systemctl wrote when it fails. */
export async function runSystemctl(args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await runProgram(["systemctl", ...args], SYSTEMCTL_LIMITS);
  if (exitCode !== 0) throw new Error(`systemctl ended with ${exitCode}: ${stderr.trim()}`);
}
