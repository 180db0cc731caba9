import { posix } from "node:path";
import { EMPTY_DIR_OPTIONS_ANNOTATION, parseEmptyDirOption } from "../../base/api/annotations.ts";
import { isRecord, type Json } from "../../base/text/json.ts";
import { isTrue, type JsonMap, toQuantity } from "./compose-text.ts";
import {
  type FindDevices,
  type ImportNotes,
  listOf,
  type PodVolumes,
  propagationOf,
  textOf,
  textsOf,
  toDnsLabel,
  type VolumeMount,
} from "./pod-parts.ts";

export interface ComposeInput extends MachineInput {
  /** Absolute paths of the Compose files; later ones override. */
  files: readonly string[];
}

/** The machine and the variables that services refer to. */
export interface MachineInput {
  /** Name of the project when the file has none: that of its directory. */
  project: string;
  /** Base of relative paths; absolute. */
  directory: string;
  /** Variables of `.env` and of the process, for interpolation and variables without a value. */
  environment: ReadonlyMap<string, string>;
  /** @returns undefined when it cannot be read @throws ComposeError when one that may be missing is there, but cannot */
  readFile(path: string, mayBeMissing?: boolean): string | undefined;
  findDevices: FindDevices;
  /** The address of `host-gateway`; undefined when it is not known. */
  hostGateway?: string | undefined;
}

/** All that services refer to. */
export interface ComposeContext extends MachineInput, Record<"services" | "volumes" | "configs" | "secrets", JsonMap> {
  /** Gets the Docker volumes that the pods use by name. */
  claims: Set<string>;
  /** Names of the Docker networks in which the pods find each other, by key; none for a single service that names none. */
  networks: ReadonlyMap<string, string>;
  /** Names of the pods of services; those that share a network have one pod. */
  podNames: ReadonlyMap<string, string>;
  /** Notes on the whole file. */
  notes: ImportNotes;
  notesOf(service: string): ImportNotes;
}

/**
 * The name that a network, volume, config or secret has of its own, and whether it exists already. Older files have the name
 * below `external`.
 */
export function ownNameOf(declared: Json | undefined): { name: string | undefined; isExternal: boolean } {
  const { name, external } = isRecord(declared) ? declared : {};
  const older = isRecord(external) ? textOf(external.name) : undefined;
  return { name: textOf(name) ?? older, isExternal: isTrue(external) || isRecord(external) };
}

const NOT_MADE = "an absent source becomes an empty directory: hostPath.type Directory or File refuses it";
const SELINUX = "z and Z of mounts are not carried over: SELinux labels are not set";

/** Mounts of the container of a service, with the documents they need. */
export class ComposeVolumes {
  readonly mounts: VolumeMount[] = [];
  readonly documents: object[] = [];
  /** Groups, or else users, that configs and secrets are for: the owner of such a file is root, its group has the pod's fsGroup. */
  readonly fileGroups: string[] = [];
  readonly #pod: PodVolumes;
  readonly #context: ComposeContext;
  readonly #notes: ImportNotes;
  readonly #containerName: string;
  readonly #isPrivileged: boolean;
  readonly #isScaled: boolean;

  /**
   * Reads `volumes`, `tmpfs`, `devices`, `configs`, `secrets` and `shm_size` of the service.
   * @param isScaled it has several containers
   */
  constructor(name: string, service: JsonMap, isScaled: boolean, pod: PodVolumes, context: ComposeContext) {
    const notes = context.notesOf(name);
    this.#containerName = toDnsLabel(name);
    this.#isScaled = isScaled;
    this.#pod = pod;
    this.#isPrivileged = isTrue(service.privileged);
    this.#context = context;
    this.#notes = notes;
    for (const [index, volume] of listOf(service.volumes).entries())
      this.#add(partsOfVolume(volume), `volumes[${index}]`);
    for (const [index, entry] of textsOf(service.volumes_from).entries()) {
      const [name = "", access] = entry.replace(/^container:/, "").split(":");
      const other = context.services[name];
      const at = `volumes_from[${index}]`;
      if (!isRecord(other)) notes.add(at, `${entry} is not carried over: it is no service of this file`);
      else
        for (const volume of listOf(other.volumes).map(partsOfVolume))
          this.#add(access === "ro" ? { ...volume, read_only: true } : volume, at);
    }
    for (const entry of textsOf(service.tmpfs)) {
      const [target = "", options = ""] = entry.split(":");
      // Others are the default.
      const words = options.split(",").filter((word) => !["", "rw", "exec", "suid", "dev"].includes(word));
      const sizes = words.filter((word) => word.startsWith("size="));
      const carried = words.filter((word) => parseEmptyDirOption(word));
      const others = words.filter((word) => !sizes.includes(word) && !carried.includes(word));
      if (this.#isMounted(target)) notes.add("tmpfs", `${target} is not carried over: a volume has this target`);
      else if (others.length > 0) notes.add("tmpfs", `${target}: ${others.join(",")} is not carried over`);
      this.#addMemory(target, sizes.at(-1)?.slice("size=".length), {}, carried);
    }
    for (const [index, device] of listOf(service.devices).entries()) {
      const words = isRecord(device) ? [device.source, device.target, device.permissions] : textOf(device)?.split(":");
      const [source = "", target = source, permissions = "rwm"] = (words ?? []).map((word) =>
        textOf(word)?.replace(/(?<=.)\/+$/, ""),
      );
      const found = context.findDevices(source);
      // A file may be imported on another machine.
      const devices = found.length > 0 ? found : [{ path: source, type: "CharDevice" } as const];
      const extra = permissions.includes("w") ? {} : { readOnly: true };
      if (!source.startsWith("/dev/")) notes.add(`devices[${index}]`, "is not a device file and is not carried over");
      else {
        for (const hostPath of devices)
          this.mounts.push(pod.mount(target + hostPath.path.slice(source.length), { hostPath }, extra));
      }
    }
    this.#addFiles("configs", listOf(service.configs));
    this.#addFiles("secrets", listOf(service.secrets));
    const shmSize = textOf(service.shm_size);
    if (shmSize !== undefined) this.#addMemory("/dev/shm", shmSize);
  }

  #isMounted = (target: string): boolean => this.mounts.some(({ mountPath }) => toPath(mountPath) === toPath(target));

  /** @param isEmptied a named volume does not start with the files of the image */
  #mount(target: string, source: object, extra: object, isEmptied = false): void {
    // A mount of the service itself counts more than `volumes_from`.
    if (this.#isMounted(target)) return;
    const mount = this.#pod.mount(target, source, extra);
    this.mounts.push(mount);
    if ("persistentVolumeClaim" in source && !("subPath" in extra) && !isEmptied) this.#pod.filled.add(mount.name);
  }

  /** @param size a Compose size, e.g. `64m`. @param options those that an emptyDir can have */
  #addMemory(target: string, size?: string, extra: object = {}, options: readonly string[] = []): void {
    if (this.#isMounted(target)) return;
    const sizeLimit = size === undefined ? undefined : toQuantity(size);
    const mount = this.#pod.mount(target, { emptyDir: { medium: "Memory", ...(sizeLimit && { sizeLimit }) } }, extra);
    if (options.length > 0) this.#pod.emptyDirOptions.push(`${mount.name}:${options.join(",")}`);
    this.mounts.push(mount);
  }

  #addFiles(kind: "configs" | "secrets", files: readonly Json[]): void {
    for (const [index, file] of files.entries()) {
      const at = `${kind}[${index}]`;
      const source = textOf(isRecord(file) ? file.source : file) ?? "";
      const target = fileTargetOf(kind, file);
      const declared = this.#context[kind][source];
      const { name: ownName = source, isExternal } = ownNameOf(declared);
      const text = isExternal ? undefined : this.#contentOf(declared, at);
      if (!isExternal && text === undefined) continue;
      const name = toDnsLabel(isExternal ? ownName : `${this.#containerName}-${source}`);
      const key = posix.basename(target).replace(/[^-._a-zA-Z0-9]/g, "-");
      const isSecret = kind === "secrets";
      const kindName = isSecret ? "Secret" : "ConfigMap";
      const metadata = { name };
      if (text === undefined) this.#notes.add(at, `is external: create the ${kindName} ${name} with the key ${key}`);
      else {
        const data = isSecret ? { stringData: { [key]: text } } : { data: { [key]: text } };
        this.documents.push({ apiVersion: "v1", kind: kindName, metadata, ...data });
      }
      const owners = isRecord(file) ? textsOf([file.gid ?? null, file.uid ?? null]) : [];
      this.fileGroups.push(...owners.filter((id) => /^[1-9]\d{0,9}$/.test(id)).slice(0, 1));
      const bits = isRecord(file) ? modeOf(file.mode) : undefined;
      const mode = bits !== undefined && { defaultMode: bits };
      this.#mount(target, isSecret ? { secret: { secretName: name, ...mode } } : { configMap: { name, ...mode } }, {
        subPath: key,
        readOnly: true,
      });
    }
  }

  #contentOf(source: Json | undefined, at: string): string | undefined {
    const entry = isRecord(source) ? source : {};
    const content = textOf(entry.content);
    if (content !== undefined) return content;
    const variable = textOf(entry.environment);
    const file = textOf(entry.file);
    const text =
      variable !== undefined
        ? this.#context.environment.get(variable)
        : file !== undefined
          ? this.#context.readFile(file)
          : undefined;
    if (text === undefined) this.#notes.add(at, "its content cannot be read: create a ConfigMap or Secret for it");
    return text;
  }

  /** It starts with the files of the image and outlives the container; each container of a scaled service has its own. */
  #addAnonymous(target: string, at: string): void {
    if (this.#isScaled) {
      const message = "becomes an emptyDir, which is removed with the pod and hides the files of the image";
      this.#notes.add(at, `is an anonymous volume of several containers: it ${message}`);
      return this.#mount(target, { emptyDir: {} }, {});
    }
    const claimName = `${this.#context.project}_${this.#containerName}-${toDnsLabel(target)}`;
    this.#notes.add(at, `is an anonymous volume: it has the name ${claimName}, and stays until docker volume rm`);
    this.#mount(target, { persistentVolumeClaim: { claimName } }, {});
  }

  #add(volume: JsonMap, at: string): void {
    const source = textOf(volume.source) ?? "";
    const target = textOf(volume.target) ?? "";
    const type = textOf(volume.type) ?? "volume";
    const { subpath, nocopy } = isRecord(volume.volume) ? volume.volume : {};
    const { propagation, selinux, create_host_path: isMade } = isRecord(volume.bind) ? volume.bind : {};
    if (selinux) this.#context.notes.add("volumes", SELINUX);
    const readOnly = isTrue(volume.read_only) && { readOnly: true };
    const extra = { ...readOnly, ...(textOf(subpath) !== undefined && { subPath: textOf(subpath) }) };
    if (type === "tmpfs") {
      const { size, mode } = isRecord(volume.tmpfs) ? volume.tmpfs : {};
      const bits = Number(textOf(mode) ?? 0) & 0o7777;
      const options = bits > 0 ? [`mode=0${bits.toString(8).padStart(3, "0")}`] : [];
      this.#addMemory(target, textOf(size), { ...readOnly }, options);
    } else if (type === "bind") {
      const spread = propagationOf(textOf(propagation), this.#isPrivileged, this.#notes, at);
      if (isMade !== undefined && !isTrue(isMade)) this.#notes.add(at, NOT_MADE);
      this.#mount(target, { hostPath: { path: source } }, { ...extra, ...spread });
    } else if (type === "image") {
      const inImage = isRecord(volume.image) ? textOf(volume.image.subpath) : undefined;
      this.#mount(target, { image: { reference: source } }, inImage === undefined ? {} : { subPath: inImage });
    } else if (type === "volume" && source !== "") {
      this.#mount(target, this.#claimOf(source), extra, isTrue(nocopy));
    } else if (type === "volume") this.#addAnonymous(target, at);
    else this.#notes.add(at, `volumes of type ${type} are not carried over`);
  }

  #claimOf(name: string): object {
    const declared = this.#context.volumes[name];
    const { name: ownName, isExternal } = ownNameOf(declared);
    const claimName = ownName ?? (isExternal ? name : `${this.#context.project}_${name}`);
    const driver = isRecord(declared) ? (textOf(declared.driver) ?? "local") : "local";
    const options = isRecord(declared) && isRecord(declared.driver_opts) ? declared.driver_opts : {};
    if (driver === "local" && Object.keys(options).length === 0) this.#context.claims.add(claimName);
    else {
      const source = driver === "local" ? this.#localSourceOf(options, name, claimName) : undefined;
      if (source) return source;
      const flags = [`--driver ${driver}`, ...Object.keys(options).map((key) => `--opt ${key}=…`), claimName];
      const message = `create it first, or it is an empty local volume: docker volume create ${flags.join(" ")}`;
      this.#context.notes.add(`volumes.${name}`, message);
    }
    return { persistentVolumeClaim: { claimName } };
  }

  /** A volume that Docker's local driver mounts with these options; undefined for what a pod cannot mount. */
  #localSourceOf(options: JsonMap, name: string, claimName: string): object | undefined {
    const { notes } = this.#context;
    const at = `volumes.${name}`;
    const [type = "", device = ""] = [textOf(options.type), textOf(options.device)];
    const words = (textOf(options.o) ?? "").split(",").filter((word) => word !== "" && word !== "rw");
    if (words.some((word) => /^r?bind$/.test(word)) && device !== "") {
      const others = words.filter((word) => !/^r?bind$/.test(word));
      if (others.length > 0) notes.add(at, `o=${others.join(",")} is not carried over: set readOnly at its mounts`);
      return { hostPath: { path: posix.resolve(this.#context.directory, device) } };
    }
    if (type === "tmpfs") {
      notes.add(at, "each pod has a volume in memory of its own");
      const size = words.find((word) => word.startsWith("size="))?.slice("size=".length);
      const sizeLimit = size === undefined ? undefined : toQuantity(size);
      const others = words.filter((word) => !word.startsWith("size="));
      if (others.length > 0) {
        notes.add(at, `o=${others.join(",")} is not carried over: set ${EMPTY_DIR_OPTIONS_ANNOTATION} of its pods`);
      }
      return { emptyDir: { medium: "Memory", ...(sizeLimit && { sizeLimit }) } };
    }
    if (!/^nfs4?$/.test(type)) return undefined;
    const [, host = "", path = ""] = /^([^/]*):(\/.*)$/.exec(device) ?? [];
    const server = words.find((word) => word.startsWith("addr="))?.slice("addr=".length) ?? host;
    if (server === "" || path === "") return undefined;
    const mountOptions = words.filter((word) => !/^(?:addr=.*|ro)$/.test(word));
    const nfs = { server, path, ...(words.includes("ro") && { readOnly: true }) };
    // The only options of a volume of a pod.
    if (mountOptions.every((word) => /^(?:nfs)?vers=4(?:\.1)?$/.test(word))) return { nfs };
    this.documents.push(...toBoundVolume(claimName, { nfs, mountOptions }));
    return { persistentVolumeClaim: { claimName: toDnsLabel(claimName) } };
  }
}

/** A PersistentVolume, and the claim that is bound to it. Their size is required and has no effect. */
function toBoundVolume(claimName: string, source: object): object[] {
  const name = toDnsLabel(claimName);
  const shared = { storageClassName: "", accessModes: ["ReadWriteMany"] };
  const capacity = { storage: "1Gi" };
  const volume = { ...shared, capacity, persistentVolumeReclaimPolicy: "Retain", ...source };
  return [
    { apiVersion: "v1", kind: "PersistentVolume", metadata: { name }, spec: volume },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name },
      spec: { ...shared, volumeName: name, resources: { requests: capacity } },
    },
  ];
}

/** A number as YAML has it, or a text of octal digits. */
const modeOf = (mode: Json | undefined): number | undefined =>
  typeof mode === "string" && /^[0-7]{1,4}$/.test(mode)
    ? Number.parseInt(mode, 8)
    : typeof mode === "number"
      ? mode
      : undefined;

/** Docker takes `/v/` and `/v` for one mount. */
const toPath = (target: string): string => posix.resolve("/", target);

/** An entry of `volumes` or `devices` as a map: `[source:]target[:options]`. */
export function partsOfVolume(volume: Json): JsonMap {
  if (isRecord(volume)) return volume;
  const parts = (textOf(volume) ?? "").split(":");
  const [source = "", target = "", options = ""] = parts.length > 1 ? parts : ["", ...parts];
  const words = options.split(",");
  return {
    type: source.startsWith("/") ? "bind" : "volume",
    source,
    target,
    read_only: words.includes("ro"),
    bind: {
      propagation: words.find((word) => /^r?(?:shared|slave|private)$/.test(word)) ?? null,
      selinux: words.some((word) => /^z$/i.test(word)),
    },
    volume: { nocopy: words.includes("nocopy") },
  };
}

/** The path in the container of an entry of `volumes`. */
export const targetOf = (volume: Json): string => toPath(textOf(partsOfVolume(volume).target) ?? "");

/** The path in the container of an entry of `configs` or `secrets`. */
export function fileTargetOf(kind: "configs" | "secrets", file: Json): string {
  const written = isRecord(file) ? (textOf(file.target) ?? textOf(file.source)) : textOf(file);
  return posix.resolve(kind === "configs" ? "/" : "/run/secrets", written ?? "");
}
