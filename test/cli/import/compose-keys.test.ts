import { describe, expect, test } from "bun:test";
import { parse } from "yaml";
import type { Json } from "../../../src/base/text/json.ts";
import { importCompose } from "../../../src/cli/import/compose.ts";
import { CARRIED, COMPOSE_KEYS, type KeyRows, NEEDLESS } from "../../../src/cli/import/compose-keys.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

const FILES: Readonly<Record<string, string>> = {
  "": "",
  "/srv/a.env": "A=1\n",
  "/srv/raw.env": "A='$B' # c\n",
  "/srv/f": "text",
  "/srv/more.yaml": "services: {more: {image: b, init: true}}",
};

function convert(file: Json) {
  const { manifests, notes } = importCompose({
    files: ["/srv/compose.yaml"],
    project: "shop",
    directory: "/srv",
    environment: new Map([["VALUE", "v"]]),
    readFile: (path) => (path === "/srv/compose.yaml" ? JSON.stringify(file) : FILES[path]),
    findDevices: (path) => [{ path, type: "CharDevice" }],
  });
  return { manifests, notes: notes.map((note) => note.replace(/^compose\.yaml:1: /, "")) };
}

type PathsOf<T, Row> = {
  [K in keyof T & string]: T[K] extends { rows: infer R } ? `${K}.${PathsOf<R, Row>}` : T[K] extends Row ? K : never;
}[keyof T & string];
/** Paths of the keys that are carried over: `services.deploy.replicas`. */
type CarriedKey = PathsOf<typeof COMPOSE_KEYS, typeof CARRIED>;

/**
 * An example of each key that is carried over: keys of the service `web`, or of the whole file. The compiler asks for a
 * row for each.
 */
const EXAMPLES: Readonly<Record<CarriedKey, string>> = {
  include: "services: {web: {image: a}}, include: [more.yaml]",
  name: "services: {web: {image: a, volumes: ['v:/v']}}, name: other",
  "configs.content": "services: {web: {image: a, configs: [c]}}, configs: {c: {content: x}}",
  "configs.environment": "services: {web: {image: a, configs: [c]}}, configs: {c: {environment: VALUE}}",
  "configs.external": "services: {web: {image: a, configs: [c]}}, configs: {c: {external: true}}",
  "configs.file": "services: {web: {image: a, configs: [c]}}, configs: {c: {file: f}}",
  "configs.name": "services: {web: {image: a, configs: [c]}}, configs: {c: {external: true, name: n}}",
  "secrets.content": "services: {web: {image: a, secrets: [c]}}, secrets: {c: {content: x}}",
  "secrets.environment": "services: {web: {image: a, secrets: [c]}}, secrets: {c: {environment: VALUE}}",
  "secrets.external": "services: {web: {image: a, secrets: [c]}}, secrets: {c: {external: true}}",
  "secrets.file": "services: {web: {image: a, secrets: [c]}}, secrets: {c: {file: f}}",
  "secrets.name": "services: {web: {image: a, secrets: [c]}}, secrets: {c: {external: true, name: n}}",
  "networks.attachable": "services: {web: {image: a, networks: [n]}}, networks: {n: {attachable: true}}",
  "networks.driver": "services: {web: {image: a, networks: [n]}}, networks: {n: {driver: macvlan}}",
  "networks.driver_opts": "services: {web: {image: a, networks: [n]}}, networks: {n: {driver_opts: {parent: eth0}}}",
  "networks.enable_ipv6": "services: {web: {image: a, networks: [n]}}, networks: {n: {enable_ipv6: true}}",
  "networks.external": "services: {web: {image: a, networks: [n]}}, networks: {n: {external: true}}",
  "networks.internal": "services: {web: {image: a, networks: [n]}}, networks: {n: {internal: true}}",
  "networks.ipam.config.aux_addresses":
    "services: {web: {image: a, networks: [n]}}, networks: {n: {ipam: {config: [{aux_addresses: {host: 10.0.0.9}}]}}}",
  "networks.ipam.driver": "services: {web: {image: a, networks: [n]}}, networks: {n: {ipam: {driver: dhcp}}}",
  "networks.ipam.options": "services: {web: {image: a, networks: [n]}}, networks: {n: {ipam: {options: {a: b}}}}",
  "networks.ipam.config.gateway":
    "services: {web: {image: a, networks: [n]}}, networks: {n: {ipam: {config: [{gateway: 10.0.0.1}]}}}",
  "networks.ipam.config.ip_range":
    "services: {web: {image: a, networks: [n]}}, networks: {n: {ipam: {config: [{ip_range: 10.0.0.0/25}]}}}",
  "networks.ipam.config.subnet":
    "services: {web: {image: a, networks: [n]}}, networks: {n: {ipam: {config: [{subnet: 10.0.0.0/24}]}}}",
  "networks.name": "services: {web: {image: a, networks: [n]}}, networks: {n: {name: own}}",
  "volumes.driver": "services: {web: {image: a, volumes: ['v:/v']}}, volumes: {v: {driver: rclone}}",
  "volumes.driver_opts":
    "services: {web: {image: a, volumes: ['v:/v']}}, volumes: {v: {driver_opts: {type: none, o: bind, device: /d}}}",
  "volumes.external": "services: {web: {image: a, volumes: ['v:/v']}}, volumes: {v: {external: true}}",
  "volumes.name": "services: {web: {image: a, volumes: ['v:/v']}}, volumes: {v: {name: own}}",
  "services.annotations": "annotations: {a: b}",
  "services.cap_add": "cap_add: [NET_ADMIN]",
  "services.cap_drop": "cap_drop: [ALL]",
  "services.command": "command: sleep 1",
  "services.configs.mode": "configs: [{source: c, target: /c, mode: 288}]",
  "services.configs.source": "configs: [{source: c, target: /c}]",
  "services.configs.target": "configs: [{source: c, target: /c2}]",
  "services.container_name": "container_name: www, networks: [n]",
  "services.extends": "extends: {file: more.yaml, service: more}",
  "services.cpu_period": "cpu_quota: 50000, cpu_period: 50000",
  "services.cpu_quota": "cpu_quota: 50000",
  "services.cpu_shares": "cpu_shares: 512",
  "services.cpus": "cpus: 0.5",
  "services.depends_on.condition": "depends_on: {db: {condition: service_healthy}}",
  "services.depends_on.required": "depends_on: {absent: {condition: service_started, required: false}}",
  "services.depends_on.restart": "depends_on: {db: {condition: service_started, restart: true}}",
  "services.deploy.replicas": "deploy: {replicas: 3}",
  "services.deploy.resources.limits.cpus": "deploy: {resources: {limits: {cpus: '1'}}}",
  "services.deploy.resources.limits.memory": "deploy: {resources: {limits: {memory: 1g}}}",
  "services.deploy.resources.reservations.cpus": "deploy: {resources: {reservations: {cpus: '1'}}}",
  "services.deploy.resources.reservations.memory": "deploy: {resources: {reservations: {memory: 1g}}}",
  "services.deploy.resources.reservations.devices.capabilities":
    "deploy: {resources: {reservations: {devices: [{capabilities: [gpu], count: 1}]}}}",
  "services.deploy.resources.reservations.devices.count":
    "deploy: {resources: {reservations: {devices: [{capabilities: [gpu], count: 2}]}}}",
  "services.deploy.resources.reservations.devices.device_ids":
    "deploy: {resources: {reservations: {devices: [{capabilities: [gpu], device_ids: ['1']}]}}}",
  "services.deploy.restart_policy.condition": "deploy: {restart_policy: {condition: any}}",
  "services.devices.permissions": "devices: [{source: /dev/a, permissions: r}]",
  "services.devices.source": "devices: [{source: /dev/a}]",
  "services.devices.target": "devices: [{source: /dev/a, target: /dev/b}]",
  "services.dns": "dns: 9.9.9.9",
  "services.dns_opt": "dns_opt: ['ndots:2']",
  "services.dns_search": "dns_search: [lan]",
  "services.entrypoint": "entrypoint: [sh, -c]",
  "services.env_file.path": "env_file: [{path: a.env}]",
  "services.env_file.format": "env_file: [{path: raw.env, format: raw}]",
  "services.env_file.required": "env_file: [{path: none, required: false}]",
  "services.environment": "environment: {A: b}",
  "services.expose": "expose: ['80']",
  "services.extra_hosts": "extra_hosts: ['a=10.0.0.1']",
  "services.gpus.count": "gpus: [{count: 2}]",
  "services.gpus.device_ids": "gpus: [{device_ids: ['1']}]",
  "services.group_add": "group_add: ['44']",
  "services.healthcheck.disable": "healthcheck: {test: a, disable: true}",
  "services.healthcheck.interval": "healthcheck: {test: a, interval: 5s}",
  "services.healthcheck.retries": "healthcheck: {test: a, retries: 5}",
  "services.healthcheck.test": "healthcheck: {test: [CMD, a]}",
  "services.healthcheck.timeout": "healthcheck: {test: a, timeout: 5s}",
  "services.hostname": "hostname: h",
  "services.image": "image: b",
  "services.init": "init: true",
  "services.ipc": "ipc: host",
  "services.label_file": "label_file: a.env",
  "services.labels": "labels: {a: b}",
  "services.links": "links: [db]",
  "services.mem_limit": "mem_limit: 1g",
  "services.mem_reservation": "mem_reservation: 1g",
  "services.network_mode": "network_mode: host",
  "services.networks.aliases": "networks: {n: {aliases: [www]}}",
  "services.networks.ipv4_address": "networks: {n: {ipv4_address: 10.0.0.2}}",
  "services.networks.ipv6_address": "networks: {n: {ipv6_address: 'fd00::2'}}",
  "services.pid": "pid: host",
  "services.ports.host_ip": "ports: [{target: 80, published: 80, host_ip: 127.0.0.1}]",
  "services.ports.protocol": "ports: [{target: 80, published: 80, protocol: udp}]",
  "services.ports.published": "ports: [{target: 80, published: 81}]",
  "services.ports.target": "ports: [{target: 80, published: 81}]",
  "services.post_start.command": "post_start: [{command: touch /a}]",
  "services.pre_stop.command": "pre_stop: [{command: [sleep, '1']}]",
  "services.privileged": "privileged: true",
  "services.profiles": "profiles: [debug]",
  "services.pull_policy": "pull_policy: always",
  "services.read_only": "read_only: true",
  "services.restart": "restart: always",
  "services.runtime": "runtime: nvidia",
  "services.scale": "scale: 2",
  "services.secrets.mode": "secrets: [{source: s, mode: 288}]",
  "services.secrets.source": "secrets: [{source: s}]",
  "services.secrets.target": "secrets: [{source: s, target: t}]",
  "services.security_opt": "security_opt: [no-new-privileges]",
  "services.shm_size": "shm_size: 1g",
  "services.stdin_open": "stdin_open: true",
  "services.stop_grace_period": "stop_grace_period: 1m",
  "services.stop_signal": "stop_signal: SIGINT",
  "services.sysctls": "sysctls: {net.core.somaxconn: 1024}",
  "services.tmpfs": "tmpfs: /run",
  "services.tty": "tty: true",
  "services.ulimits": "ulimits: {nofile: {soft: 1, hard: 2}, nproc: 3}",
  "services.user": "user: '1'",
  "services.configs.gid": "configs: [{source: c, gid: '7'}]",
  "services.configs.uid": "configs: [{source: c, uid: '7'}]",
  "services.secrets.gid": "secrets: [{source: s, gid: '7'}]",
  "services.secrets.uid": "secrets: [{source: s, uid: '7'}]",
  "services.logging.driver": "logging: {driver: syslog}",
  "services.logging.options": "logging: {options: {max-size: 10m}}",
  "services.healthcheck.start_interval": "healthcheck: {test: a, start_period: 9s, start_interval: 1s}",
  "services.volumes.bind.create_host_path":
    "volumes: [{type: bind, source: /a, target: /a, bind: {create_host_path: false}}]",
  "services.volumes.bind.selinux": "volumes: [{type: bind, source: /a, target: /a, bind: {selinux: z}}]",
  "services.volumes.bind.propagation": "volumes: [{type: bind, source: /a, target: /a, bind: {propagation: rslave}}]",
  "services.volumes.image.subpath": "volumes: [{type: image, source: b, target: /b, image: {subpath: c}}]",
  "services.volumes.read_only": "volumes: [{type: bind, source: /a, target: /a, read_only: true}]",
  "services.volumes.source": "volumes: [{type: bind, source: /a, target: /b}]",
  "services.volumes.target": "volumes: [{type: bind, source: /a, target: /b}]",
  "services.volumes.tmpfs.mode": "volumes: [{type: tmpfs, target: /b, tmpfs: {mode: 0o750}}]",
  "services.volumes.tmpfs.size": "volumes: [{type: tmpfs, target: /b, tmpfs: {size: 1000}}]",
  "services.volumes.type": "volumes: [{type: bind, source: /a, target: /b}]",
  "services.volumes.volume.nocopy": "volumes: [{type: volume, source: v, target: /b, volume: {nocopy: true}}]",
  "services.volumes.volume.subpath": "volumes: [{type: volume, source: v, target: /b, volume: {subpath: c}}]",
  "services.volumes_from": "volumes_from: ['db:ro']",
  "services.working_dir": "working_dir: /w",
};

/** Keys of a service whose values decide over notes only: nothing of a pod corresponds to them. */
const NOTES_ONLY: readonly string[] = [
  "depends_on.restart",
  "depends_on.required",
  "logging.driver",
  "volumes.bind.create_host_path",
  "volumes.bind.selinux",
];

test.each(Object.entries(EXAMPLES))("%s is carried over", (path, example) => {
  const isOfService = path.startsWith("services.");
  const db = "{image: b, volumes: ['d:/d'], network_mode: bridge}";
  const rest = "configs: {c: {content: x}}, secrets: {s: {content: x}}";
  const image = path === "services.image" ? "" : "image: a, ";
  const file = parse(
    isOfService ? `{services: {web: {${image}${example}}, db: ${db}}, ${rest}}` : `{${example}}`,
  ) as Json;
  const last = path.slice(path.lastIndexOf(".") + 1);
  const webOnly = { services: {} };
  const strip = (value: Json, isBelow: boolean): Json => {
    if (Array.isArray(value)) return value.map((item) => strip(item, isBelow));
    if (typeof value !== "object" || value === null) return value;
    const kept = Object.entries(value).filter(([key]) => !isBelow || key !== last);
    return Object.fromEntries(kept.map(([key, item]) => [key, strip(item, isBelow || key === path.split(".")[0])]));
  };
  const without = ["name", "include"].includes(path) ? { ...(file as object), [path]: null } : strip(file, false);
  expect(without).not.toEqual(file);
  if (path === "services.env_file.required") {
    expect(() => convert(without as Json)).toThrow("is not there");
    return;
  }
  if (path === "services.image") return expect(() => convert(without as Json)).toThrow("write image: NAME");
  const [given, bare] = [convert(file), convert((without as Json) ?? webOnly)];
  const isNoted = !isOfService || NOTES_ONLY.some((key) => path.endsWith(key));
  expect(isNoted ? given : given.manifests).not.toEqual((isNoted ? bare : bare.manifests) as never);
  const text = `# compose\n${given.manifests.map((object) => JSON.stringify(object)).join("\n---\n")}`;
  const { findings } = readManifest(Buffer.from(text), {
    file: "f",
    nodeName: "n",
    source: "file",
    allowPrivileged: true,
  });
  expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
});

/** All keys with their rows, and a file that has the key. */
function* rowsOf(rows: KeyRows, wrap: (value: Json) => Json, path = ""): Generator<[string, string, Json]> {
  for (const [key, row] of Object.entries(rows)) {
    if (typeof row === "string") {
      yield [path + key, row, wrap({ [key]: "x" })];
      continue;
    }
    // Maps under names; lists only where the specification has nothing else.
    const isNamed = path === "" || key === "networks" || key === "depends_on";
    const around = (value: Json): Json => (row.of === "map" ? value : isNamed ? { n: value } : [value]);
    yield* rowsOf(row.rows, (value) => wrap({ [key]: around(value) }), `${path}${key}.`);
  }
}

/** The file, with a service. */
const complete = (file: Json): Json => {
  const { services = { n: {} }, ...rest } = file as { readonly [key: string]: Json };
  const named = Object.entries(services as object).map(([name, service]) => [
    name,
    { image: "a", ...(service as object) },
  ]);
  return { services: Object.fromEntries(named), ...rest } as Json;
};
const ALL = [...rowsOf(COMPOSE_KEYS, (value) => value)];

describe("what is not carried over", () => {
  const noted = ALL.filter(([, row]) => row !== CARRIED && row !== NEEDLESS);

  test.each(noted)("%s has a note: %s", (path, row, file) => {
    const { notes } = convert(complete(file));
    const last = path.slice(path.lastIndexOf(".") + 1);
    expect(notes.filter((note) => note.endsWith(`${last}: ${row}`))).toHaveLength(1);
  });

  test("nothing is said of a key that asks for nothing", () => {
    const file = parse(
      "{services: {web: {image: a, init: false, oom_kill_disable: false, logging: null, x-a: b}}, x-b: c}",
    );
    expect(convert(file).notes).toEqual([]);
  });
});

test.each(ALL.filter(([, row]) => row === NEEDLESS))("%s changes nothing", (path, _, file) => {
  const withoutKey = JSON.parse(JSON.stringify(file).replace(/"[^"]+":"x"/, "")) as Json;
  expect(convert(complete(file))).toEqual(convert(complete(withoutKey)));
  expect(path).not.toBe("");
});

/** Keys of a service. Source: compose specification, schema/compose-spec.json. */
const SPECIFIED = `annotations attach blkio_config build cap_add cap_drop cgroup cgroup_parent command configs container_name
  cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime cpu_shares cpus cpuset credential_spec depends_on
  deploy develop device_cgroup_rules devices dns dns_opt dns_search domainname driver_opts entrypoint env_file environment
  expose extends external_links extra_hosts gpus group_add healthcheck hostname image init ipc isolation label_file labels
  links logging mac_address mem_limit mem_reservation mem_swappiness memswap_limit models network_mode networks
  oom_kill_disable oom_score_adj pid pids_limit platform ports post_start pre_start pre_stop privileged profiles provider pull_policy
  pull_refresh_after read_only restart runtime scale secrets security_opt shm_size stdin_open stop_grace_period stop_signal
  storage_opt sysctls tmpfs tty ulimits use_api_socket user userns_mode uts volumes volumes_from working_dir`;

test("the table has every key of a service", () => {
  expect(Object.keys(COMPOSE_KEYS.services.rows).sort()).toEqual(SPECIFIED.split(/\s+/).sort());
});
