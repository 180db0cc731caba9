import type { Json } from "../../base/text/json.ts";
import { adviceOf } from "./docker-settings.ts";
import type { ImportNotes } from "./import-notes.ts";

const RESOLVE = "is not carried over: give the output of `docker compose config` instead of this file";
const NAMES = "is not carried over: pods find each other by their names, in the network of the project";

/** Keys that are read elsewhere; every other key is named in a note. */
const READ_KEYS = new Set(
  `image build command entrypoint environment env_file ports expose volumes tmpfs configs secrets restart healthcheck deploy
  mem_limit mem_reservation cpus network_mode networks user cap_add cap_drop privileged read_only security_opt sysctls
  group_add pid ipc shm_size devices extra_hosts dns dns_search dns_opt hostname tty stdin_open working_dir
  stop_grace_period stop_signal labels annotations depends_on pull_policy container_name profiles`.split(/\s+/),
);

/** Advice on keys of a service that a manifest cannot express. */
const ADVICE: Readonly<Record<string, string>> = {
  blkio_config: adviceOf("BlkioWeight"),
  cgroup_parent: adviceOf("CgroupParent"),
  cpu_shares: "is not carried over: set resources.requests.cpu",
  cpuset: adviceOf("CpusetCpus"),
  device_cgroup_rules: adviceOf("DeviceCgroupRules"),
  domainname: "is not carried over: set hostname and subdomain",
  extends: RESOLVE,
  external_links: NAMES,
  gpus: adviceOf("DeviceRequests"),
  init: adviceOf("Init"),
  links: NAMES,
  logging: "is not carried over: logs of pods are files, and --container-log-max-size limits all of them",
  memswap_limit: "is not carried over: pods with a memory limit have no swap",
  oom_score_adj: adviceOf("OomScoreAdj"),
  pids_limit: adviceOf("PidsLimit"),
  platform: "is not carried over: the image of this machine's platform runs",
  post_start: "is not carried over: set lifecycle.postStart",
  pre_stop: "is not carried over: set lifecycle.preStop",
  runtime: adviceOf("Runtime"),
  scale: "one pod is written: a Deployment with replicas runs several",
  storage_opt: adviceOf("StorageOpt"),
  ulimits: adviceOf("Ulimits"),
  volumes_from: "is not carried over: mount the same volumes, or make both services containers of one pod",
};

/** Names each key of a service that is not carried over. */
export function noteServiceKeys(service: { readonly [key: string]: Json }, path: string, notes: ImportNotes): void {
  for (const key of Object.keys(service)) {
    if (!READ_KEYS.has(key) && !key.startsWith("x-")) notes.add(`${path}.${key}`, ADVICE[key] ?? "is not carried over");
  }
  if (Array.isArray(service.profiles) && service.profiles.length > 0) {
    const names = service.profiles.join(", ");
    notes.add(
      `${path}.profiles`,
      `compose runs it only with the profile ${names}: leave out the pod if it is not wanted`,
    );
  }
}

/** Advice on keys of the whole file. */
export const FILE_ADVICE: Readonly<Record<string, string>> = { include: RESOLVE };
