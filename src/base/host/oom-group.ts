import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readBoundedText, SYSTEM_FILE_BYTES } from "../files/whole-file.ts";
import { codeOf } from "../text/error-message.ts";
import { type PodCgroupsOptions, toCgroupDirectory } from "./pod-cgroups.ts";

interface OomGroupOptions extends Pick<PodCgroupsOptions, "hierarchies" | "cgroupVersion" | "log"> {
  /** `singleProcessOOMKill`: whether the kernel kills a single process; undefined: the cgroups' default. */
  singleProcess: boolean | undefined;
  /** Default: `/proc`. */
  procDir?: string;
}

/**
 * Selects which processes die when a container runs out of memory: on cgroup v2 all of them, unless configured
 * otherwise; on v1 one. Source: upstream's singleProcessOOMKill.
 */
export class OomGroup {
  readonly #options: OomGroupOptions;
  #isReported = false;

  constructor(options: OomGroupOptions) {
    this.#options = options;
  }

  /** Whether {@link apply} has anything to do. */
  get isWanted(): boolean {
    const { singleProcess, cgroupVersion } = this.#options;
    return singleProcess !== true && cgroupVersion() === 2;
  }

  /** Logs once that the configured behavior is not available. */
  check(): void {
    const { singleProcess, cgroupVersion, log } = this.#options;
    if (singleProcess !== false || cgroupVersion() === 2 || this.#isReported) return;
    this.#isReported = true;
    log.warn("singleProcessOOMKill: false has no effect: on cgroup v1 the kernel kills one process at a time");
  }

  /** The container's processes die together from now on. @param pid of any of them */
  apply(pid: number): void {
    const { hierarchies, log, procDir = "/proc" } = this.#options;
    try {
      const [, path] =
        /^0::(.*)$/m.exec(readBoundedText(join(procDir, String(pid), "cgroup"), SYSTEM_FILE_BYTES)) ?? [];
      const unified = hierarchies.find(({ version }) => version === 2);
      if (path === undefined || !unified) throw new Error("its cgroup was not found");
      // Not to be created: where the file is missing the kernel is older than 4.19.
      writeFileSync(join(toCgroupDirectory(unified, path), "memory.oom.group"), "1", { flag: "r+" });
    } catch (error) {
      // A container that ended at once has no processes, and no cgroup.
      if (codeOf(error) === "ESRCH" || !existsSync(join(procDir, String(pid), "cgroup"))) return;
      if (this.#isReported) return;
      this.#isReported = true;
      log.warn(`Processes of a container without memory are killed one by one: ${(error as Error).message}`);
    }
  }
}
