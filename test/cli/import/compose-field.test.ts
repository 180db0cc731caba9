import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { importCompose } from "../../../src/cli/import/compose.ts";
import { parseCompose } from "../../../src/cli/import/compose-text.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

const DIRECTORY = join(import.meta.dir, "../../fixtures/compose");
const LOSS = "is not carried over";

/** Losses of files as projects publish them, besides that a health check reports only. */
const LOST: Readonly<Record<string, readonly string[]>> = {
  "home-assistant": ["services.homeassistant.privileged: start kubelet-ts with --allow-privileged"],
  jenkins: [
    "services.docker.privileged: start kubelet-ts with --allow-privileged",
    `services.jenkins.logging: ${LOSS}: logs of pods are files, and --container-log-max-size limits all of them`,
  ],
  "media-nfs": [
    `services.jellyfin.extra_hosts: host.docker.internal=host-gateway ${LOSS}: the address must be given`,
    `volumes.nas: o=nolock,soft ${LOSS}: a PersistentVolume of nfs has mountOptions`,
  ],
  ollama: [
    "services.ollama.gpus: all GPUs are asked for: one is written, set nvidia.com/gpu to their number",
    `services.open-webui.extra_hosts: host.docker.internal=host-gateway ${LOSS}: the address must be given`,
  ],
  plex: ["services.plex.environment.PLEX_CLAIM: has no value, neither here nor in the environment"],
  prometheus: ["services.cadvisor.privileged: start kubelet-ts with --allow-privileged"],
  traefik: [`services.whoami.restart: no ${LOSS}: containers of a Deployment are always restarted`],
  vote: [
    "services.redis.networks: the services name several networks, and a pod has one: all are in one network",
    "services.seed.build: images are not built: run `docker compose build` first",
    "services.seed.networks: the services name several networks, and a pod has one: all are in one network",
    "services.seed.profiles: compose runs it only with the profile seed: leave out the pod if it is not wanted",
    "services.vote.build: images are not built: run `docker compose build` first",
    "services.vote.networks: the services name several networks, and a pod has one: all are in one network",
  ],
  vpn: [`services.qbittorrent.depends_on.gluetun: ${LOSS}: the containers of a pod start together`],
};

const NAMES = readdirSync(DIRECTORY).map((file) => file.replace(/\.yaml$/, ""));

test.each(NAMES)("%s loses what it says", (name) => {
  const file = parseCompose(readFileSync(join(DIRECTORY, `${name}.yaml`), "utf8"));
  const { manifests, notes } = importCompose({
    file,
    project: name,
    directory: "/srv",
    environment: new Map(),
    readFile: () => "A=1\n",
    deviceType: () => "CharDevice",
  });
  const isLoss = (note: string) =>
    !/^(create the network|the pods use the Docker volumes)|healthcheck: becomes/.test(note);
  expect(notes.filter(isLoss).sort()).toEqual([...(LOST[name] ?? [])]);
  const text = `# compose\n${manifests.map((object) => JSON.stringify(object)).join("\n---\n")}`;
  const options = { file: "f", nodeName: "n", source: "file", allowPrivileged: true } as const;
  const { findings, pods, objects } = readManifest(Buffer.from(text), options);
  expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
  const specs = [
    ...pods.map(({ pod }) => pod.spec),
    ...objects.flatMap((it) => (it.kind === "Deployment" ? it.object.spec.template.spec : [])),
  ];
  const { services } = file as unknown as { services: object };
  const containers = specs.flatMap((spec) => spec.containers.map((container) => container.name));
  expect(containers.sort()).toEqual(Object.keys(services).sort());
});
