import { toQuantity } from "./compose-text.ts";
import type { InspectedContainer } from "./docker-inspect.ts";
import { type ImportNotes, toDnsLabel } from "./import-notes.ts";

/** The type of a file below /dev, as hostPath names it; undefined for anything else. */
export type DeviceType = (path: string) => "CharDevice" | "BlockDevice" | undefined;

const DEFAULT_SHM_BYTES = 64 * 1024 * 1024;
/** Docker names a volume that has no name by 64 hex digits. */
const ANONYMOUS = /^[0-9a-f]{64}$/;
const PROPAGATIONS: Readonly<Record<string, string>> = {
  rshared: "Bidirectional",
  shared: "Bidirectional",
  rslave: "HostToContainer",
  slave: "HostToContainer",
};

interface VolumeMount {
  name: string;
  mountPath: string;
}

/** Volumes of one pod, and the mounts of each of its containers. */
export class DockerVolumes {
  readonly volumes: object[] = [];
  /** Names of the volumes by their source, so that containers of one pod share them. */
  readonly #names = new Map<string, string>();
  readonly #deviceType: DeviceType;
  readonly #notes: ImportNotes;

  constructor(deviceType: DeviceType, notes: ImportNotes) {
    this.#deviceType = deviceType;
    this.#notes = notes;
  }

  /** Volumes, binds, tmpfs, devices and /dev/shm of a container. */
  mountsOf(container: InspectedContainer, path: string): VolumeMount[] {
    return [
      ...container.Mounts.flatMap((mount) => this.#mountOf(mount, container, path)),
      ...this.#tmpfsOf(container, path),
      ...this.#shmOf(container),
      ...container.HostConfig.Devices.flatMap((device) => this.#deviceOf(device, path)),
    ];
  }

  #mountOf(mount: InspectedContainer["Mounts"][number], container: InspectedContainer, path: string): VolumeMount[] {
    const { Type, Name, Source, Destination, Mode, RW, Propagation } = mount;
    const at = `${path}: -v ${Destination}`;
    const readOnly = RW ? {} : { readOnly: true };
    const wanted = container.HostConfig.Mounts.find(({ Target }) => Target === Destination);
    if (/(?:^|,)[zZ](?:,|$)/.test(Mode) && Type === "bind") {
      this.#notes.add(at, "SELinux labels are not set: z and Z are not carried over");
    }
    if (Type === "volume") {
      if (ANONYMOUS.test(Name)) {
        this.#notes.add(at, "is an anonymous volume: the pod uses it by its name; docker rm -v would remove it");
      }
      const subPath = wanted?.VolumeOptions?.Subpath;
      const extra = { ...readOnly, ...(subPath && { subPath }) };
      return [this.#mount(Destination, { persistentVolumeClaim: { claimName: Name } }, extra)];
    }
    if (Type === "bind") {
      const mountPropagation = PROPAGATIONS[Propagation];
      if (mountPropagation === "Bidirectional" && !container.HostConfig.Privileged) {
        this.#notes.add(at, "the propagation shared is not carried over: it needs a privileged container");
        return [this.#mount(Destination, { hostPath: { path: Source } }, readOnly)];
      }
      const extra = { ...readOnly, ...(mountPropagation && { mountPropagation }) };
      return [this.#mount(Destination, { hostPath: { path: Source } }, extra)];
    }
    if (Type === "tmpfs") {
      const bytes = wanted?.TmpfsOptions?.SizeBytes ?? 0;
      return [this.#memory(Destination, bytes > 0 ? toBytesQuantity(bytes) : undefined, readOnly)];
    }
    this.#notes.add(at, `mounts of type ${Type} are not carried over`);
    return [];
  }

  #tmpfsOf({ HostConfig: { Tmpfs } }: InspectedContainer, path: string): VolumeMount[] {
    return Object.entries(Tmpfs).map(([target, options]) => {
      const words = options.split(",").filter((word) => word !== "");
      const size = words.find((word) => word.startsWith("size="))?.slice("size=".length);
      const others = words.filter((word) => !word.startsWith("size=") && word !== "rw");
      if (others.length > 0) {
        this.#notes.add(`${path}: --tmpfs ${target}`, `${others.join(",")} is not carried over: only size is`);
      }
      return this.#memory(target, size === undefined ? undefined : toQuantity(size), {});
    });
  }

  #shmOf({ HostConfig: { ShmSize, IpcMode } }: InspectedContainer): VolumeMount[] {
    if (ShmSize === 0 || ShmSize === DEFAULT_SHM_BYTES || IpcMode === "host") return [];
    return [this.#memory("/dev/shm", toBytesQuantity(ShmSize), {})];
  }

  #deviceOf(device: InspectedContainer["HostConfig"]["Devices"][number], path: string): VolumeMount[] {
    const { PathOnHost, PathInContainer, CgroupPermissions } = device;
    const type = this.#deviceType(PathOnHost);
    if (type === undefined) {
      this.#notes.add(
        `${path}: --device ${PathOnHost}`,
        "is not a device file here: give each device of a directory as a hostPath of type CharDevice or BlockDevice",
      );
      return [];
    }
    const readOnly = CgroupPermissions.includes("w") ? {} : { readOnly: true };
    return [this.#mount(PathInContainer, { hostPath: { path: PathOnHost, type } }, readOnly)];
  }

  #memory(target: string, sizeLimit: string | undefined, extra: object): VolumeMount {
    // A tmpfs belongs to one container, so it is not shared by its size.
    const source = { emptyDir: { medium: "Memory", ...(sizeLimit && { sizeLimit }) } };
    return this.#mount(target, source, extra, `${this.volumes.length}`);
  }

  #mount(mountPath: string, source: object, extra: object, distinction = ""): VolumeMount {
    const key = JSON.stringify(source) + distinction;
    let name = this.#names.get(key);
    if (name === undefined) {
      const base = toDnsLabel(mountPath);
      const taken = new Set(this.#names.values());
      name = base;
      for (let count = 2; taken.has(name); count++) name = `${base.slice(0, 58)}-${count}`;
      this.#names.set(key, name);
      this.volumes.push({ name, ...source });
    }
    return { name, mountPath, ...extra };
  }
}

/** A number of bytes with the largest unit that divides it. */
export function toBytesQuantity(bytes: number): string {
  const units = ["", "Ki", "Mi", "Gi", "Ti"];
  let power = 0;
  let count = bytes;
  while (power < units.length - 1 && count % 1024 === 0 && count > 0) {
    count /= 1024;
    power++;
  }
  return `${count}${units[power]}`;
}
