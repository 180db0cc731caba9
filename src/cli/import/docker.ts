import { SAFE_SYSCTLS } from "../../plan/sysctls.ts";
import type { InspectedContainer, InspectedImage } from "./docker-inspect.ts";
import { podNameOf, toDockerPorts, toNetworkAnnotations, toPodNetwork } from "./docker-network.ts";
import { noteSettings } from "./docker-settings.ts";
import { type DeviceType, DockerVolumes, toBytesQuantity } from "./docker-volumes.ts";
import { type Imported, ImportNotes, withoutExpansion } from "./import-notes.ts";
import { labelKind, probeOf, some, toVariables } from "./pod-parts.ts";

/** A container as the engine describes it, with the image it was made from. */
export interface DockerContainer {
  container: InspectedContainer;
  /** Absent when the image was removed. */
  image?: InspectedImage;
  /** Id of the image that the name of the image means now. */
  currentImageId?: string;
}

/** Fields of HostConfig that are carried over. */
const READ_FIELDS = new Set(
  `NetworkMode PidMode IpcMode PortBindings RestartPolicy CapAdd CapDrop Dns DnsOptions DnsSearch ExtraHosts GroupAdd
  Privileged ReadonlyRootfs SecurityOpt Tmpfs ShmSize Sysctls CpuShares CpuPeriod CpuQuota NanoCpus Memory
  MemoryReservation Devices Mounts`.split(/\s+/),
);

const SHARES_PER_CPU = 1024;
const DEFAULT_CPU_PERIOD = 100_000;
const DEFAULT_STOP_SECONDS = 10;

/**
 * Writes a pod for each container; containers that share the network of another one given become containers of its pod.
 * Only differences from the image are written.
 */
export function importDocker(given: readonly DockerContainer[], deviceType: DeviceType): Imported {
  const notes = new ImportNotes();
  const pods = groupByNetwork(given, notes);
  const names = new Set<string>();
  const manifests = pods.flatMap((members) => {
    const base = podNameOf(members[0]!.container);
    let name = base;
    for (let count = 2; names.has(name); count++) name = `${base.slice(0, 58)}-${count}`;
    names.add(name);
    return toPodManifests(name, members, deviceType, notes);
  });
  const containers = given.map(({ container }) => container.Name.replace(/^\//, "")).join(" ");
  const first = [
    `stop the containers before the pods start: docker update --restart=no ${containers} && docker stop ${containers}`,
  ];
  return { manifests, notes: [...(given.length > 0 ? first : []), ...notes.lines] };
}

/** Lists of containers, each with the one that has the network first. */
function groupByNetwork(given: readonly DockerContainer[], notes: ImportNotes): DockerContainer[][] {
  const ownerOf = ({ HostConfig }: InspectedContainer) => /^container:(.+)$/.exec(HostConfig.NetworkMode)?.[1];
  const isNamed = ({ Id, Name }: InspectedContainer, reference: string) =>
    Name === `/${reference}` || Id.startsWith(reference);
  const groups = new Map<DockerContainer, DockerContainer[]>();
  for (const one of given) if (ownerOf(one.container) === undefined) groups.set(one, [one]);
  for (const one of given) {
    const reference = ownerOf(one.container);
    if (reference === undefined) continue;
    const owner = [...groups.keys()].find(({ container }) => isNamed(container, reference));
    if (owner) {
      groups.get(owner)!.push(one);
      continue;
    }
    groups.set(one, [one]);
    notes.add(
      `${podNameOf(one.container)}: --network container:${reference.slice(0, 12)}`,
      "is not carried over: name that container too, and both become one pod",
    );
  }
  return [...groups.values()];
}

function toPodManifests(
  podName: string,
  members: readonly DockerContainer[],
  deviceType: DeviceType,
  notes: ImportNotes,
): object[] {
  const [{ container: main }] = members as [DockerContainer];
  const volumes = new DockerVolumes(deviceType, notes);
  const secrets: object[] = [];
  const containers = members.map((member) => {
    const { container, secret } = toContainer(member, volumes, notes);
    if (secret) secrets.push(secret);
    return container;
  });
  const { labels, annotations } = splitLabels(members, notes);
  const stops = members.map(({ container }) => container.Config.StopTimeout ?? DEFAULT_STOP_SECONDS);
  const hasStopSignal = containers.some((container) => "lifecycle" in container);
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: podName,
      ...some("labels", labels),
      ...some("annotations", { ...annotations, ...toNetworkAnnotations(main, podName, notes) }),
    },
    spec: {
      ...(hasStopSignal && { os: { name: "linux" } }),
      ...toPodNetwork(main, podName, notes),
      ...some("securityContext", podSecurityOf(members, notes)),
      containers,
      ...some("volumes", volumes.volumes),
      restartPolicy: restartPolicyOf(members, notes),
      terminationGracePeriodSeconds: Math.max(...stops),
    },
  };
  return [...secrets, pod];
}

function toContainer(
  { container, image, currentImageId }: DockerContainer,
  volumes: DockerVolumes,
  notes: ImportNotes,
) {
  const { Config, HostConfig } = container;
  const name = podNameOf(container);
  noteSettings(container, READ_FIELDS, name, notes);
  const { env, secret } = toVariables(variablesOf(container, image, name, notes), `${name}-env`);
  const exposed = new Set(Object.keys(image?.Config.ExposedPorts ?? {}));
  const stopSignal = Config.StopSignal === (image?.Config.StopSignal ?? "") ? "" : Config.StopSignal;
  return {
    secret,
    container: {
      name,
      image: imageOf(container, image, currentImageId, name, notes),
      imagePullPolicy: "IfNotPresent",
      ...commandOf(container, image),
      ...(Config.WorkingDir !== (image?.Config.WorkingDir ?? "") && some("workingDir", Config.WorkingDir)),
      ...some("env", env),
      ...some("ports", toDockerPorts(container, exposed, name, notes)),
      ...some("resources", resourcesOf(HostConfig)),
      ...some("readinessProbe", healthOf(container, name, notes)),
      ...some("securityContext", toContainerSecurity(container, image, name, notes)),
      ...some("volumeMounts", volumes.mountsOf(container, name)),
      ...(Config.Tty && { tty: true }),
      ...(Config.OpenStdin && { stdin: true }),
      ...(Config.OpenStdin && Config.StdinOnce && { stdinOnce: true }),
      ...(stopSignal && { lifecycle: { stopSignal: signalName(stopSignal) } }),
    },
  };
}

/** `docker run --stop-signal` takes `INT` too. */
const signalName = (text: string): string => (/^SIG|^\d/.test(text) ? text : `SIG${text}`);

function imageOf(
  { Config, Image }: InspectedContainer,
  image: InspectedImage | undefined,
  currentImageId: string | undefined,
  path: string,
  notes: ImportNotes,
): string {
  const isId = /^(?:sha256:)?[0-9a-f]{12,64}$/.test(Config.Image);
  if (!isId) {
    if (currentImageId !== undefined && currentImageId !== Image) {
      notes.add(`${path}: image`, `${Config.Image} names another image than the one that runs (${Image.slice(7, 19)})`);
    }
    return Config.Image;
  }
  const [tag] = image?.RepoTags ?? [];
  if (tag !== undefined) return tag;
  notes.add(`${path}: image`, `has no name: docker tag ${Image.slice(7, 19)} NAME, and write the name here`);
  return Config.Image;
}

/** `command` and `args` where the container differs from its image. */
function commandOf({ Config }: InspectedContainer, image: InspectedImage | undefined): object {
  const literal = (words: readonly string[]) => words.map(withoutExpansion);
  const ofImage = image?.Config ?? { Entrypoint: [], Cmd: [] };
  const isSame = (a: readonly string[], b: readonly string[]) => JSON.stringify(a) === JSON.stringify(b);
  const { Entrypoint, Cmd } = Config;
  // Without arguments of its own a `command` is needed to be rid of the arguments of the image.
  const keepsEntrypoint = isSame(Entrypoint, ofImage.Entrypoint) && (Cmd.length > 0 || ofImage.Cmd.length === 0);
  if (keepsEntrypoint) return isSame(Cmd, ofImage.Cmd) ? {} : { args: literal(Cmd) };
  if (Entrypoint.length === 0) return { command: literal(Cmd) };
  return { command: literal(Entrypoint), ...some("args", literal(Cmd)) };
}

function variablesOf(
  { Config }: InspectedContainer,
  image: InspectedImage | undefined,
  path: string,
  notes: ImportNotes,
): Map<string, string> {
  const ofImage = new Set(image?.Config.Env ?? []);
  const variables = new Map<string, string>();
  for (const entry of Config.Env) {
    if (ofImage.has(entry)) continue;
    const at = entry.indexOf("=");
    const name = at < 0 ? entry : entry.slice(0, at);
    if (at < 0) notes.add(`${path}: -e ${name}`, "has no value and is not carried over");
    else if (/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name)) variables.set(name, entry.slice(at + 1));
    else notes.add(`${path}: -e ${name}`, "is not a name of a variable for Kubernetes and is not carried over");
  }
  return variables;
}

function resourcesOf(settings: InspectedContainer["HostConfig"]): object {
  const { CpuShares, CpuPeriod, CpuQuota, NanoCpus, Memory, MemoryReservation } = settings;
  const quotaMilliCpus = CpuQuota > 0 ? (CpuQuota / (CpuPeriod || DEFAULT_CPU_PERIOD)) * 1000 : 0;
  const milliCpus = Math.ceil(NanoCpus > 0 ? NanoCpus / 1e6 : quotaMilliCpus);
  const requested = Math.round((CpuShares / SHARES_PER_CPU) * 1000);
  // A request above the limit is invalid; Docker allows it.
  const requestedMilliCpus = milliCpus > 0 ? Math.min(requested, milliCpus) : requested;
  const reservation = Memory > 0 ? Math.min(MemoryReservation, Memory) : MemoryReservation;
  return {
    ...some("limits", {
      ...(milliCpus > 0 && { cpu: `${milliCpus}m` }),
      ...(Memory > 0 && { memory: toBytesQuantity(Memory) }),
    }),
    ...some("requests", {
      ...(requestedMilliCpus > 0 && { cpu: `${requestedMilliCpus}m` }),
      ...(reservation > 0 && { memory: toBytesQuantity(reservation) }),
    }),
  };
}

function healthOf({ Config }: InspectedContainer, path: string, notes: ImportNotes): object | undefined {
  const health = Config.Healthcheck;
  if (!health) return undefined;
  const seconds = (nanoseconds: number) => (nanoseconds > 0 ? `${nanoseconds / 1e9}s` : undefined);
  const timing = {
    interval: seconds(health.Interval),
    timeout: seconds(health.Timeout),
    start_period: seconds(health.StartPeriod),
    retries: health.Retries || undefined,
  };
  const set = Object.entries(timing).filter((entry): entry is [string, string | number] => entry[1] !== undefined);
  return probeOf({ test: health.Test, ...Object.fromEntries(set) }, `${path}: --health-cmd`, notes);
}

function podSecurityOf(members: readonly DockerContainer[], notes: ImportNotes): object {
  const sysctls = new Map<string, string>();
  const groups = new Set<number>();
  for (const { container } of members) {
    const path = podNameOf(container);
    for (const [name, value] of Object.entries(container.HostConfig.Sysctls)) {
      sysctls.set(name, value);
      if (!SAFE_SYSCTLS.includes(name)) {
        notes.add(`${path}: --sysctl ${name}`, `start kubelet-ts with --allowed-unsafe-sysctls=${name}`);
      }
    }
    for (const group of container.HostConfig.GroupAdd) {
      if (/^\d+$/.test(group)) groups.add(Number(group));
      else notes.add(`${path}: --group-add ${group}`, "is not a number: set supplementalGroups");
    }
  }
  return {
    ...some(
      "sysctls",
      Array.from(sysctls, ([name, value]) => ({ name, value })),
    ),
    ...some("supplementalGroups", [...groups]),
  };
}

function restartPolicyOf(members: readonly DockerContainer[], notes: ImportNotes): string {
  const names = new Set(members.map(({ container }) => container.HostConfig.RestartPolicy.Name));
  for (const { container } of members) {
    const { Name, MaximumRetryCount } = container.HostConfig.RestartPolicy;
    const path = podNameOf(container);
    if (MaximumRetryCount > 0) {
      notes.add(
        `${path}: --restart ${Name}:${MaximumRetryCount}`,
        "attempts are not limited: delays grow to five minutes",
      );
    }
  }
  if (names.size > 1)
    notes.add(`${podNameOf(members[0]!.container)}: --restart`, "a pod has one restartPolicy: the strongest is used");
  if (names.has("always") || names.has("unless-stopped")) return "Always";
  return names.has("on-failure") ? "OnFailure" : "Never";
}

/** Labels that the image does not have: as labels where Kubernetes allows the value, else as annotations. */
function splitLabels(members: readonly DockerContainer[], notes: ImportNotes) {
  const labels: Record<string, string> = {};
  const annotations: Record<string, string> = {};
  for (const { container, image } of members) {
    let count = 0;
    for (const [key, value] of Object.entries(container.Config.Labels)) {
      if (image?.Config.Labels[key] === value || key.startsWith("com.docker.compose.")) continue;
      count++;
      const kind = labelKind(key, value);
      if (kind === undefined) notes.add(`${podNameOf(container)}: --label ${key}`, "is not a label for Kubernetes");
      else if (kind === "label") labels[key] = value;
      else annotations[key] = value;
    }
    if (count > 0) {
      notes.add(
        `${podNameOf(container)}: --label`,
        "labels of the pod are not labels of its container: programs that read Docker's labels miss them",
      );
    }
  }
  return { labels, annotations };
}

/** `--user`, capabilities, `--privileged`, `--read-only` and `--security-opt` as a container's securityContext. */
function toContainerSecurity(
  { Config, HostConfig }: InspectedContainer,
  image: InspectedImage | undefined,
  path: string,
  notes: ImportNotes,
): object {
  const { CapAdd, CapDrop, Privileged, ReadonlyRootfs, SecurityOpt, PidMode, IpcMode } = HostConfig;
  const bare = (names: readonly string[]) => names.map((name) => name.replace(/^CAP_/, ""));
  // The engine adds label=disable to such containers.
  const isAdded = Privileged || PidMode === "host" || IpcMode === "host";
  if (Privileged) notes.add(`${path}: --privileged`, "start kubelet-ts with --allow-privileged");
  return {
    ...userOf(Config.User, image?.Config.User ?? "", path, notes),
    ...some("capabilities", { ...some("add", bare(CapAdd)), ...some("drop", bare(CapDrop)) }),
    ...(Privileged && { privileged: true }),
    ...(ReadonlyRootfs && { readOnlyRootFilesystem: true }),
    ...securityOptions(isAdded ? SecurityOpt.filter((it) => it !== "label=disable") : SecurityOpt, path, notes),
  };
}

function userOf(user: string, ofImage: string, path: string, notes: ImportNotes): object {
  if (user === ofImage || user === "") return {};
  const ids = /^(\d+)(?::(\d+))?$/.exec(user);
  if (!ids) {
    notes.add(`${path}: --user`, `${user} is not a number: set runAsUser and runAsGroup`);
    return {};
  }
  return { runAsUser: Number(ids[1]), ...(ids[2] !== undefined && { runAsGroup: Number(ids[2]) }) };
}

function securityOptions(options: readonly string[], path: string, notes: ImportNotes): object {
  const result: Record<string, unknown> = {};
  const labels: Record<string, string> = {};
  for (const option of options) {
    const [, name = "", value = ""] = /^([^=:]+)[=:]?(.*)$/s.exec(option) ?? [];
    const label = /^(user|role|type|level):(.*)$/.exec(value);
    if (name === "no-new-privileges") {
      if (value !== "false") result.allowPrivilegeEscalation = false;
    } else if (name === "apparmor") {
      result.appArmorProfile =
        value === "unconfined" ? { type: "Unconfined" } : { type: "Localhost", localhostProfile: value };
    } else if (name === "seccomp" && value === "unconfined") result.seccompProfile = { type: "Unconfined" };
    else if (name === "seccomp" && value === "builtin") result.seccompProfile = { type: "RuntimeDefault" };
    else if (name === "label" && label) labels[label[1]!] = label[2]!;
    else if (name === "seccomp") {
      notes.add(
        `${path}: --security-opt seccomp`,
        "put the profile below <root-dir>/seccomp and set seccompProfile.localhostProfile",
      );
    } else notes.add(`${path}: --security-opt ${name}`, "is not carried over");
  }
  if (Object.keys(labels).length > 0) result.seLinuxOptions = labels;
  return result;
}
