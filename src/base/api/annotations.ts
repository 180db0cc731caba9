import { isIP } from "node:net";
import { parseDuration } from "../text/duration.ts";
import type { Secret } from "./config-objects.ts";
import type { ObjectMeta } from "./meta.ts";
import type { Volume } from "./pod.ts";

/** Prefix of the annotations of pods that have a meaning to kubelet-ts only. */
export const ANNOTATION_PREFIX = "kubelet-ts.io/";

/** Number of a Deployment's rollout: on the Deployment that of its present template, on a ReplicaSet its own. */
export const REVISION_ANNOTATION = "deployment.kubernetes.io/revision";

/** Annotations without those that tell where a pod comes from. */
export const withoutSource = (annotations: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(annotations).filter(([name]) => !name.startsWith("kubernetes.io/config.")));

/** The Docker networks of the pod, separated by commas. In a user-defined network other pods reach the pod by its name. */
export const NETWORK_ANNOTATION = "kubelet-ts.io/network";
/** A fixed IPv4 or IPv6 address in the first of them. */
export const IP_ANNOTATION = "kubelet-ts.io/ip";
/** More names of the pod in those networks, separated by commas. Docker answers a name of several pods with all of them. */
export const NETWORK_ALIASES_ANNOTATION = "kubelet-ts.io/network-aliases";
/** Limits of the processes of all containers, as of `docker run --ulimit`: `nofile=1024:65536,memlock=-1`. */
export const ULIMITS_ANNOTATION = "kubelet-ts.io/ulimits";
/** Options of the log files of all containers in place of those of the node, as of `docker run --log-opt`: `max-size=10m,max-file=3`. */
export const LOG_OPTIONS_ANNOTATION = "kubelet-ts.io/log-options";
/** `true`: an init process in each container reaps ended processes and passes signals on, as of `docker run --init`. */
export const INIT_ANNOTATION = "kubelet-ts.io/init";
/** Volumes of claims that, while they are empty, get the files of the image at their mount path, as volumes of Docker do. */
export const FILL_VOLUMES_ANNOTATION = "kubelet-ts.io/fill-volumes";
/** The HEALTHCHECK of the images as a probe: `readiness`, `liveness`, or by container `app=readiness,db=liveness`. */
export const IMAGE_HEALTHCHECK_ANNOTATION = "kubelet-ts.io/image-healthcheck";
/** Mode, owner and mount options of emptyDir volumes, as of a tmpfs of Docker: `cache:mode=0700,uid=999;run:noexec`. */
export const EMPTY_DIR_OPTIONS_ANNOTATION = "kubelet-ts.io/empty-dir-options";
/** Docker's labels of all containers, a line `key=value` each. */
export const CONTAINER_LABELS_ANNOTATION = "kubelet-ts.io/container-labels";
/** The longest crash-loop back-off of the pod, a Go duration from 1s to 5m. */
export const MAX_RESTART_PERIOD_ANNOTATION = "kubelet-ts.io/max-container-restart-period";

/** Pods that have to be Ready, Running or Succeeded before this one starts: `default/db=Ready,default/migrate=Succeeded`. */
export const DEPENDS_ON_ANNOTATION = "kubelet-ts.io/depends-on";
/** After this time the wait for a dependency is reported as a warning, a Go duration. */
export const DEPENDS_ON_TIMEOUT_ANNOTATION = "kubelet-ts.io/depends-on-timeout";
/** `on-failure`: an edit whose pod does not become Ready is rolled back. */
export const ROLLBACK_ANNOTATION = "kubelet-ts.io/rollback";
/** Time an edited pod has to become Ready, a Go duration. */
export const ROLLBACK_DEADLINE_ANNOTATION = "kubelet-ts.io/rollback-deadline";
/** Restarts of a container after which an edit has failed before its deadline. */
export const ROLLBACK_RESTARTS_ANNOTATION = "kubelet-ts.io/rollback-restarts";

/** Sources of the values of a Secret: `key=file:/path` and `key=credential:name`, separated by commas or line ends. */
export const SECRET_FROM_ANNOTATION = "kubelet-ts.io/secret-from";

/** `digest`, `semver:~1.4` or `never`: whether and how the images of the pod are updated. */
export const IMAGE_UPDATE_ANNOTATION = "kubelet-ts.io/image-update";
/** When registries are asked, five fields of cron. */
export const IMAGE_UPDATE_SCHEDULE_ANNOTATION = "kubelet-ts.io/image-update-schedule";
/** When images may be exchanged: five fields of cron and a duration, `0 2 * * sun +3h`; `always`. */
export const IMAGE_UPDATE_WINDOW_ANNOTATION = "kubelet-ts.io/image-update-window";
/** `true`: updates are found and pulled, and wait. */
export const IMAGE_UPDATE_HOLD_ANNOTATION = "kubelet-ts.io/image-update-hold";
/** `VOLUME/PATH`: a file in an emptyDir or hostPath volume of the pod; updates wait while it exists. */
export const IMAGE_UPDATE_LOCK_ANNOTATION = "kubelet-ts.io/image-update-lock";
/** Time a pod has to become Ready with a new image, a Go duration. */
export const UPDATE_DEADLINE_ANNOTATION = "kubelet-ts.io/update-deadline";

interface PodAnnotation {
  name: string;
  description: string;
  /** @returns the required format, or undefined when the value has it */
  check(value: string): string | undefined;
  /** The volumes of the pod that a value names, and the sources that they must have, by their fields. */
  volumes?: { named: (value: string) => readonly string[]; sources: readonly (keyof Volume)[] };
  /** The containers of the pod that a value names. */
  containersIn?: (value: string) => readonly string[];
}

function checkDuration(value: string): string | undefined {
  const ms = parseDuration(value);
  return ms !== undefined && ms > 0 ? undefined : "a duration above 0, e.g. 5m";
}

/** The duration in an annotation, in milliseconds; `defaultMs` where it is missing, malformed or not above 0. */
export function durationOf({ annotations }: ObjectMeta, name: string, defaultMs: number): number {
  const ms = parseDuration(annotations?.[name] ?? "");
  return ms !== undefined && ms > 0 ? ms : defaultMs;
}

const CRON_TEXT = /^(@[a-z]+|@every +\S+|\S+( +\S+){4})$/;
const WINDOW_TEXT = /^(@[a-z]+|\S+( +\S+){4}) +\+\S+$/;

/** Up to 16 of Docker's `RestrictedNamePattern`. Excludes `container:<id>` and `ns:<path>`, which are not networks. */
const NETWORK_NAMES = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*(,[a-zA-Z0-9][a-zA-Z0-9_.-]*){0,15}$/;

/** The names of {@link NETWORK_ANNOTATION}, each once. */
export const networkNamesOf = ({ annotations }: ObjectMeta): string[] => [
  ...new Set((annotations?.[NETWORK_ANNOTATION] ?? "").split(",").filter((name) => name !== "")),
];

/** Up to 32 names of up to 253 characters. */
const ALIASES = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,252}(,[a-zA-Z0-9][a-zA-Z0-9_.-]{0,252}){0,31}$/;

/** The names of {@link NETWORK_ALIASES_ANNOTATION}; none when it is missing or malformed. */
export function networkAliasesOf({ annotations }: ObjectMeta): string[] {
  const text = annotations?.[NETWORK_ALIASES_ANNOTATION] ?? "";
  return ALIASES.test(text) ? text.split(",") : [];
}

const ULIMIT =
  /^(core|cpu|data|fsize|locks|memlock|msgqueue|nice|nofile|nproc|rss|rtprio|rttime|sigpending|stack)=(-1|\d{1,15})(?::(-1|\d{1,15}))?$/;

/** The limits of {@link ULIMITS_ANNOTATION}; -1 is no limit. @returns undefined for another format */
export function parseUlimits(text: string): { Name: string; Soft: number; Hard: number }[] | undefined {
  const limits = text.split(",").flatMap((part) => {
    const [, Name, soft = "", hard = soft] = ULIMIT.exec(part.trim()) ?? [];
    const [Soft, Hard] = [Number(soft), Number(hard)];
    return Name === undefined || (Hard !== -1 && (Soft === -1 || Soft > Hard)) ? [] : [{ Name, Soft, Hard }];
  });
  return limits.length === text.split(",").length ? limits : undefined;
}

const LOG_OPTION = /^(max-size=[1-9]\d{0,8}[kmg]?b?|max-file=[1-9]\d{0,2})$/i;

/** The options of {@link LOG_OPTIONS_ANNOTATION}, by name. @returns undefined for another format */
export function parseLogOptions(text: string): Record<string, string> | undefined {
  const options = text.split(",").map((part) => part.trim());
  if (!options.every((option) => LOG_OPTION.test(option))) return undefined;
  return Object.fromEntries(options.map((option) => option.split("=") as [string, string]));
}

const VOLUME_NAMES = /^[a-z0-9][-a-z0-9]{0,62}(,[a-z0-9][-a-z0-9]{0,62})*$/;

/** The names of {@link FILL_VOLUMES_ANNOTATION}; none when it is missing or malformed. */
export function filledVolumesOf({ annotations }: ObjectMeta): string[] {
  const text = annotations?.[FILL_VOLUMES_ANNOTATION] ?? "";
  return VOLUME_NAMES.test(text) ? text.split(",") : [];
}

export type ImageHealthcheckKind = "readiness" | "liveness";

/** The kinds of {@link IMAGE_HEALTHCHECK_ANNOTATION} by container, "" for all of them. @returns undefined for another format */
function parseImageHealthcheck(text: string): ReadonlyMap<string, ImageHealthcheckKind> | undefined {
  const kinds = new Map<string, ImageHealthcheckKind>();
  for (const part of text.split(",")) {
    const [, name = "", kind] = /^(?:([a-z0-9][-a-z0-9]{0,62})=)?(readiness|liveness)$/.exec(part.trim()) ?? [];
    if (kind === undefined || kinds.has(name)) return undefined;
    kinds.set(name, kind as ImageHealthcheckKind);
  }
  return kinds;
}

/** The probe that the HEALTHCHECK of a container's image is; undefined: none. */
export function imageHealthcheckOf({ annotations }: ObjectMeta, container: string): ImageHealthcheckKind | undefined {
  const text = annotations?.[IMAGE_HEALTHCHECK_ANNOTATION];
  const kinds = text === undefined ? undefined : parseImageHealthcheck(text);
  return kinds?.get(container) ?? kinds?.get("");
}

/** Options of one emptyDir; absent ones are as without the annotation. */
export interface EmptyDirOptions {
  /** Permission bits. */
  mode?: number;
  uid?: number;
  gid?: number;
  /** Options of its mount, for one with a medium. */
  flags: string[];
}

const EMPTY_DIR_OPTION = /^(?:mode=(0?[0-7]{3,4})|uid=(\d{1,10})|gid=(\d{1,10})|(noexec|nosuid|nodev))$/;
/** Highest user or group: the one above means "leave it". */
const MAX_ID = 2 ** 32 - 2;

/** The options of one emptyDir, `mode=0700,uid=999`. @returns undefined for another format */
export function parseEmptyDirOption(text: string): EmptyDirOptions | undefined {
  const options: EmptyDirOptions = { flags: [] };
  for (const word of text.split(",")) {
    const [found, mode, uid, gid, flag] = EMPTY_DIR_OPTION.exec(word) ?? [];
    if (found === undefined || Number(uid ?? gid ?? 0) > MAX_ID) return undefined;
    if (mode !== undefined) options.mode = Number.parseInt(mode, 8);
    if (uid !== undefined) options.uid = Number(uid);
    if (gid !== undefined) options.gid = Number(gid);
    if (flag !== undefined) options.flags.push(flag);
  }
  return options;
}

/** The options of {@link EMPTY_DIR_OPTIONS_ANNOTATION} by volume. @returns undefined for another format */
export function parseEmptyDirOptions(text: string): ReadonlyMap<string, EmptyDirOptions> | undefined {
  const found = new Map<string, EmptyDirOptions>();
  for (const part of text.split(";")) {
    const [, name, words = ""] = /^\s*([a-z0-9][-a-z0-9]{0,62}):(.*?)\s*$/.exec(part) ?? [];
    const options = name === undefined ? undefined : parseEmptyDirOption(words);
    if (name === undefined || !options || found.has(name)) return undefined;
    found.set(name, options);
  }
  return found;
}

/** The options of an emptyDir of the pod; undefined when it has none. */
export const emptyDirOptionsOf = ({ annotations }: ObjectMeta, volume: string): EmptyDirOptions | undefined =>
  parseEmptyDirOptions(annotations?.[EMPTY_DIR_OPTIONS_ANNOTATION] ?? "")?.get(volume);

/** Labels by which kubelet-ts and other programs know containers of pods. */
const RESERVED_LABEL = /^(?:annotation\.|io\.kubernetes\.|kubelet-ts\.io\/)/;

/** The labels of {@link CONTAINER_LABELS_ANNOTATION}. @returns undefined for another format, or reserved keys */
export function parseContainerLabels(text: string): Record<string, string> | undefined {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const labels = lines.flatMap((line) => {
    const [, key = "", value = ""] = /^\s*([^=\s]+)=(.*)$/.exec(line) ?? [];
    return key === "" || RESERVED_LABEL.test(key) ? [] : [[key, value] as const];
  });
  return labels.length === lines.length ? Object.fromEntries(labels) : undefined;
}

/** Annotations that only new containers follow: an edit of one starts the pod again. */
export const RESTARTING_ANNOTATIONS: readonly PodAnnotation[] = [
  {
    name: NETWORK_ANNOTATION,
    description: "the Docker network of the pod, or several: `front,back`; see [networking](networking.md)",
    check: (value) => (NETWORK_NAMES.test(value) ? undefined : "the name of a Docker network, or several: front,back"),
  },
  {
    name: IP_ANNOTATION,
    description: "a fixed address of the pod in the first of its networks",
    check: (value) => (isIP(value) === 0 ? "an IPv4 or IPv6 address" : undefined),
  },
  {
    name: NETWORK_ALIASES_ANNOTATION,
    description: "more names of the pod in its networks: `db,db.lan`",
    check: (value) =>
      ALIASES.test(value) ? undefined : "names of letters, digits, '-', '_' and '.', separated by commas",
  },
  {
    name: ULIMITS_ANNOTATION,
    description: "limits of the processes of its containers: `nofile=1024:65536,memlock=-1`",
    check: (value) => (parseUlimits(value) ? undefined : "limits such as nofile=1024:65536, separated by commas"),
  },
  {
    name: LOG_OPTIONS_ANNOTATION,
    description: "size and number of the log files of its containers: `max-size=10m,max-file=3`",
    check: (value) =>
      parseLogOptions(value) ? undefined : "max-size=SIZE and max-file=NUMBER, as in max-size=10m,max-file=3",
  },
  {
    name: INIT_ANNOTATION,
    description: "`true`: an init process in each container, as of `docker run --init`",
    check: (value) => (value === "true" || value === "false" ? undefined : "true or false"),
  },
  {
    name: FILL_VOLUMES_ANNOTATION,
    description:
      "volumes of claims that get the files of the image at their mount path while they are empty: `data,html`",
    check: (value) => (VOLUME_NAMES.test(value) ? undefined : "names of volumes of the pod, separated by commas"),
    volumes: { named: (value) => value.split(","), sources: ["persistentVolumeClaim"] },
  },
  {
    name: IMAGE_HEALTHCHECK_ANNOTATION,
    description:
      "`readiness` or `liveness`: the HEALTHCHECK of the images is that probe of containers without one; by container: `app=readiness,db=liveness`",
    check: (value) =>
      parseImageHealthcheck(value)
        ? undefined
        : "readiness, liveness, or CONTAINER=KIND as in app=readiness,db=liveness",
    containersIn: (value) => [...(parseImageHealthcheck(value)?.keys() ?? [])].filter((name) => name !== ""),
  },
  {
    name: EMPTY_DIR_OPTIONS_ANNOTATION,
    description:
      "`mode`, `uid` and `gid` of emptyDir volumes, and `noexec`, `nosuid`, `nodev` of those in memory: `cache:mode=0700,uid=999;run:mode=1777,noexec`",
    check: (value) =>
      parseEmptyDirOptions(value)
        ? undefined
        : "VOLUME:OPTIONS separated by semicolons, as in cache:mode=0700,uid=999,gid=999;run:noexec,nosuid,nodev",
    volumes: { named: (value) => [...(parseEmptyDirOptions(value)?.keys() ?? [])], sources: ["emptyDir"] },
  },
  {
    name: CONTAINER_LABELS_ANNOTATION,
    description: "Docker labels of its containers, a line `key=value` each",
    check: (value) =>
      parseContainerLabels(value) ? undefined : "lines key=value, without keys of Kubernetes and kubelet-ts",
  },
];

/** Annotations that a workload hands down to its pods. */
const HANDED_DOWN: readonly PodAnnotation[] = [
  {
    name: IMAGE_UPDATE_ANNOTATION,
    description: "`digest`, `semver:~1.4` or `never`: how images are updated; see [updates](updates.md)",
    check: (value) =>
      parseImageUpdatePolicy(value) ? undefined : "digest, never, or semver: with a range as in semver:~1.4",
  },
  {
    name: IMAGE_UPDATE_SCHEDULE_ANNOTATION,
    description: "when the registry is asked, as in `0 4 * * *`; default `--image-update-schedule`",
    check: (value) => (CRON_TEXT.test(value) ? undefined : "five fields of cron, as in 0 4 * * *"),
  },
  {
    name: IMAGE_UPDATE_WINDOW_ANNOTATION,
    description: "when images may be exchanged, as in `0 2 * * sun +3h`; default `--image-update-window`",
    check: (value) =>
      value === "always" || WINDOW_TEXT.test(value)
        ? undefined
        : "five fields of cron and a duration, as in 0 2 * * sun +3h",
  },
  {
    name: IMAGE_UPDATE_HOLD_ANNOTATION,
    description: "`true`: updates of its images wait",
    check: (value) => (value === "true" || value === "false" ? undefined : "true or false"),
  },
  {
    name: IMAGE_UPDATE_LOCK_ANNOTATION,
    description: "`VOLUME/PATH`: updates wait while this file in an emptyDir or hostPath volume of the pod exists",
    check: (value) =>
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\/[^/]+)+$/.test(value) && !value.split("/").includes("..")
        ? undefined
        : "the name of a volume and a path in it, as in data/updates.lock",
    volumes: { named: (value) => value.split("/", 1), sources: ["emptyDir", "hostPath"] },
  },
  {
    name: UPDATE_DEADLINE_ANNOTATION,
    description: "time a pod has to become Ready with a new image, default `5m`",
    check: checkDuration,
  },
];
export const IMAGE_UPDATE_ANNOTATIONS = HANDED_DOWN.map(({ name }) => name);

/** All annotations of pods that kubelet-ts reads, for findings and docs/fields.md. */
export const POD_ANNOTATIONS: readonly PodAnnotation[] = [
  ...RESTARTING_ANNOTATIONS,
  {
    name: MAX_RESTART_PERIOD_ANNOTATION,
    description: "the longest delay before a crashing container is started again, from `1s` to `5m`",
    check: (value) => {
      const ms = parseDuration(value);
      return ms !== undefined && ms >= 1000 && ms <= 300_000 ? undefined : "a duration from 1s to 5m";
    },
  },
  {
    name: DEPENDS_ON_ANNOTATION,
    description:
      "pods that this one waits for: `default/db=Ready,default/migrate=Succeeded`; see [rollout](rollout.md#order-between-pods)",
    check: (value) =>
      parseDependsOn(value) ? undefined : "a list of namespace/name=Ready, =Running or =Succeeded, separated by commas",
  },
  {
    name: DEPENDS_ON_TIMEOUT_ANNOTATION,
    description: "after this time the wait is reported as a warning, default `5m`",
    check: checkDuration,
  },
  {
    name: ROLLBACK_ANNOTATION,
    description: "`on-failure` rolls an edit back whose pod does not become Ready; see [rollout](rollout.md#rollback)",
    check: (value) => (value === "on-failure" || value === "never" ? undefined : "on-failure or never"),
  },
  {
    name: ROLLBACK_DEADLINE_ANNOTATION,
    description: "time an edited pod has to become Ready, default `5m`",
    check: checkDuration,
  },
  {
    name: ROLLBACK_RESTARTS_ANNOTATION,
    description: "restarts of one container after which an edit has failed before its deadline, default `3`",
    check: (value) => (/^[1-9]\d{0,3}$/.test(value) ? undefined : "a number from 1 to 9999"),
  },
  ...HANDED_DOWN,
];

/** The format that the value of a pod annotation lacks; undefined when it has it, and for other annotations. */
export const requiredFormat = (name: string, value: string): string | undefined =>
  POD_ANNOTATIONS.find((known) => known.name === name)?.check(value);

/** A pod that another pod waits for before it starts. */
export interface PodDependency {
  namespace: string;
  /** As in the manifest, without the node suffix. */
  name: string;
  condition: DependencyCondition;
}

/** `Running`: every container runs. `Ready`: the condition Ready is True. `Succeeded`: the pod ended with success. */
type DependencyCondition = "Running" | "Ready" | "Succeeded";

const CONDITIONS: readonly DependencyCondition[] = ["Running", "Ready", "Succeeded"];
const NAME = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
const MAX_DEPENDENCIES = 64;

/** `default/db=Ready,default/migrate=Succeeded`; Ready may be left out. @returns undefined for another format */
export function parseDependsOn(text: string): PodDependency[] | undefined {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length > MAX_DEPENDENCIES) return undefined;
  const dependencies = parts.map(parseDependency);
  return dependencies.every((dependency) => dependency !== undefined) ? dependencies : undefined;
}

function parseDependency(text: string): PodDependency | undefined {
  const [target = "", condition = "Ready", ...rest] = text.split("=");
  const [namespace = "", name = "", ...more] = target.split("/");
  const known = CONDITIONS.find((candidate) => candidate === condition);
  if (!known || rest.length > 0 || more.length > 0 || !NAME.test(namespace) || !NAME.test(name)) return undefined;
  return { namespace, name, condition: known };
}

/** How the images of a pod are kept up to date. */
export type ImageUpdatePolicy =
  | { kind: "never" }
  /** The digest that the registry has for the tag of the manifest. */
  | { kind: "digest" }
  /** The highest tag of the repository in a range of semantic versions. */
  | { kind: "semver"; range: string };

/** A range as npm writes it, of digits and operators only: what is not one never matches silently. */
const RANGE = /^[~^<>=|\-\sxX*.\dv]+$/;

/** `never`, `digest` or `semver:RANGE`. @returns undefined for anything else */
export function parseImageUpdatePolicy(text: string): ImageUpdatePolicy | undefined {
  if (text === "never" || text === "digest") return { kind: text };
  const range = /^semver:(.*)$/.exec(text)?.[1]?.trim();
  if (range === undefined || !/\d|^[xX*]$/.test(range) || !RANGE.test(range)) return undefined;
  return { kind: "semver", range };
}

/** Where the value of one key of a Secret comes from. */
export interface SecretValueSource {
  key: string;
  /** `file`: an absolute path. `credential`: a name in `$CREDENTIALS_DIRECTORY`. */
  kind: "file" | "credential";
  name: string;
}

const ENTRY = /^([-._a-zA-Z0-9]{1,253})=(file|credential):(.+)$/;

/** `key=file:/path` and `key=credential:name`, separated by commas or line ends. @returns what is wrong as `problem` */
export function parseSecretFrom(text: string): SecretValueSource[] | { problem: string } {
  const sources: SecretValueSource[] = [];
  for (const entry of text.split(/[,\n]/).map((part) => part.trim())) {
    if (entry === "") continue;
    const [, key = "", kind, name = ""] = ENTRY.exec(entry) ?? [];
    if (kind === undefined) return { problem: "each entry must be key=file:/path or key=credential:name" };
    if (kind === "file" && !name.startsWith("/")) return { problem: `the path of key ${key} must be absolute` };
    if (kind === "credential" && (name.includes("/") || name.startsWith("."))) {
      return { problem: `the credential of key ${key} must be a name without a slash` };
    }
    sources.push({ key, kind: kind as SecretValueSource["kind"], name });
  }
  return sources.length > 0 ? sources : { problem: "it names no key" };
}

/** The sources of a Secret; none when it has no such annotation, or a wrong one. */
export function secretSourcesOf({ metadata }: Secret): readonly SecretValueSource[] {
  const text = metadata.annotations?.[SECRET_FROM_ANNOTATION];
  const parsed = text === undefined ? [] : parseSecretFrom(text);
  return "problem" in parsed ? [] : parsed;
}

/** The key of a Secret that has no value: `couldn't find key password in Secret default/db`, and where it is read from. */
export function describeMissingKey(secret: Secret | undefined, key: string, where: string): string {
  const source = secret && secretSourcesOf(secret).find((one) => one.key === key);
  const from = source ? `: ${SECRET_FROM_ANNOTATION} reads it from ${source.kind} ${JSON.stringify(source.name)}` : "";
  return `couldn't find key ${key} in ${where}${from}`;
}
