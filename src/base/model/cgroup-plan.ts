/** One file to write in a cgroup. */
export interface CgroupWrite {
  /** Its hierarchy on cgroup v1; on v2 there is only one. */
  controller: "cpu" | "memory" | "pids" | "hugetlb";
  file: string;
  value: string;
  /** Means "no limit" or sets a weight: nothing is lost on a kernel without that file. */
  isIdle: boolean;
}

/** A cgroup as it should be; which of the lists counts depends on the machine. */
export interface CgroupPlan {
  /** Below the mount point of each hierarchy, with a leading slash. */
  path: string;
  v1Writes: readonly CgroupWrite[];
  v2Writes: readonly CgroupWrite[];
  /** Under the systemd driver: the slice, and `Property=value` for `systemctl set-property`. */
  slice?: { name: string; properties: readonly string[] };
}
