import { isRecord, type Json } from "../../base/text/json.ts";
import { adviceOf } from "./docker-settings.ts";
import type { ImportNotes } from "./pod-parts.ts";

/** Carried over; what is lost of some values has a note where they are read. */
export const CARRIED = "carried over";
/** Nothing that runs depends on it. */
export const NEEDLESS = "needless";
/** It names another file, without which the import is not whole. */
const RESOLVE = "is not carried over: give the output of `docker compose config` instead of this file";
const NOT_CARRIED = "is not carried over";
const WINDOWS = "has an effect on Windows only";
const SWARM = "has an effect in a swarm only";

/** The keys of a map, or of each map in a list or under names. */
interface NestedRows {
  readonly of: "map" | "each";
  readonly rows: KeyRows;
}
/** The fate of each key of a map: one of the words above, or else the text of its note. */
export interface KeyRows {
  readonly [key: string]: string | NestedRows;
}

const map = <const T extends KeyRows>(rows: T) => ({ of: "map", rows }) as const;
const each = <const T extends KeyRows>(rows: T) => ({ of: "each", rows }) as const;

const DEVICE = {
  capabilities: CARRIED,
  count: CARRIED,
  device_ids: "is not carried over: GPUs are given by number; set NVIDIA_VISIBLE_DEVICES in the container",
  driver: NEEDLESS,
  options: NOT_CARRIED,
} as const;

const FILE_OF_SERVICE = {
  source: CARRIED,
  target: CARRIED,
  uid: CARRIED,
  gid: CARRIED,
  mode: CARRIED,
} as const;

const AS_CONTAINER = "is not carried over: a command of lifecycle runs as the container does";
const HOOK = {
  command: CARRIED,
  environment: AS_CONTAINER,
  privileged: AS_CONTAINER,
  user: AS_CONTAINER,
  working_dir: AS_CONTAINER,
} as const;

const FILE = {
  file: CARRIED,
  environment: CARRIED,
  content: CARRIED,
  external: CARRIED,
  name: CARRIED,
  labels: NEEDLESS,
  driver: SWARM,
  driver_opts: SWARM,
  template_driver: SWARM,
} as const;

const SERVICE = {
  annotations: CARRIED,
  attach: NEEDLESS,
  blkio_config: adviceOf("BlkioWeight"),
  build: "images are not built: run `docker compose build` first",
  cap_add: CARRIED,
  cap_drop: CARRIED,
  cgroup: NOT_CARRIED,
  cgroup_parent: adviceOf("CgroupParent"),
  command: CARRIED,
  configs: each(FILE_OF_SERVICE),
  container_name: CARRIED,
  cpu_count: WINDOWS,
  cpu_percent: WINDOWS,
  cpu_period: CARRIED,
  cpu_quota: CARRIED,
  cpu_rt_period: adviceOf("CpuRealtimePeriod"),
  cpu_rt_runtime: adviceOf("CpuRealtimeRuntime"),
  cpu_shares: CARRIED,
  cpus: CARRIED,
  cpuset: adviceOf("CpusetCpus"),
  credential_spec: WINDOWS,
  depends_on: each({ condition: CARRIED, required: CARRIED, restart: CARRIED }),
  deploy: map({
    endpoint_mode: SWARM,
    labels: NEEDLESS,
    mode: NEEDLESS,
    placement: SWARM,
    replicas: CARRIED,
    resources: map({
      limits: map({ cpus: CARRIED, memory: CARRIED, pids: adviceOf("PidsLimit") }),
      reservations: map({ cpus: CARRIED, memory: CARRIED, generic_resources: SWARM, devices: each(DEVICE) }),
    }),
    restart_policy: map({
      condition: CARRIED,
      delay: "is not carried over: delays grow to five minutes",
      max_attempts: "is not carried over: attempts are not limited",
      window: NOT_CARRIED,
    }),
    rollback_config: SWARM,
    update_config: SWARM,
  }),
  develop: NEEDLESS,
  device_cgroup_rules: adviceOf("DeviceCgroupRules"),
  devices: each({ source: CARRIED, target: CARRIED, permissions: CARRIED }),
  dns: CARRIED,
  dns_opt: CARRIED,
  dns_search: CARRIED,
  domainname: "is not carried over: set hostname and subdomain",
  driver_opts: NOT_CARRIED,
  entrypoint: CARRIED,
  env_file: each({
    path: CARRIED,
    required: CARRIED,
    format: "is not carried over: the file is read as Compose reads one",
  }),
  environment: CARRIED,
  expose: CARRIED,
  extends: RESOLVE,
  external_links: "is not carried over: pods find each other by their names, in one network",
  extra_hosts: CARRIED,
  gpus: each({ ...DEVICE, capabilities: NEEDLESS }),
  group_add: CARRIED,
  healthcheck: map({
    disable: CARRIED,
    interval: CARRIED,
    retries: CARRIED,
    start_interval: CARRIED,
    start_period: NEEDLESS,
    test: CARRIED,
    timeout: CARRIED,
  }),
  hostname: CARRIED,
  image: CARRIED,
  init: CARRIED,
  ipc: CARRIED,
  isolation: WINDOWS,
  label_file: CARRIED,
  labels: CARRIED,
  links: CARRIED,
  logging: map({ driver: CARRIED, options: CARRIED }),
  mac_address: NOT_CARRIED,
  mem_limit: CARRIED,
  mem_reservation: CARRIED,
  mem_swappiness: adviceOf("MemorySwappiness"),
  memswap_limit: "is not carried over: pods with a memory limit have no swap",
  models: "is not carried over: give its address in a variable",
  network_mode: CARRIED,
  networks: each({
    aliases: CARRIED,
    driver_opts: NOT_CARRIED,
    gw_priority: NEEDLESS,
    interface_name: NOT_CARRIED,
    ipv4_address: CARRIED,
    ipv6_address: CARRIED,
    link_local_ips: NOT_CARRIED,
    mac_address: NOT_CARRIED,
    priority: NEEDLESS,
  }),
  oom_kill_disable: adviceOf("OomKillDisable"),
  oom_score_adj: adviceOf("OomScoreAdj"),
  pid: CARRIED,
  pids_limit: adviceOf("PidsLimit"),
  platform: "is not carried over: the image of this machine's platform runs",
  ports: each({
    app_protocol: NEEDLESS,
    host_ip: CARRIED,
    mode: NEEDLESS,
    name: NEEDLESS,
    protocol: CARRIED,
    published: CARRIED,
    target: CARRIED,
  }),
  post_start: each(HOOK),
  pre_stop: each(HOOK),
  privileged: CARRIED,
  profiles: CARRIED,
  provider: "is not carried over: what it provides must run already",
  pull_policy: CARRIED,
  pull_refresh_after: NEEDLESS,
  read_only: CARRIED,
  restart: CARRIED,
  runtime: CARRIED,
  scale: CARRIED,
  secrets: each(FILE_OF_SERVICE),
  security_opt: CARRIED,
  shm_size: CARRIED,
  stdin_open: CARRIED,
  stop_grace_period: CARRIED,
  stop_signal: CARRIED,
  storage_opt: adviceOf("StorageOpt"),
  sysctls: CARRIED,
  tmpfs: CARRIED,
  tty: CARRIED,
  ulimits: CARRIED,
  use_api_socket: "is not carried over: mount the socket of the engine as a hostPath",
  user: CARRIED,
  userns_mode: adviceOf("UsernsMode"),
  uts: adviceOf("UTSMode"),
  volumes: each({
    bind: map({
      create_host_path: NEEDLESS,
      propagation: CARRIED,
      recursive: NOT_CARRIED,
      selinux: "is not carried over: SELinux labels are not set",
    }),
    consistency: NEEDLESS,
    image: map({ subpath: CARRIED }),
    read_only: CARRIED,
    source: CARRIED,
    target: CARRIED,
    tmpfs: map({ size: CARRIED, mode: CARRIED }),
    type: CARRIED,
    volume: map({ labels: NEEDLESS, nocopy: CARRIED, subpath: CARRIED }),
  }),
  volumes_from: CARRIED,
  working_dir: CARRIED,
} as const;

/** All keys of the Compose specification. */
export const COMPOSE_KEYS = {
  configs: each(FILE),
  include: RESOLVE,
  models: NOT_CARRIED,
  name: CARRIED,
  networks: each({
    attachable: CARRIED,
    driver: CARRIED,
    driver_opts: CARRIED,
    enable_ipv4: NOT_CARRIED,
    enable_ipv6: CARRIED,
    external: CARRIED,
    internal: CARRIED,
    ipam: map({
      config: each({ aux_addresses: CARRIED, gateway: CARRIED, ip_range: CARRIED, subnet: CARRIED }),
      driver: CARRIED,
      options: CARRIED,
    }),
    labels: NEEDLESS,
    name: CARRIED,
  }),
  secrets: each(FILE),
  services: each(SERVICE),
  version: NEEDLESS,
  volumes: each({ driver: CARRIED, driver_opts: CARRIED, external: CARRIED, labels: NEEDLESS, name: CARRIED }),
} as const;

type PathsOf<T, Row> = {
  [K in keyof T & string]: T[K] extends { rows: infer R } ? `${K}.${PathsOf<R, Row>}` : T[K] extends Row ? K : never;
}[keyof T & string];
/** Paths of the keys that are carried over: `services.deploy.replicas`. */
export type CarriedKey = PathsOf<typeof COMPOSE_KEYS, typeof CARRIED>;

/** `init: false` asks for nothing, and a variable without a value neither. */
const isUnset = (value: Json | undefined): boolean => [null, undefined, false, ""].includes(value as null);

/** Adds a note for each key that is lost, and for each that the specification does not have. */
export function noteKeys(value: Json | undefined, notes: ImportNotes, rows: KeyRows = COMPOSE_KEYS, at = ""): void {
  for (const [key, item] of isRecord(value) ? Object.entries(value) : []) {
    const row = Object.hasOwn(rows, key) ? rows[key] : undefined;
    const path = at + key;
    if (key.startsWith("x-") || row === CARRIED || row === NEEDLESS) continue;
    if (row === undefined) notes.add(path, "is not a key of a Compose file here");
    else if (row === RESOLVE) notes.addMissing(path, row);
    else if (typeof row === "string") {
      if (!isUnset(item)) notes.add(path, row);
    } else if (row.of === "map") noteKeys(item, notes, row.rows, `${path}.`);
    else {
      const items = Array.isArray(item) ? item.map((one, index) => [`[${index}]`, one] as const) : namedItemsOf(item);
      for (const [name, one] of items) noteKeys(one, notes, row.rows, `${path}${name}.`);
    }
  }
}

const namedItemsOf = (value: Json | undefined) =>
  isRecord(value) ? Object.entries(value).map(([name, item]) => [`.${name}`, item] as const) : [];
