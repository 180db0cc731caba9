import type { KubeletOptions } from "../../model/kubelet-options.ts";
import type { Logger } from "../../model/logger.ts";
import type { SystemContainerName } from "../../stats/node-sample.ts";

const FLAGS: readonly [SystemContainerName, "kubeletCgroups" | "runtimeCgroups" | "systemCgroups", string][] = [
  ["kubelet", "kubeletCgroups", "--kubelet-cgroups"],
  ["runtime", "runtimeCgroups", "--runtime-cgroups"],
  ["misc", "systemCgroups", "--system-cgroups"],
];

type SystemCgroupOptions = Pick<KubeletOptions, "kubeletCgroups" | "runtimeCgroups" | "systemCgroups">;

/** Cgroups of the system that options name, by their names in the summary. */
export const toSystemCgroups = (options: SystemCgroupOptions): ReadonlyMap<SystemContainerName, string> =>
  new Map(FLAGS.map(([name, option]) => [name, options[option]] as const).filter(([, path]) => path !== ""));

/** Names each cgroup of an option that does not exist: the summary has no such system container until it does. */
export function warnOfMissingCgroups(
  options: SystemCgroupOptions,
  exists: (cgroupPath: string) => boolean,
  logger: Logger,
): void {
  for (const [name, option, flag] of FLAGS) {
    const path = options[option];
    if (path === "" || exists(path)) continue;
    logger.warn(
      `${flag}: there is no cgroup "${path}"; /stats/summary has no systemContainers ${name} until it exists (cat /proc/PID/cgroup shows the cgroup of a process)`,
    );
  }
}
