// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Compose files
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { importCompose } from "../../../src/cli/import/compose.ts";
import { parseCompose } from "../../../src/cli/import/compose-text.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

const DIRECTORY = join(import.meta.dir, "../../fixtures/compose");
const LOSS = "is not carried over";

const left = (service: string, profile: string) =>
  `services.${service}.profiles: compose runs it only with the profile ${profile}: it is left out; --profile=${profile} takes it`;
const BUILD = "build: images are not built: run `docker compose build` first";

const PRIVILEGED = "privileged: start kubelet-ts with --allow-privileged";
const UNSET = "has no value, neither here nor in the environment";

const SELINUX = "volumes: z and Z of mounts are not carried over: SELinux labels are not set";

/** Losses of files as projects publish them, besides that a health check reports only. */
const LOST: Readonly<Record<string, readonly string[]>> = {
  mailcow: [
    `services.netfilter-mailcow.${PRIVILEGED}`,
    "services.redis-mailcow.sysctls.net.core.somaxconn: start kubelet-ts with --allowed-unsafe-sysctls=net.core.somaxconn",
    SELINUX,
  ],
  supabase: [SELINUX],
  monitoring: [
    "services.grafana.secrets[0]: its content cannot be read: create a ConfigMap or Secret for it",
    "services.prometheus.extra_hosts: host.docker.internal:host-gateway is not carried over: the address must be given",
  ],
  peertube: ["services.peertube.networks: fdab:e4b3:21a2:ef1b::42 is not carried over: a pod has one fixed address"],
  minecraft: [
    "services.mc.memswap_limit: is not carried over: pods with a memory limit have no swap",
    "services.mc.oom_score_adj: is not carried over: it follows from requests and limits",
    "services.mc.pull_policy: daily is not carried over: the annotations kubelet-ts.io/image-update and kubelet-ts.io/image-update-schedule look for new images",
  ],
  "adguard-unbound": ["services.adguard.networks.lan.mac_address: is not carried over"],
  "mlflow-gpu": [
    "services.mlflow.post_start[0].user: is not carried over: a command of lifecycle runs as the container does",
  ],
  "homepage-socket-proxy": [
    "services.homepage.cgroup_parent: is not carried over: pods have cgroups of their own below --cgroup-root",
    "services.homepage.userns_mode: is not carried over",
    "services.homepage.uts: is not carried over",
  ],
  "nfs-media": [
    "services.sonarr.group_add.users: is not a number: set supplementalGroups",
    "volumes.cfg: each pod has a volume in memory of its own",
    "volumes.cfg: o=uid=1000 is not carried over: set kubelet-ts.io/empty-dir-options of its pods",
  ],
  "redis-sentinel": [
    "services.redis-master.sysctls.net.core.somaxconn: start kubelet-ts with --allowed-unsafe-sysctls=net.core.somaxconn",
    "services.redis-replica.sysctls.net.core.somaxconn: start kubelet-ts with --allowed-unsafe-sysctls=net.core.somaxconn",
    "services.sentinel.depends_on.redis-master: restart is not carried over: a pod that runs is left alone",
    "services.sentinel.depends_on.redis-replica: required is not carried over: the pod waits also when that one fails",
    "services.sentinel.sysctls.net.core.somaxconn: start kubelet-ts with --allowed-unsafe-sysctls=net.core.somaxconn",
  ],
  arr: ["services.radarr.depends_on.qbittorrent: required is not carried over: the pod waits also when that one fails"],
  "gitlab-runner": [`services.dind.${PRIVILEGED}`, SELINUX],
  plausible: [
    `services.plausible.environment.GOOGLE_CLIENT_ID: ${UNSET}`,
    `services.plausible.environment.HTTP_PORT: ${UNSET}`,
  ],
  tig: [
    `services.grafana.extra_hosts: host.docker.internal:host-gateway ${LOSS}: the address must be given`,
    `services.telegraf.depends_on.influxdb: restart ${LOSS}: a pod that runs is left alone`,
    "services.telegraf.user: telegraf:998 is not a number: set runAsUser and runAsGroup",
  ],
  unifi: [
    `services.unifi-db.memswap_limit: ${LOSS}: pods with a memory limit have no swap`,
    `services.unifi-network-application.environment.MONGO_TLS: ${UNSET}`,
  ],
  "home-assistant": [`services.homeassistant.${PRIVILEGED}`],
  guacamole: [
    "services.guacamole.ports[0]: has no published port, which Docker would choose: set hostPort to publish it",
    SELINUX,
  ],
  jenkins: [`services.docker.${PRIVILEGED}`],
  "media-nfs": [`services.jellyfin.extra_hosts: host.docker.internal:host-gateway ${LOSS}: the address must be given`],
  ollama: [`services.open-webui.extra_hosts: host.docker.internal:host-gateway ${LOSS}: the address must be given`],
  airflow: ["${AIRFLOW_UID}: has no value, neither in .env nor in the environment: it is empty"],
  "dev-node": [
    `services.app.${BUILD}`,
    `services.app.depends_on.db: restart ${LOSS}: a pod that runs is left alone`,
    `services.app.extra_hosts: host.docker.internal:host-gateway ${LOSS}: the address must be given`,
    "services.app.volumes[1]: is an anonymous volume: it has the name dev-node_app-usr-src-app-node-modules, and stays until docker volume rm",
    `services.db.pids_limit: ${LOSS}: --pod-max-pids limits all pods`,
  ],
  frigate: [`services.frigate.${PRIVILEGED}`],
  jitsi: ["services.web.environment.AMPLITUDE_ID: has no value, neither here nor in the environment", SELINUX],
  nextcloud: [SELINUX],
  plex: ["services.plex.environment.PLEX_CLAIM: has no value, neither here nor in the environment"],
  prometheus: [`services.cadvisor.${PRIVILEGED}`],
  "profiles-gpu": [left("cpu", "cpu"), `services.cuda.${BUILD}`, left("rocm", "rocm")],
  "swarm-stack": [
    "services.web.deploy.endpoint_mode: has an effect in a swarm only",
    "services.web.deploy.placement: has an effect in a swarm only",
    `services.web.deploy.resources.limits.pids: ${LOSS}: --pod-max-pids limits all pods`,
    `services.web.deploy.restart_policy.delay: ${LOSS}: delays grow to five minutes`,
    `services.web.deploy.restart_policy.max_attempts: ${LOSS}: attempts are not limited`,
    `services.web.deploy.restart_policy.window: ${LOSS}`,
    "services.web.deploy.rollback_config: has an effect in a swarm only",
    "services.web.deploy.update_config: has an effect in a swarm only",
    "services.web.secrets[0]: is external: create the Secret server-certificate with the key server.cert",
  ],
  synapse: ["services.synapse.environment.TZ: has no value, neither here nor in the environment"],
  traefik: [`services.whoami.restart: no ${LOSS}: containers of a Deployment are always restarted`],
  vote: [left("seed", "seed"), "services.vote.build: images are not built: run `docker compose build` first"],
  vpn: [`services.qbittorrent.depends_on.gluetun: ${LOSS}: the containers of a pod start together`],
  watchtower: ["services.watchtower.restart: attempts are not limited: delays grow to five minutes"],
  wireguard: [
    "services.wireguard.sysctls.net.ipv4.conf.all.src_valid_mark: start kubelet-ts with --allowed-unsafe-sysctls=net.ipv4.conf.all.src_valid_mark",
  ],
  zigbee2mqtt: ["services.zigbee2mqtt.group_add.dialout: is not a number: set supplementalGroups"],
};

const NAMES = readdirSync(DIRECTORY).map((file) => file.replace(/\.yaml$/, ""));

test.each(NAMES)("%s loses what it says", (name) => {
  const text = readFileSync(join(DIRECTORY, `${name}.yaml`), "utf8");
  const { manifests, notes: all } = importCompose({
    files: ["/srv/compose.yaml"],
    project: name,
    directory: "/srv",
    environment: new Map(),
    readFile: (path) => (path === "/srv/compose.yaml" ? text : "A=1\n"),
    findDevices: (path) => (path.startsWith("/dev/nvidia") ? [] : [{ path, type: "CharDevice" }]),
  });
  const notes = all.map((note) => note.replace(/^compose\.yaml:\d+: /, ""));
  const isLoss = (note: string) =>
    !/^(create the network|the network of the pods is external|the pods use the Docker volumes)|healthcheck: becomes/.test(
      note,
    );
  expect(notes.filter(isLoss).sort()).toEqual([...(LOST[name] ?? [])]);
  const written = `# compose\n${manifests.map((object) => JSON.stringify(object)).join("\n---\n")}`;
  const options = { file: "f", nodeName: "n", source: "file", allowPrivileged: true } as const;
  const { findings, pods, objects } = readManifest(Buffer.from(written), options);
  expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
  const specs = [
    ...pods.map(({ pod }) => pod.spec),
    ...objects.flatMap((it) => (it.kind === "Deployment" ? it.object.spec.template.spec : [])),
  ];
  const { services } = parseCompose(text) as unknown as { services: Record<string, { profiles?: string[] }> };
  const active = Object.keys(services).filter((service) => services[service]?.profiles === undefined);
  const containers = specs.flatMap((spec) => spec.containers.map((container) => container.name));
  expect(containers.sort()).toEqual(active.map((service) => service.replaceAll("_", "-")).sort());
});
