import { isAbsolute } from "node:path";
import type { Container, VolumeMount } from "../../base/api/pod.ts";
import type { EngineVolume, Mount, VolumeEngine } from "../../base/model/container-engine.ts";
import { apiAtLeast } from "../../base/text/api-version.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { type EnvironmentVariable, expandStrictly } from "../../plan/environment.ts";
import type { HostFiles } from "./host-files.ts";
import { findNestedMounts } from "./mount-points.ts";
import type { Mounter } from "./mounter.ts";
import type { PodDirectories, VolumePaths } from "./pod-directories.ts";

export type MountSource =
  | {
      kind: "path";
      path: string;
      /** Whatever the mount says. */
      readOnly: boolean;
      /** Only the kubelet writes to it, so its links are trusted. */
      isOurs: boolean;
      /** Made for this pod: gets its SELinux label. Source: `Managed` and `SupportsSELinux` of upstream's plugins. */
      isManaged: boolean;
    }
  | { kind: "volume"; name: string; readOnly: boolean }
  | { kind: "image"; paths: VolumePaths };

interface MountsRequest {
  container: Container;
  /** For `subPathExpr`. */
  env: readonly EnvironmentVariable[];
  directories: PodDirectories;
  sourceOf(mount: VolumeMount): MountSource | undefined;
  engine: VolumeEngine;
  /** undefined where mounts are impossible. */
  mounter: Mounter | undefined;
  hostFiles: Pick<HostFiles, "bindSubPath" | "isDirectory" | "makeMountPoint" | "readImageState" | "resolveOwnSubPath">;
  /** Receives details about the host, which the pod's owner must not see. */
  onDetail(message: string): void;
  signal: AbortSignal;
}

/** Engines from API 1.48 on mount images themselves; for older ones the files are unpacked. */
export const mountsImages = (engine: VolumeEngine) => apiAtLeast(engine.apiVersion(), "1.48");

/**
 * Turns the volumeMounts of a container into mounts for the engine, in their order.
 * @throws Error with a message for users: the container cannot have them (a bad subPath, mostly)
 */
export async function toMounts(request: MountsRequest): Promise<Mount[]> {
  const { container } = request;
  const device = container.volumeDevices?.[0];
  if (device) throw new Error(`cannot find volume "${device.name}" to pass into container "${container.name}"`);
  const mounts: Mount[] = [];
  /** Our own directories that are mounted unchanged, by index of the mount; the engine cannot create anything in them. */
  const ours = new Map<number, string>();
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    request.signal.throwIfAborted();
    const source = request.sourceOf(mount);
    if (!source) throw new Error(`cannot find volume "${mount.name}" to mount into container "${container.name}"`);
    const subPath = subPathOf(mount, request.env);
    const resolved = await resolveSource(source, subPath, mount, index, request);
    if (source.kind === "path" && source.isOurs && subPath === "") ours.set(index, source.path);
    const { mountPropagation, recursiveReadOnly } = mount;
    mounts.push({
      ...resolved,
      target: isAbsolute(mount.mountPath) ? mount.mountPath : `/${mount.mountPath}`,
      readOnly: resolved.readOnly || (mount.readOnly ?? false),
      ...(mountPropagation && mountPropagation !== "None" && { propagation: mountPropagation }),
      ...(recursiveReadOnly && recursiveReadOnly !== "Disabled" && { recursiveReadOnly }),
    });
  }
  for (const { outer, inner, relative } of findNestedMounts(mounts.map(({ target }) => target))) {
    const directory = ours.get(outer);
    const mount = mounts[inner];
    if (directory === undefined || !mount) continue;
    await request.hostFiles.makeMountPoint(directory, relative, await showsDirectory(mount, request));
  }
  return mounts;
}

/** Only the engine sees the files of its volumes; a volume is hardly ever a single file. */
const showsDirectory = async ({ type, source }: Mount, { hostFiles }: MountsRequest) =>
  type !== "bind" || ((await hostFiles.isDirectory(source)) ?? true);

type ResolvedSource = Pick<Mount, "type" | "source" | "readOnly" | "subPath" | "relabel">;

async function resolveSource(
  source: MountSource,
  subPath: string,
  mount: VolumeMount,
  index: number,
  request: MountsRequest,
): Promise<ResolvedSource> {
  if (source.kind === "path") {
    const { readOnly, isOurs, isManaged } = source;
    const relabel = isManaged ? ({ relabel: true } as const) : {};
    if (subPath === "") return { type: "bind", source: source.path, readOnly, ...relabel };
    const path = await bind(source.path, subPath, isOurs, mount, index, request);
    return { type: "bind", source: path, readOnly, ...relabel };
  }
  if (source.kind === "image") {
    const { paths } = source;
    const subPathOption = subPath === "" ? {} : { subPath };
    if (mountsImages(request.engine)) {
      const { imageId = "" } = (await request.hostFiles.readImageState(paths)) ?? {};
      return { type: "image", source: imageId, readOnly: true, ...subPathOption };
    }
    const path = subPath === "" ? paths.directory : await bind(paths.directory, subPath, true, mount, index, request);
    return { type: "bind", source: path, readOnly: true, relabel: true };
  }
  const { name, readOnly } = source;
  if (subPath === "") return { type: "volume", source: name, readOnly };
  const volume = await request.engine.inspectVolume(name, request.signal);
  if (volume && isPlainDirectory(volume) && request.mounter) {
    const path = await bind(volume.mountpoint, subPath, false, mount, index, request);
    return { type: "bind", source: path, readOnly };
  }
  if (apiAtLeast(request.engine.apiVersion(), "1.45")) return { type: "volume", source: name, readOnly, subPath };
  throw new Error(
    `subPath of volumeMount "${mount.name}" of container "${request.container.name}" needs Docker 26 (API 1.45) or a plain local volume`,
  );
}

/** Whether the volume is a directory of the engine's host that can be used without the engine. */
export const isPlainDirectory = ({ driver, options, mountpoint }: EngineVolume) =>
  driver === "local" && Object.keys(options).every((name) => name === "size") && mountpoint !== "";

function subPathOf(mount: VolumeMount, env: readonly EnvironmentVariable[]): string {
  let subPath = mount.subPath ?? "";
  if (mount.subPathExpr) {
    const values = new Map(env.map(({ name, value }) => [name, value]));
    const expanded = expandStrictly(mount.subPathExpr, (name) => values.get(name));
    if ("missing" in expanded) throw new Error(`missing value for ${expanded.missing.join(", ")}`);
    subPath = expanded.text;
  }
  if (isAbsolute(subPath)) throw new Error(`error SubPath \`${subPath}\` must not be an absolute path`);
  if (subPath.split("/").includes("..")) {
    throw new Error(`unable to provision SubPath \`${subPath}\`: must not contain '..'`);
  }
  return subPath;
}

async function bind(
  volumePath: string,
  subPath: string,
  isOurs: boolean,
  mount: VolumeMount,
  index: number,
  { container, directories, mounter, hostFiles, onDetail }: MountsRequest,
): Promise<string> {
  const failure = `failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}"`;
  if (!mounter && !isOurs) throw new Error(`${failure}: it takes a kubelet that runs as root and can mount`);
  try {
    if (!mounter) return await hostFiles.resolveOwnSubPath(volumePath, subPath);
    const target = directories.subPath(mount.name, container.name, index);
    await hostFiles.bindSubPath(volumePath, subPath, target);
    return target;
  } catch (error) {
    // Upstream too keeps the details from the pod's owner: they describe the host.
    onDetail(`${failure}: ${messageOf(error)}`);
    throw new Error(failure);
  }
}
