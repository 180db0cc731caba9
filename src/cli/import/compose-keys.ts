import { isRecord, type Json } from "../../base/text/json.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { rowsOf } from "../../base/text/word-rows.ts";
import { entriesOf } from "./compose-text.ts";
import { adviceOf } from "./docker-settings.ts";
import type { ImportNotes } from "./pod-parts.ts";

/** Carried over; what is lost of some values has a note where they are read. */
export const CARRIED = "carried over";
/** Nothing that runs depends on it. */
export const NEEDLESS = "needless";
const NOT_CARRIED = "is not carried over";
const WINDOWS = "has an effect on Windows only";
const SWARM = "has an effect in a swarm only";

/**
 * The fate of each key of a map: one of the words above, else the text of its note; or the keys of a map below it, or of each
 * map in a list or under names.
 */
export interface KeyRows {
  readonly [key: string]: string | { readonly of: "map" | "each"; readonly rows: KeyRows };
}

const carried = <const S extends string>(keys: S) => rowsOf(keys, CARRIED);
const needless = <const S extends string>(keys: S) => rowsOf(keys, NEEDLESS);
const lost = <const S extends string>(keys: S) => rowsOf(keys, NOT_CARRIED);
const map = <const T extends KeyRows>(rows: T) => ({ of: "map", rows }) as const;
const each = <const T extends KeyRows>(rows: T) => ({ of: "each", rows }) as const;

const DEVICE = {
  ...carried("capabilities count device_ids"),
  ...needless("driver"),
  ...lost("options"),
} as const;

const FILE_OF_SERVICE = carried("source target uid gid mode");

const AS_CONTAINER = "is not carried over: a command of lifecycle runs as the container does";
const HOOK = { ...carried("command"), ...rowsOf("environment privileged user working_dir", AS_CONTAINER) } as const;

const FILE = {
  ...carried("file environment content external name"),
  ...needless("labels"),
  ...rowsOf("driver driver_opts template_driver", SWARM),
} as const;

const SERVICE = {
  ...carried("annotations cap_add cap_drop command container_name cpu_period cpu_quota cpu_shares cpus"),
  ...carried(
    "dns dns_opt dns_search entrypoint environment expose extends extra_hosts group_add hostname image init ipc",
  ),
  ...carried("label_file labels links mem_limit mem_reservation network_mode pid privileged profiles pull_policy"),
  ...carried("read_only restart runtime scale security_opt shm_size stdin_open stop_grace_period stop_signal"),
  ...carried("sysctls tmpfs tty ulimits user volumes_from working_dir"),
  ...needless("attach develop pull_refresh_after"),
  ...lost("cgroup driver_opts mac_address"),
  ...rowsOf("cpu_count cpu_percent credential_spec isolation", WINDOWS),
  blkio_config: adviceOf("BlkioWeight"),
  build: "images are not built: run `docker compose build` first",
  cgroup_parent: adviceOf("CgroupParent"),
  configs: each(FILE_OF_SERVICE),
  cpu_rt_period: adviceOf("CpuRealtimePeriod"),
  cpu_rt_runtime: adviceOf("CpuRealtimeRuntime"),
  cpuset: adviceOf("CpusetCpus"),
  depends_on: each(carried("condition required restart")),
  deploy: map({
    ...needless("labels mode"),
    ...carried("replicas"),
    ...rowsOf("endpoint_mode placement rollback_config update_config", SWARM),
    resources: map({
      limits: map({ ...carried("cpus memory"), pids: adviceOf("PidsLimit") }),
      reservations: map({ ...carried("cpus memory"), generic_resources: SWARM, devices: each(DEVICE) }),
    }),
    restart_policy: map({
      ...carried("condition"),
      ...lost("window"),
      delay: "is not carried over: delays grow to five minutes",
      max_attempts: "is not carried over: attempts are not limited",
    }),
  }),
  device_cgroup_rules: adviceOf("DeviceCgroupRules"),
  devices: each(carried("source target permissions")),
  domainname: "is not carried over: set hostname and subdomain",
  env_file: each(carried("format path required")),
  external_links: "is not carried over: pods find each other by their names, in one network",
  gpus: each({ ...DEVICE, ...needless("capabilities") }),
  healthcheck: map({
    ...carried("disable interval retries start_interval test timeout"),
    ...needless("start_period"),
  }),
  logging: map(carried("driver options")),
  mem_swappiness: adviceOf("MemorySwappiness"),
  memswap_limit: "is not carried over: pods with a memory limit have no swap",
  models: "is not carried over: give its address in a variable",
  networks: each({
    ...carried("aliases ipv4_address ipv6_address"),
    ...needless("gw_priority priority"),
    ...lost("driver_opts interface_name link_local_ips mac_address"),
  }),
  oom_kill_disable: adviceOf("OomKillDisable"),
  oom_score_adj: adviceOf("OomScoreAdj"),
  pids_limit: adviceOf("PidsLimit"),
  platform: "is not carried over: the image of this machine's platform runs",
  ports: each({ ...carried("host_ip protocol published target"), ...needless("app_protocol mode name") }),
  post_start: each(HOOK),
  pre_stop: each(HOOK),
  provider: "is not carried over: the services that need it wait for nothing",
  secrets: each(FILE_OF_SERVICE),
  storage_opt: adviceOf("StorageOpt"),
  use_api_socket: "is not carried over: mount the socket of the engine as a hostPath",
  userns_mode: adviceOf("UsernsMode"),
  uts: adviceOf("UTSMode"),
  volumes: each({
    ...carried("read_only source target type"),
    ...needless("consistency"),
    bind: map({
      ...carried("create_host_path propagation selinux"),
      ...lost("recursive"),
    }),
    image: map(carried("subpath")),
    tmpfs: map(carried("size mode")),
    volume: map({ ...carried("nocopy subpath"), ...needless("labels") }),
  }),
} as const;

/** All keys of the Compose specification. */
export const COMPOSE_KEYS = {
  ...carried("include name"),
  ...needless("version"),
  ...lost("models"),
  configs: each(FILE),
  networks: each({
    ...carried("attachable driver driver_opts enable_ipv6 external internal name"),
    ...needless("labels"),
    ...lost("enable_ipv4"),
    ipam: map({
      ...carried("driver options"),
      config: each(carried("aux_addresses gateway ip_range subnet")),
    }),
  }),
  secrets: each(FILE),
  services: each({
    ...SERVICE,
    // A step is a container of the service, with settings of its own.
    pre_start: each({ ...SERVICE, ...needless("per_replica") } as KeyRows),
  }),
  volumes: each({ ...carried("driver driver_opts external name"), ...needless("labels") }),
} as const;

/** `init: false` asks for nothing, and a variable without a value neither. */
const isUnset = (value: Json | undefined): boolean => [null, undefined, false, ""].includes(value as null);

/** Values that are lost unless they have a form, by key, and an example of it. */
const FORMS: readonly (readonly [keys: RegExp, form: RegExp, example: string])[] = [
  [/^restart$/, /^(?:no|always|unless-stopped|on-failure(?::\d+)?)$/, "on-failure"],
  [/^(?:replicas|scale)$/, /^\d+$/, "2"],
  [/^(?:mem_limit|mem_reservation|shm_size|memory)$/, /^-?[\d.]+\s*(?:b|[kmgtp](?:i?b)?)?$/i, "512m"],
  [/^(?:stop_grace_period|interval|timeout|start_period)$/, /^(?:0|(?:[\d.]+(?:[uµm]?s|m|h))+)$/, "30s"],
];

/** Keys whose values may be maps. */
const MAY_BE_MAP =
  /^(?:annotations|aux_addresses|driver_opts|environment|extends|external|extra_hosts|include|labels|options|sysctls|ulimits)$/;

/** Adds a note for each key and value that is lost, and for each key that the specification does not have. */
export function noteKeys(value: Json | undefined, notes: ImportNotes, rows: KeyRows = COMPOSE_KEYS, at = ""): void {
  for (const [key, item] of isRecord(value) ? Object.entries(value) : []) {
    const row = Object.hasOwn(rows, key) ? rows[key] : undefined;
    const path = at + key;
    const text = row === CARRIED && (typeof item === "string" || typeof item === "number") ? `${item}` : "";
    const form = FORMS.find(([keys, written]) => text !== "" && keys.test(key) && !written.test(text));
    if (form) notes.add(path, `is not understood and is not carried over: write it as ${key}: ${form[2]}`);
    const map =
      row === CARRIED && !/^(?:include|label_file)$/.test(key) && Array.isArray(item) ? item.findIndex(isRecord) : -1;
    if (row === CARRIED && isRecord(item) && !MAY_BE_MAP.test(key))
      notes.add(path, "is a map and is not carried over: its value is a text");
    if (map >= 0)
      notes.add(
        `${path}[${map}]`,
        `is a map and is not carried over: items of ${key} are words: write it without ": "`,
      );
    if (key.startsWith("x-") || row === CARRIED || row === NEEDLESS) continue;
    if (row === undefined) notes.add(path, `is not a key of a Compose file here${didYouMean(key, Object.keys(rows))}`);
    else if (typeof row === "string") {
      if (!isUnset(item)) notes.add(path, row);
    } else if (row.of === "map") noteKeys(item, notes, row.rows, `${path}.`);
    else
      for (const [name, one] of entriesOf(item))
        noteKeys(one, notes, row.rows, `${path}${Array.isArray(item) ? `[${name}]` : `.${name}`}.`);
  }
}
