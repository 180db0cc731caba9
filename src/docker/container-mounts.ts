import type { Mount } from "../base/model/mount.ts";
import type { EngineInfo } from "../base/model/node.ts";
import type { MountPoint } from "./engine/container-create-body.ts";
import { UnsupportedError } from "./mapping-error.ts";
import { hasSecurityOption, isApiAtLeast } from "./security.ts";

const PROPAGATION = { HostToContainer: "rslave", Bidirectional: "rshared" } as const;

/** Relative mount paths pass validation; they count from the root. Source: kubelet. */
const toAbsolute = (target: string) => (target.startsWith("/") ? target : `/${target}`);

/**
 * `source:target[:ro][,Z][,rslave]`, dockershim's order of options. `Z` is the label of the sandbox, which all containers
 * of the pod share with its IPC namespace. A volume does not start with the image's files.
 */
function toBind({ type, source, target, readOnly, propagation, relabel }: Mount, engine: EngineInfo): string {
  const options = [
    ...(readOnly ? ["ro"] : []),
    ...(relabel && hasSecurityOption(engine, "selinux") ? ["Z"] : []),
    ...(propagation ? [PROPAGATION[propagation]] : []),
    ...(type === "volume" ? ["nocopy"] : []),
  ];
  return [source, toAbsolute(target), ...(options.length > 0 ? [options.join(",")] : [])].join(":");
}

function toMountPoint(mount: Mount, engine: EngineInfo): MountPoint {
  const { type, source, target, readOnly, propagation, recursiveReadOnly, subPath } = mount;
  const need = (version: `${number}.${number}`, what: string) => {
    if (isApiAtLeast(engine, version)) return;
    const message = `${what} needs an engine with API ${version} or newer, this one has ${engine.apiVersion}`;
    throw new UnsupportedError(`volumeMounts["${target}"]`, message);
  };
  const common = { Type: type, Source: source, Target: toAbsolute(target), ReadOnly: readOnly };
  switch (type) {
    case "bind": {
      const force = readOnly && recursiveReadOnly === "Enabled";
      if (force) need("1.44", "recursiveReadOnly: Enabled");
      const options = {
        // The engine makes a mount read-only as a tree only when nothing can propagate into it.
        ...(force ? { Propagation: "rprivate" as const } : propagation && { Propagation: PROPAGATION[propagation] }),
        ...(force && { ReadOnlyForceRecursive: true }),
        ...(isTopReadOnly(mount, engine) && { ReadOnlyNonRecursive: true }),
      };
      return Object.keys(options).length > 0 ? { ...common, BindOptions: options } : common;
    }
    case "volume":
      if (subPath) need("1.45", "subPath of a Docker volume");
      return { ...common, VolumeOptions: { NoCopy: true, ...(subPath && { Subpath: subPath }) } };
    case "image":
      need("1.48", "an image volume");
      return { ...common, ReadOnly: true, ...(subPath && { ImageOptions: { Subpath: subPath } }) };
    default:
      return type satisfies never;
  }
}

/**
 * Whether the request must say that what is mounted below stays writable, as `recursiveReadOnly: Disabled` has it:
 * since API 1.44 it makes whole trees read-only by default. Nothing is mounted below the pod's own files.
 */
const isTopReadOnly = ({ type, readOnly, recursiveReadOnly, relabel }: Mount, engine: EngineInfo) =>
  type === "bind" && readOnly && recursiveReadOnly === undefined && !relabel && isApiAtLeast(engine, "1.44");

/** Binds, as dockershim, where that form can say it; it cannot when a path has a colon (and the other has no `Z`). */
const needsMountPoint = (mount: Mount, engine: EngineInfo) =>
  mount.type === "image" ||
  (mount.type === "volume" && mount.subPath !== undefined) ||
  (mount.readOnly && mount.recursiveReadOnly === "Enabled") ||
  isTopReadOnly(mount, engine) ||
  mount.source.includes(":") ||
  mount.target.includes(":");

/**
 * Docker's `Binds` and `Mounts` of a container, each in the order of `mounts`.
 * @throws UnsupportedError when the engine is too old for one.
 */
export function computeMounts(mounts: readonly Mount[], engine: EngineInfo): { Binds: string[]; Mounts: MountPoint[] } {
  const bodies: { Binds: string[]; Mounts: MountPoint[] } = { Binds: [], Mounts: [] };
  for (const mount of mounts) {
    if (needsMountPoint(mount, engine)) bodies.Mounts.push(toMountPoint(mount, engine));
    else bodies.Binds.push(toBind(mount, engine));
  }
  return bodies;
}
