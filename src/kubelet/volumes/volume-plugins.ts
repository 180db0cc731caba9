import { createHash } from "node:crypto";
import { join } from "node:path";
import { emptyDirOptionsOf } from "../../base/api/annotations.ts";
import type { Secret } from "../../base/api/config-objects.ts";
import type { Container, ImageVolumeSource, NFSVolumeSource, Pod, Volume, VolumeMount } from "../../base/api/pod.ts";
import type { ClusterVolumeName, VolumeSourceName } from "../../base/api/volume.ts";
import { readOutput } from "../../base/files/bounded-stream.ts";
import { claimVolumeOf } from "../../base/model/claim-volume.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { TokenSpec } from "../../base/model/cluster-connection.ts";
import type { ImageInfo, VolumeEngine } from "../../base/model/container-engine.ts";
import type { ObjectIndex } from "../../base/model/desired-state.ts";
import { containersOf } from "../../base/model/pod.ts";
import type { NodeAllocatable } from "../../plan/downward-api.ts";
import { resolvePullSecrets } from "../../plan/object-references.ts";
import type { HostFiles } from "./host-files.ts";
import { Mounter } from "./mounter.ts";
import { isPlainDirectory, type MountSource, mountsImages } from "./mounts.ts";
import {
  computePayload,
  dataOf,
  emptyDirState,
  type FileVolumePlugin,
  fetchTokens,
  isInMemory,
} from "./own-volumes.ts";
import type { PodDirectories, VolumePaths } from "./pod-directories.ts";

/** Pulls by policy as for a container of the pod: `ImageManager`. */
interface ImageSource {
  ensureImage(
    pod: Pod,
    container: Container,
    options: { pullSecrets: readonly Secret[] },
    signal: AbortSignal,
  ): Promise<Pick<ImageInfo, "id">>;
}

/** The machine and the engine, as plugins use them. */
export interface VolumeHost {
  clock: Clock;
  engine: VolumeEngine;
  images: ImageSource;
  hostFiles: HostFiles;
  /** Absent where mounts are impossible (see `canMount`): then memory-backed emptyDirs and most subPaths are refused. */
  mounter?: Mounter;
  /** Value of `resourceFieldRef` for a container without a limit. */
  allocatable: NodeAllocatable;
  /** Why a claim cannot be mounted; undefined for a pod that the API server does not know. */
  claimProblemOf?: (pod: Pod, claimName: string) => string | undefined;
  /** Gives a token of the pod's service account, or throws a message for events; absent: there is no API server. */
  cluster?: { tokenFor(pod: Pod, spec: TokenSpec): Promise<string> };
  /** Storage that a claim of the pod requests; undefined for a claim without a document. */
  claimBytesOf?: (pod: Pod, claimName: string) => number | undefined;
}

/** Only root gives files to an fsGroup. */
const isRoot = process.getuid?.() === 0;

interface PodVolume {
  pod: Pod;
  name: string;
  directories: PodDirectories;
}

/** Where the bytes of one volume of a pod are, for statistics and limits. */
export interface VolumeUsagePath {
  name: string;
  path: string;
  /** `statfs`: the volume is a file system of its own. `du`: its files have to be added up. */
  method: "statfs" | "du";
  /** Counts against the pod's ephemeral-storage. */
  isEphemeral: boolean;
  /** Only emptyDir: canonical quantity. */
  sizeLimit?: string;
  claimName?: string;
}

interface UsageFacts {
  canMount: boolean;
  /** The claim that the volume took the place of. */
  claimName: string | undefined;
  /** The engine's own directory; undefined while it is not known. */
  engineDir: string | undefined;
}

interface VolumePlugin<Source> {
  /** Names its directories below those of a pod; undefined: it has none. */
  directory: string | undefined;
  /** Absent: every volume of this type has that directory. */
  hasDirectory?(source: Source): boolean;
  /** Finds what `setUp` would refuse, and changes nothing that is in use. Absent: nothing can be found before. @throws Error */
  check?(
    source: Source,
    volume: PodVolume,
    host: VolumeHost,
    objects: ObjectIndex,
    signal: AbortSignal,
  ): Promise<unknown>;
  /** To be repeated at any time: what is already so stays. @throws Error with a message for users */
  setUp(source: Source, volume: PodVolume, host: VolumeHost, objects: ObjectIndex, signal: AbortSignal): Promise<void>;
  /** Writes its files again from the objects as they are now. @returns whether anything is different */
  refresh?(source: Source, volume: PodVolume, host: VolumeHost, objects: ObjectIndex): Promise<boolean>;
  mountSource(source: Source, volume: PodVolume): MountSource;
  /** Its directory, without access to the disk; undefined for one that does not count as the pod's, or may not answer. */
  usage(source: Source, volume: PodVolume, facts: UsageFacts): Omit<VolumeUsagePath, "name"> | undefined;
  /** Removes what the engine holds of it. @param notes names in its state directory */
  remove?(notes: readonly string[], engine: Pick<VolumeEngine, "removeVolume">, signal: AbortSignal): Promise<void>;
}

/** Types without a plugin: manifests with them are refused, since their storage needs a driver of a cluster, or is gone. */
type RefusedVolumeType = ClusterVolumeName | "ephemeral" | "gitRepo";

type VolumeType = Exclude<VolumeSourceName, RefusedVolumeType>;

/** Every other type of volume. A field that is new in the API's `Volume` does not compile until it has an entry here. */
const VOLUME_PLUGINS: { readonly [T in VolumeType]: VolumePlugin<NonNullable<Volume[T]>> } = {
  hostPath: {
    directory: "local-volume",
    hasDirectory: ({ local }) => local !== undefined,
    check: checkHostPath,
    async setUp({ local, ...source }, volume, host) {
      await checkHostPath(source, volume, host);
      if (local) await setUpLocal(source.path, local, volume, host);
    },
    mountSource: ({ path, local }, { name, directories }) => ({
      kind: "path",
      path: local?.mountOptions ? directories.volume("local-volume", name) : path,
      readOnly: false,
      isOurs: false,
      isManaged: false,
    }),
    // A PersistentVolume is shown with the figures of its file system. Source: the kubelet's local volume plugin.
    usage: ({ path }, _, { claimName }) =>
      claimName === undefined ? undefined : { path, method: "statfs", isEphemeral: false, claimName },
  },
  emptyDir: {
    directory: "empty-dir",
    async setUp(source, { pod, name, directories }, { hostFiles, mounter }) {
      const paths = directories.paths("empty-dir", name);
      const annotated = emptyDirOptionsOf(pod.metadata, name);
      const options = source.mode === undefined ? annotated : { mode: source.mode, flags: [], ...annotated };
      const state = emptyDirState(pod, options);
      const wanted = { flags: options?.flags ?? [], state };
      if (await hostFiles.prepareEmptyDir(source, pod, paths, wanted, mounter !== undefined)) return;
      const { fsGroup } = pod.spec.securityContext;
      if (fsGroup !== undefined) await hostFiles.applyFsGroup(paths.directory, { fsGroup, readOnly: false });
      // Mode and owner that were asked for win over those of the group.
      if (options) await hostFiles.applyEmptyDirOptions(paths.directory, options);
      await hostFiles.writeVolumeState(paths.stateDirectory, state);
    },
    mountSource: (_, { name, directories }) => ({
      ...ownPath("empty-dir", name, directories),
      readOnly: false,
      isOurs: false,
    }),
    usage({ medium = "", sizeLimit }, { name, directories }) {
      const path = directories.volume("empty-dir", name);
      const limit = sizeLimit === undefined ? {} : { sizeLimit };
      return { path, method: medium === "" ? "du" : "statfs", isEphemeral: medium === "", ...limit };
    },
  },
  configMap: filesPlugin("configmap"),
  secret: filesPlugin("secret"),
  downwardAPI: filesPlugin("downward-api"),
  projected: filesPlugin("projected"),
  image: {
    directory: "image",
    check: (source, { pod }, { images }, objects, signal) =>
      pullVolumeImage(source, pod, images, resolvePullSecrets(pod, objects), signal),
    setUp: (source, { pod, name, directories }, host, objects, signal) =>
      setUpImageVolume(source, pod, directories.paths("image", name), host, resolvePullSecrets(pod, objects), signal),
    mountSource: (_, { name, directories }) => ({ kind: "image", paths: directories.paths("image", name) }),
    usage: () => undefined,
  },
  nfs: {
    directory: "nfs",
    // The engine mounts it when a container starts, so a server that does not answer shows only then.
    async setUp(nfs, { pod, name, directories }, { engine, hostFiles }, _, signal) {
      const uid = pod.metadata.uid ?? "";
      const volume = nfsVolumeName(uid, { name, nfs });
      // First the note that says what is to be removed later.
      await hostFiles.makeDirectory(join(directories.pluginState("nfs", name), volume));
      const labels = { "io.kubernetes.pod.uid": uid };
      await engine.createVolume({ name: volume, driver: "local", options: nfsOptions(nfs), labels }, signal);
    },
    mountSource: (nfs, { pod, name }) => ({
      kind: "volume",
      name: nfsVolumeName(pod.metadata.uid ?? "", { name, nfs }),
      readOnly: nfs.readOnly ?? false,
    }),
    // A server that does not answer would block the measurement.
    usage: () => undefined,
    async remove(notes, engine, signal) {
      for (const note of notes) await engine.removeVolume(note, signal);
    },
  },
  persistentVolumeClaim: {
    directory: undefined,
    async setUp({ claimName }, { pod, name }, host, _, signal) {
      const problem = host.claimProblemOf?.(pod, claimName);
      if (problem !== undefined) throw new Error(problem);
      const isDevice = containersOf(pod.spec).some(({ volumeDevices = [] }) =>
        volumeDevices.some((device) => device.name === name),
      );
      if (isDevice) throw new Error("a Docker volume cannot be used as a block device");
      await setUpClaim(claimName, pod, host, signal);
    },
    mountSource: ({ claimName, readOnly = false }, { pod }) => ({
      kind: "volume",
      name: claimVolumeName(pod, claimName),
      readOnly,
    }),
    usage({ claimName }, { pod }, { engineDir }) {
      if (engineDir === undefined) return undefined;
      const path = join(engineDir, "volumes", claimVolumeName(pod, claimName), "_data");
      return { path, method: "du", isEphemeral: false, claimName };
    },
  },
};

const ownPath = (plugin: string, name: string, directories: PodDirectories) =>
  ({ kind: "path", path: directories.volume(plugin, name), isManaged: true }) as const;

async function checkHostPath(
  { path, type }: Pick<NonNullable<Volume["hostPath"]>, "path" | "type">,
  _: PodVolume,
  host: VolumeHost,
): Promise<void> {
  const problem = await host.hostFiles.prepareHostPath({ path, type });
  if (problem) throw new Error(problem);
}

/** From what the files of a volume are made. @throws Error with a message for users when there is no token */
async function factsOf(volume: Volume, pod: Pod, host: VolumeHost) {
  const tokens = host.cluster && (await fetchTokens(volume, pod, host.cluster));
  return { allocatable: host.allocatable, tokens, now: host.clock.now() };
}

/** Volumes whose files we write; containers see them read-only. */
function filesPlugin(plugin: FileVolumePlugin): VolumePlugin<unknown> {
  const write = async (volume: PodVolume, host: VolumeHost, objects: ObjectIndex): Promise<boolean> => {
    const { pod, name, directories } = volume;
    const source = pod.spec.volumes?.find((one) => one.name === name);
    if (!source) return false;
    const paths = { plugin, ...directories.paths(plugin, name) };
    let facts: Awaited<ReturnType<typeof factsOf>>;
    try {
      facts = await factsOf(source, pod, host);
    } catch (error) {
      // Tokens that are there serve while the API server is unreachable.
      if (!(await isSetUp(plugin, volume, host)) || !isMountPoint(paths.directory)) throw error;
      return false;
    }
    const data = dataOf(source, pod, objects);
    return await host.hostFiles.writeFileVolume(paths, [source, pod, facts], host.mounter !== undefined, ...data);
  };
  return {
    directory: plugin,
    async check(_, { pod, name }, host, objects) {
      const source = pod.spec.volumes?.find((one) => one.name === name);
      if (source) computePayload(source, pod, { ...(await factsOf(source, pod, host)), objects });
    },
    setUp: async (_, volume, host, objects) => void (await write(volume, host, objects)),
    /** A volume that is not set up yet is left to `setUp`. */
    refresh: async (_, volume, host, objects) =>
      (await isSetUp(plugin, volume, host)) && (await write(volume, host, objects)),
    mountSource: (_, { name, directories }) => ({
      ...ownPath(plugin, name, directories),
      readOnly: true,
      isOurs: true,
    }),
    usage(_, { name, directories }, { canMount }) {
      const inMemory = canMount && isInMemory(plugin);
      return { path: directories.volume(plugin, name), method: inMemory ? "statfs" : "du", isEphemeral: !inMemory };
    },
  };
}

/**
 * A PersistentVolume of the kind `local`: once in the life of the pod it gets the pod's fsGroup, and is mounted where it
 * has mount options. Source: the kubelet's local volume plugin.
 */
async function setUpLocal(
  path: string,
  { readOnly, mountOptions }: NonNullable<NonNullable<Volume["hostPath"]>["local"]>,
  volume: PodVolume,
  host: VolumeHost,
): Promise<void> {
  const { pod, name, directories } = volume;
  const { directory, stateDirectory } = directories.paths("local-volume", name);
  if (mountOptions && !isMountPoint(directory)) {
    if (!host.mounter) throw new Error("mount options of local volumes need a kubelet that runs as root and can mount");
    await host.hostFiles.makeDirectory(directory);
    await host.mounter.bind(path, directory, mountOptions);
  }
  const { fsGroup, fsGroupChangePolicy: policy } = pod.spec.securityContext;
  if (fsGroup === undefined || readOnly || !isRoot) return;
  if (await isSetUp("local-volume", volume, host)) return;
  await host.hostFiles.applyFsGroup(path, { fsGroup, readOnly: false, ...(policy && { policy }) });
  await host.hostFiles.writeVolumeState(stateDirectory, `${fsGroup}`);
}

/**
 * Makes the contents of an image available to the pod: pulled by its policy, then mounted by the engine or unpacked into
 * the volume's directory, once per life of the pod and reference (a newer image behind the same tag is not checked for).
 * @throws Error with a message for users.
 */
async function setUpImageVolume(
  source: ImageVolumeSource,
  pod: Pod,
  paths: VolumePaths,
  { engine, images, hostFiles }: VolumeHost,
  pullSecrets: readonly Secret[],
  signal: AbortSignal,
): Promise<void> {
  const { reference = "" } = source;
  if (reference !== "" && (await hostFiles.readImageState(paths))?.reference === reference) return;
  const imageId = await pullVolumeImage(source, pod, images, pullSecrets, signal);
  if (!mountsImages(engine)) await unpack(imageId, paths.directory, engine, hostFiles, signal);
  await hostFiles.writeImageState(paths, { reference, imageId });
}

/** @returns the engine's id of the image */
async function pullVolumeImage(
  { reference, pullPolicy = "IfNotPresent" }: ImageVolumeSource,
  pod: Pod,
  images: ImageSource,
  pullSecrets: readonly Secret[],
  signal: AbortSignal,
): Promise<string> {
  if (!reference) throw new Error("image volume has no reference");
  // Events and back-off are those of the pod; the volume has no container of its own.
  const container = { ...pod.spec.containers[0]!, image: reference, imagePullPolicy: pullPolicy };
  return (await images.ensureImage(pod, container, { pullSecrets }, signal)).id;
}

async function unpack(
  imageId: string,
  directory: string,
  engine: VolumeEngine,
  hostFiles: HostFiles,
  signal: AbortSignal,
): Promise<void> {
  const fresh = await hostFiles.prepareExtraction(directory);
  const archive = await engine.exportImage(imageId, signal);
  const tar = Bun.spawn(["tar", "-x", "-p", "--numeric-owner", "-f", "-", "-C", fresh], {
    stdin: archive,
    stdout: "ignore",
    stderr: "pipe",
    signal,
  });
  const [code, errors] = await Promise.all([tar.exited, readOutput(tar.stderr)]);
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`cannot unpack image ${imageId}: tar: ${errors.trim() || `exit code ${code}`}`);
  await hostFiles.commitExtraction(fresh, directory);
}

async function isSetUp(plugin: string, { name, directories }: PodVolume, { hostFiles }: VolumeHost) {
  const [notes = []] = await hostFiles.listAll([directories.pluginState(plugin, name)]);
  return notes.includes("ready");
}

/** The list of mounts can be read also where mounts are impossible. */
const isMountPoint = (path: string) => new Mounter().listBeneath(path).includes(path);

/** The plugin of a volume, for one of a supported type. */
export function findPlugin(volume: Volume): { plugin: VolumePlugin<unknown>; source: unknown } | undefined {
  for (const [type, plugin] of Object.entries(VOLUME_PLUGINS)) {
    const source = volume[type as VolumeType];
    if (source !== undefined) return { plugin: plugin as VolumePlugin<unknown>, source };
  }
  return undefined;
}

/** The plugin of a volume, and the field it reads. @throws Error for a type that there is not */
export function pluginOf(volume: Volume): { plugin: VolumePlugin<unknown>; source: unknown } {
  const found = findPlugin(volume);
  if (found) return found;
  const type = Object.keys(volume).find((key) => key !== "name") ?? "none";
  throw new Error(`volumes of type ${type} are not supported without a cluster`);
}

/** Where the files of a volume mount are; undefined for a volume that the pod does not have. */
export function mountSourceOf(pod: Pod, { name }: VolumeMount, directories: PodDirectories): MountSource | undefined {
  const volume = pod.spec.volumes?.find((one) => one.name === name);
  const found = volume && findPlugin(volume);
  return found?.plugin.mountSource(found.source, { pod, name, directories });
}

/** The directory below the pod's that a volume has, if any. */
export function directoryOf(volume: Volume): string | undefined {
  const { plugin, source } = findPlugin(volume) ?? {};
  return (plugin?.hasDirectory?.(source) ?? true) ? plugin?.directory : undefined;
}

/** Plugins with directories below those of a pod. */
export const pluginsWithDirectories = (): (VolumePlugin<unknown> & { directory: string })[] =>
  Object.values(VOLUME_PLUGINS).flatMap((plugin: VolumePlugin<unknown>) => {
    const { directory } = plugin;
    return directory === undefined ? [] : [{ ...plugin, directory }];
  });

export const claimVolumeName = ({ metadata }: Pod, claimName: string): string =>
  claimVolumeOf(metadata.namespace ?? "default", claimName);

/**
 * Name of the Docker volume through which one nfs volume of one pod is mounted. It changes with what is mounted, because
 * the engine returns an existing volume without comparing options.
 */
export function nfsVolumeName(podUid: string, { name, nfs }: NfsVolume): string {
  const source = createHash("sha256")
    .update(JSON.stringify(nfsOptions(nfs)))
    .digest("hex")
    .slice(0, 8);
  return `kubelet-ts_${podUid}_${name}_${source}`;
}

type NfsVolume = { name: string; nfs: NFSVolumeSource };

/** NFS 4.1 unless the mount options say otherwise: only mount.nfs negotiates versions, and current servers have no 4.0. */
const nfsOptions = ({ server, path, readOnly, mountOptions = [] }: NFSVolumeSource) => {
  const version = mountOptions.some((option) => NFS_VERSION.test(option)) ? [] : ["nfsvers=4.1"];
  const options = [`addr=${server}`, ...version, readOnly ? "ro" : "rw", ...mountOptions];
  return { type: "nfs", device: `:${path}`, o: options.join(",") };
};

const NFS_VERSION = /^(?:nfsvers=|vers=|v[234])/;

/**
 * Ensures that the Docker volume of a claim exists, with a limit where the engine can set one, and belongs to the pod's
 * fsGroup. It outlives the pod.
 */
async function setUpClaim(claimName: string, pod: Pod, host: VolumeHost, signal: AbortSignal): Promise<void> {
  const { engine, hostFiles } = host;
  const name = claimVolumeName(pod, claimName);
  let found = await engine.inspectVolume(name, signal);
  if (!found) {
    const namespace = pod.metadata.namespace ?? "default";
    const labels = { "kubelet-ts.io/claim": claimName, "kubelet-ts.io/claim-namespace": namespace };
    const volume = { name, driver: "local", labels, options: {} } as const;
    const sizeBytes = host.claimBytesOf?.(pod, claimName);
    if (sizeBytes === undefined) await engine.createVolume(volume, signal);
    else {
      await engine.createVolume({ ...volume, options: { size: String(sizeBytes) } }, signal).catch((error: unknown) => {
        // The local driver limits the size on XFS with project quotas, and refuses the option elsewhere.
        if (!/quota/i.test((error as Error).message)) throw error;
        return engine.createVolume(volume, signal);
      });
    }
    found = await engine.inspectVolume(name, signal);
  }
  const { fsGroup, fsGroupChangePolicy: policy } = pod.spec.securityContext;
  if (fsGroup === undefined || !isRoot || !found || !isPlainDirectory(found)) return;
  await hostFiles.applyFsGroup(found.mountpoint, { fsGroup, readOnly: false, ...(policy && { policy }) });
}
