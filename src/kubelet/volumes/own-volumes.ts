import { chmodSync, chownSync, mkdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { EMPTY_DIR_OPTIONS_ANNOTATION, type EmptyDirOptions } from "../../base/api/annotations.ts";
import type {
  DownwardAPIVolumeFile,
  EmptyDirVolumeSource,
  KeyToPath,
  Pod,
  Volume,
  VolumeProjection,
} from "../../base/api/pod.ts";
import { quantityToWhole } from "../../base/api/quantity.ts";
import { readBoundedText } from "../../base/files/whole-file.ts";
import type { TokenSpec } from "../../base/model/cluster-connection.ts";
import { containersOf } from "../../base/model/pod.ts";
import { type NodeAllocatable, resolveFieldRef, resolveResourceFieldRef } from "../../plan/downward-api.ts";
import { volumeReferences } from "../../plan/object-references.ts";
import { computePodMemoryLimit } from "../../plan/pod-cgroup.ts";
import { type Payload, type ProjectedFile, writeAtomically } from "./atomic-writer.ts";
import { computeMountPointNames } from "./mount-points.ts";
import type { Mounter } from "./mounter.ts";
import { applyFsGroup, makeDirectory, READ_ONLY, type VolumePaths } from "./pod-directories.ts";

/** The state of an emptyDir that is set up: group, and mode and owner of the annotation. */
export const emptyDirState = (pod: Pod, options: EmptyDirOptions | undefined): string =>
  `${pod.spec.securityContext.fsGroup ?? ""}${options ? ` ${JSON.stringify(options)}` : ""}`;

/** Gives an emptyDir the mode and owner of its annotation. @throws Error with a message for users */
export function applyEmptyDirOptions(directory: string, { mode, uid, gid }: EmptyDirOptions): void {
  if (uid !== undefined || gid !== undefined) {
    const stats = statSync(directory);
    try {
      chownSync(directory, uid ?? stats.uid, gid ?? stats.gid);
    } catch (cause) {
      throw new Error(`${EMPTY_DIR_OPTIONS_ANNOTATION}: uid and gid need a kubelet that runs as root`, { cause });
    }
  }
  if (mode !== undefined) chmodSync(directory, mode);
}

/**
 * Makes the directory of an emptyDir volume, once per life of the pod: mode 0777, with fsGroup 2777 and the group;
 * `Memory` a tmpfs (1777) of at most `sizeLimit` bytes and the pod's memory limit, `HugePages` a hugetlbfs. An edit of the
 * pod may change limit, medium and group: a new limit keeps the contents, a new medium begins empty.
 * @param flags options of its mount, if it has one: a mount that is there keeps its own
 * @param state of the volume when it is ready: {@link emptyDirState}
 * @param mounter undefined where mounts are impossible.
 * @returns whether it is ready; if not, group, mode and owner are to be applied, and {@link writeState} called
 * @throws Error with a message for users.
 */
export async function prepareEmptyDir(
  { medium = "", sizeLimit }: EmptyDirVolumeSource,
  pod: Pod,
  { directory, stateDirectory }: VolumePaths,
  { flags, state }: { flags: readonly string[]; state: string },
  mounter: Mounter | undefined,
): Promise<boolean> {
  const options = mountOptions(medium, sizeLimit, pod);
  if (options && !mounter) {
    throw new Error(`emptyDir with medium ${medium} needs a kubelet that runs as root and can mount`);
  }
  let known = readState(stateDirectory);
  if (!options && isMounted(directory)) {
    await mounter?.unmount(directory);
    known = undefined;
  }
  // A tmpfs is gone after a reboot, the notes on disk are not.
  const isThere = options ? isMounted(directory) : statSync(directory, { throwIfNoEntry: false }) !== undefined;
  if (isThere && options?.type === "tmpfs") await fitSize(directory, sizeLimit, pod, mounter);
  if (isThere && known === state) return true;
  if (!isThere || known === undefined) {
    makeDirectory(directory, 0o777);
    if (options && !isThere) await mounter?.mountFileSystem(options.type, directory, [...options.options, ...flags]);
    if (options?.type === "tmpfs") chmodSync(directory, 0o1777);
  }
  return false;
}

const MAX_STATE_BYTES = 64 * 1024;

/** The state of the last complete set-up of a volume. */
function readState(stateDirectory: string): string | undefined {
  const file = join(stateDirectory, "ready");
  return statSync(file, { throwIfNoEntry: false }) && readBoundedText(file, MAX_STATE_BYTES);
}

export function writeState(stateDirectory: string, state: string): void {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o750 });
  writeFileSync(join(stateDirectory, "ready"), state);
}

async function fitSize(
  directory: string,
  sizeLimit: string | undefined,
  pod: Pod,
  mounter: Mounter | undefined,
): Promise<void> {
  const limit = computeTmpfsBytes(sizeLimit, pod);
  if (limit === 0) return;
  const { blocks, bsize } = statfsSync(directory);
  const wanted = Math.ceil(limit / bsize);
  if (blocks === wanted) return;
  // A pod that may have less memory is bounded anyway, and what is in the volume must not keep it from starting.
  const isOfPod = limit !== bytesOf(sizeLimit);
  if (isOfPod && wanted < blocks) return;
  await mounter?.resizeTmpfs(directory, limit);
}

const bytesOf = (sizeLimit: string | undefined) => (sizeLimit === undefined ? 0 : quantityToWhole(sizeLimit));

/**
 * Size of a tmpfs: sizeLimit, but at most the memory limit of the pod, otherwise its containers would be killed instead
 * of seeing a full disk. 0: only the kernel's limit. Source: upstream's `SizeMemoryBackedVolumes`.
 */
function computeTmpfsBytes(sizeLimit: string | undefined, pod: Pod): number {
  const bounds = [bytesOf(sizeLimit), computePodMemoryLimit(pod)].filter((bytes) => bytes > 0);
  return bounds.length === 0 ? 0 : Math.min(...bounds);
}

/** A file system of its own, as tmpfs and hugetlbfs are (a bind mount need not be). */
function isMounted(directory: string): boolean {
  const own = statSync(directory, { throwIfNoEntry: false });
  return own !== undefined && own.dev !== statSync(dirname(directory)).dev;
}

/** @returns undefined for a plain directory. @throws Error for a medium there is not. */
export function mountOptions(medium: string, sizeLimit: string | undefined, pod: Pod) {
  if (medium === "") return undefined;
  if (medium === "Memory") {
    const limit = computeTmpfsBytes(sizeLimit, pod);
    // Without a limit the kernel's own: half of the memory of the machine.
    return { type: "tmpfs" as const, options: limit > 0 ? [`size=${limit}`, "mode=1777"] : ["mode=1777"] };
  }
  const pageBytes = pageSizeBytes(medium, pod);
  if (pageBytes === undefined) throw new Error(`unknown storage medium "${medium}"`);
  const limit = bytesOf(sizeLimit);
  return { type: "hugetlbfs" as const, options: [`pagesize=${pageBytes}`, ...(limit > 0 ? [`size=${limit}`] : [])] };
}

/** `HugePages` alone means the one page size the pod's containers ask for. */
function pageSizeBytes(medium: string, pod: Pod): number | undefined {
  if (medium.startsWith("HugePages-")) return quantityToWhole(medium.slice("HugePages-".length));
  if (medium !== "HugePages") return undefined;
  const sizes = new Set<string>();
  for (const { resources } of containersOf(pod.spec)) {
    for (const name of Object.keys({ ...resources.limits, ...resources.requests })) {
      if (name.startsWith("hugepages-")) sizes.add(name.slice("hugepages-".length));
    }
  }
  const [size] = sizes;
  if (size === undefined || sizes.size > 1) {
    throw new Error("medium HugePages needs exactly one hugepages-<size> among the resources of the pod's containers");
  }
  return quantityToWhole(size);
}

/** Volumes whose files we write, and how they are collected; containers see them read-only. */
const FILE_VOLUMES = {
  configmap: (files, { configMap }) => configMap && files.addConfigMap(configMap, configMap.defaultMode),
  secret: (files, { secret }) => secret && files.addSecret({ ...secret, name: secret.secretName }, secret.defaultMode),
  "downward-api": (files, { downwardAPI }) => downwardAPI && files.addDownward(downwardAPI, downwardAPI.defaultMode),
  projected: (files, { projected }) => {
    for (const source of projected?.sources ?? []) files.addProjection(source, projected?.defaultMode);
  },
} satisfies Record<string, (files: PayloadCollector, volume: Volume) => void>;
export type FileVolumePlugin = keyof typeof FILE_VOLUMES;

/** Volumes on a tmpfs, as the kubelet has them: what may hold secrets is never on a disk. */
export const isInMemory = (plugin: FileVolumePlugin): boolean => plugin !== "configmap";

export interface FileVolumePaths extends VolumePaths {
  plugin: FileVolumePlugin;
}

/** From these and {@link dataOf} its files are made; the time is for the name of their directory. */
export type FileVolumeContent = [volume: Volume, pod: Pod, facts: Omit<PayloadFacts, "objects"> & { now: Date }];

/** One table of an object that a volume refers to: `data`, which is undefined when there is no object, or `binaryData`. */
export type ObjectData = Readonly<Record<string, string>> | undefined;

/** The data of all objects that a volume refers to: each crosses to another thread alone, without a copy of its texts. */
export const dataOf = (volume: Volume, pod: Pod, { configMaps, secrets }: PayloadFacts["objects"]): ObjectData[] =>
  volumeReferences(pod, volume).flatMap(({ kind, fullName }) => {
    const found = (kind === "ConfigMap" ? configMaps : secrets).get(fullName);
    return [found && (found.data ?? {}), found?.binaryData];
  });

function objectsOf(volume: Volume, pod: Pod, tables: readonly ObjectData[]): PayloadFacts["objects"] {
  const objects = { configMaps: new Map<string, ObjectContent>(), secrets: new Map<string, ObjectContent>() };
  for (const [index, { kind, fullName }] of volumeReferences(pod, volume).entries()) {
    const [data, binaryData] = tables.slice(2 * index);
    if (data) objects[kind === "ConfigMap" ? "configMaps" : "secrets"].set(fullName, { data, binaryData });
  }
  return objects;
}

/**
 * Makes the files of a volume these: at set-up and again whenever an object or the pod's labels or annotations changed.
 * Secrets lie on a tmpfs where mounts are possible, else in a directory only root (or we) may enter.
 * @param mounter undefined where mounts are impossible.
 * @returns whether anything was different.
 * @throws Error with a message for users; what was there stays.
 */
export async function writeFileVolume(
  { plugin, directory, stateDirectory }: FileVolumePaths,
  [volume, pod, facts]: FileVolumeContent,
  mounter: Mounter | undefined,
  data: readonly ObjectData[],
): Promise<boolean> {
  const files = computePayload(volume, pod, { ...facts, objects: objectsOf(volume, pod, data) });
  const { fsGroup } = pod.spec.securityContext;
  const inMemory = mounter !== undefined && isInMemory(plugin);
  const state = `${fsGroup ?? ""}`;
  const known = readState(stateDirectory);
  if (known === undefined || (inMemory && !isMounted(directory))) {
    makeDirectory(directory, 0o777);
    if (inMemory && !isMounted(directory)) {
      await mounter.mountSecretFileSystem(directory, ["mode=0777"]);
      chmodSync(directory, 0o777);
    }
  }
  const group = fsGroup === undefined ? undefined : { fsGroup, readOnly: true };
  const changed = writeAtomically(directory, group ? withGroupAccess(files) : files, facts.now, {
    own: group && ((written) => applyFsGroup(written, group)),
    mountPoints: computeMountPointNames(pod, volume.name),
  });
  if (known !== state) {
    if (group) applyFsGroup(directory, group);
    writeState(stateDirectory, state);
  }
  return changed;
}

/** Tokens that the sources of a projected volume ask for, by {@link tokenKey}. @throws what `tokenFor` throws */
export async function fetchTokens(
  volume: Volume,
  pod: Pod,
  { tokenFor }: { tokenFor(pod: Pod, spec: TokenSpec): Promise<string> },
): Promise<ReadonlyMap<string, string>> {
  const specs = (volume.projected?.sources ?? []).flatMap(({ serviceAccountToken }) =>
    serviceAccountToken ? [toTokenSpec(serviceAccountToken)] : [],
  );
  const tokens = new Map<string, string>();
  for (const spec of specs) tokens.set(tokenKey(spec), await tokenFor(pod, spec));
  return tokens;
}

const withGroupAccess = (files: Payload): Payload =>
  new Map([...files].map(([path, file]) => [path, { ...file, mode: file.mode | READ_ONLY }]));

type ObjectContent = Partial<Record<"data" | "binaryData", ObjectData>>;

/** The data from which the files of a projected volume are made. */
interface PayloadFacts {
  objects: Readonly<Record<"configMaps" | "secrets", ReadonlyMap<string, ObjectContent>>>;
  allocatable: NodeAllocatable;
  /** Tokens of the service account, by {@link tokenKey}; absent where there is no API server. */
  tokens?: ReadonlyMap<string, string> | undefined;
}

const toTokenSpec = (source: NonNullable<VolumeProjection["serviceAccountToken"]>): TokenSpec => ({
  audience: source.audience ?? "",
  expirationSeconds: source.expirationSeconds ?? 3600,
});

const tokenKey = ({ audience, expirationSeconds }: TokenSpec): string => `${expirationSeconds} ${audience}`;

/** Mode of a file where the manifest gives none. */
const DEFAULT_MODE = 0o644;

/**
 * The files of a configMap, secret, downwardAPI or projected volume. If two sources have the same path, the later wins, as
 * upstream.
 * @throws Error that says why they cannot be made, in upstream's words
 */
export function computePayload(volume: Volume, pod: Pod, facts: PayloadFacts): Payload {
  const collector = new PayloadCollector(pod, facts);
  for (const collect of Object.values(FILE_VOLUMES)) collect(collector, volume);
  return collector.finish();
}

interface ObjectSource {
  name?: string | undefined;
  items?: readonly KeyToPath[] | undefined;
  optional?: boolean | undefined;
}

type Content = Omit<ProjectedFile, "mode">;

const contentsOf = (data: Readonly<Record<string, string>> | undefined, encoding: Content["encoding"]) =>
  Object.entries(data ?? {}).map(([key, text]): [string, Content] => [key, { text, encoding }]);

class PayloadCollector {
  readonly #pod: Pod;
  readonly #facts: PayloadFacts;
  readonly #files = new Map<string, ProjectedFile>();
  readonly #problems: string[] = [];

  constructor(pod: Pod, facts: PayloadFacts) {
    this.#pod = pod;
    this.#facts = facts;
  }

  addProjection(source: VolumeProjection, mode: number | undefined): void {
    if (source.configMap) this.addConfigMap(source.configMap, mode);
    else if (source.secret) this.addSecret(source.secret, mode);
    else if (source.downwardAPI) this.addDownward(source.downwardAPI, mode);
    else if (source.serviceAccountToken && this.#facts.tokens) this.#addToken(source.serviceAccountToken, mode);
    else {
      const kind = Object.keys(source).join(", ");
      this.#problems.push(`projected source ${kind} is not supported: it needs an API server`);
    }
  }

  addConfigMap(source: ObjectSource, mode: number | undefined): void {
    const found = this.#find(this.#facts.objects.configMaps, source, "configmap");
    if (!found) return;
    const files = new Map([...contentsOf(found.data, "utf8"), ...contentsOf(found.binaryData, "base64")]);
    this.#addKeys(files, source, mode, "config");
  }

  addSecret(source: ObjectSource, mode: number | undefined): void {
    const found = this.#find(this.#facts.objects.secrets, source, "secret");
    if (found) this.#addKeys(new Map(contentsOf(found.data, "base64")), source, mode, "secret");
  }

  #find<T>(objects: ReadonlyMap<string, T>, { name = "", optional }: ObjectSource, kind: string): T | undefined {
    const found = objects.get(`${this.#pod.metadata.namespace ?? "default"}/${name}`);
    if (!found && !optional) this.#problems.push(`${kind} "${name}" not found`);
    return found;
  }

  addDownward({ items = [] }: { items?: readonly DownwardAPIVolumeFile[] | undefined }, mode = DEFAULT_MODE): void {
    for (const item of items) {
      const value = item.fieldRef
        ? resolveFieldRef(item.fieldRef, this.#pod)
        : item.resourceFieldRef
          ? resolveResourceFieldRef(item.resourceFieldRef, this.#pod, undefined, this.#facts.allocatable)
          : { problem: `downwardAPI file ${item.path} has no source` };
      if ("problem" in value) this.#problems.push(value.problem);
      else this.#files.set(item.path, { text: value.value, encoding: "utf8", mode: item.mode ?? mode });
    }
  }

  /** Source: the kubelet's projected volume: with an fsGroup only owner and group may read a token. */
  #addToken(source: NonNullable<VolumeProjection["serviceAccountToken"]>, mode = DEFAULT_MODE): void {
    const token = this.#facts.tokens?.get(tokenKey(toTokenSpec(source))) ?? "";
    const isShared = this.#pod.spec.securityContext.fsGroup !== undefined;
    this.#files.set(source.path, { text: token, encoding: "utf8", mode: isShared ? 0o600 : mode });
  }

  #addKeys(
    data: ReadonlyMap<string, Content>,
    { items, optional }: ObjectSource,
    mode = DEFAULT_MODE,
    kind: "config" | "secret",
  ): void {
    if (!items || items.length === 0) {
      for (const [key, content] of data) this.#files.set(key, { ...content, mode });
      return;
    }
    for (const item of items) {
      const content = data.get(item.key);
      if (content) this.#files.set(item.path, { ...content, mode: item.mode ?? mode });
      else if (!optional) {
        this.#problems.push(`references non-existent ${kind} key: ${item.key}`);
        return;
      }
    }
  }

  finish(): Payload {
    const [first, ...others] = this.#problems;
    if (first === undefined) return this.#files;
    throw new Error(others.length === 0 ? first : `[${this.#problems.join(", ")}]`);
  }
}
