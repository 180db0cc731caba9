import { readdirSync, readlinkSync } from "node:fs";

/**
 * Descriptors of a process, without those of cgroup files: these stay open between two samples for every cgroup of the
 * machine, also those of other tests, up to a bound of their own.
 */
export const countDescriptors = (pid: number): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return !readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith("/sys/fs/cgroup/");
    } catch {
      return false;
    }
  }).length;
