import { posix } from "node:path";
import { isRecord, type Json } from "../../base/text/json.ts";
import { toQuantity } from "./compose-text.ts";
import type { DeviceType } from "./docker-volumes.ts";
import { type ImportNotes, textOf, textsOf, toDnsLabel } from "./import-notes.ts";

/** Definitions that the volumes of services refer to. */
export interface VolumeContext {
  project: string;
  /** Base of relative paths; absolute. */
  directory: string;
  /** `volumes`, `configs` and `secrets` of the file. */
  volumes: { readonly [name: string]: Json };
  configs: { readonly [name: string]: Json };
  secrets: { readonly [name: string]: Json };
  /** @returns undefined when the file cannot be read */
  readFile(path: string): string | undefined;
  environment: ReadonlyMap<string, string>;
  deviceType: DeviceType;
}

/** Volumes of one pod, with the documents they need. */
export class ComposeVolumes {
  readonly volumes: object[] = [];
  readonly mounts: object[] = [];
  readonly documents: object[] = [];
  /** Docker volumes that the pod uses by name. */
  readonly claims = new Set<string>();
  readonly #names = new Set<string>();
  readonly #context: VolumeContext;
  readonly #notes: ImportNotes;
  readonly #podName: string;

  constructor(podName: string, context: VolumeContext, notes: ImportNotes) {
    this.#podName = podName;
    this.#context = context;
    this.#notes = notes;
  }

  /** `volumes` of the service. */
  addVolumes(volumes: Json, path: string): void {
    const entries: readonly Json[] = Array.isArray(volumes) ? volumes : [];
    for (const [index, volume] of entries.entries()) {
      const at = `${path}.volumes[${index}]`;
      if (isRecord(volume)) this.#addLong(volume, at);
      else this.#addShort(textOf(volume) ?? "", at);
    }
  }

  /** `tmpfs` of the service. */
  addTmpfs(tmpfs: Json, path: string): void {
    for (const entry of textsOf(tmpfs)) {
      const [target = "", options = ""] = entry.split(":");
      const words = options.split(",").filter((word) => word !== "" && word !== "rw");
      const size = words.find((word) => word.startsWith("size="))?.slice("size=".length);
      const others = words.filter((word) => !word.startsWith("size="));
      if (others.length > 0) this.#notes.add(`${path}.tmpfs`, `${others.join(",")} is not carried over: only size is`);
      this.addMemory(target, size);
    }
  }

  /** @param size a Compose size, e.g. `64m` */
  addMemory(target: string, size?: string): void {
    const sizeLimit = size === undefined ? undefined : toQuantity(size);
    this.#mount(target, { emptyDir: { medium: "Memory", ...(sizeLimit && { sizeLimit }) } }, {});
  }

  /** `devices` of the service. */
  addDevices(devices: Json, path: string): void {
    for (const [index, device] of textsOf(devices ?? []).entries()) {
      const [source = "", target = source, permissions = "rwm"] = device.split(":");
      if (!source.startsWith("/dev/"))
        this.#notes.add(`${path}.devices[${index}]`, "is not a device file and is not carried over");
      else
        this.#mount(
          target,
          { hostPath: { path: source, type: this.#context.deviceType(source) ?? "CharDevice" } },
          permissions.includes("w") ? {} : { readOnly: true },
        );
    }
  }

  /** `configs` and `secrets` of the service. */
  addFiles(kind: "configs" | "secrets", files: Json, path: string): void {
    for (const [index, file] of (Array.isArray(files) ? files : []).entries()) {
      const at = `${path}.${kind}[${index}]`;
      const source = isRecord(file) ? (textOf(file.source) ?? "") : (textOf(file) ?? "");
      const fallback = kind === "configs" ? `/${source}` : `/run/secrets/${source}`;
      const written = isRecord(file) ? textOf(file.target) : undefined;
      const target = written === undefined ? fallback : written.startsWith("/") ? written : `/run/secrets/${written}`;
      const text = this.#contentOf(this.#context[kind][source], at);
      if (text === undefined) continue;
      const name = toDnsLabel(`${this.#podName}-${source}`);
      const key = posix.basename(target).replace(/[^-._a-zA-Z0-9]/g, "-");
      const isSecret = kind === "secrets";
      this.documents.push({
        apiVersion: "v1",
        kind: isSecret ? "Secret" : "ConfigMap",
        metadata: { name },
        ...(isSecret ? { stringData: { [key]: text } } : { data: { [key]: text } }),
      });
      this.#mount(target, isSecret ? { secret: { secretName: name } } : { configMap: { name } }, {
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
          ? this.#context.readFile(this.#absolute(file))
          : undefined;
    if (text === undefined) this.#notes.add(at, "its content cannot be read: create a ConfigMap or Secret for it");
    return text;
  }

  #absolute = (path: string): string =>
    posix.resolve(this.#context.directory, path.replace(/^~(?=\/|$)/, this.#context.environment.get("HOME") ?? "~"));

  #addShort(text: string, at: string): void {
    const parts = text.split(":");
    if (parts.length === 1) {
      this.#notes.add(at, "is an anonymous volume: it becomes an emptyDir, which is removed with the pod");
      return this.#mount(text, { emptyDir: {} }, {});
    }
    const [source = "", target = "", options = ""] = parts;
    const readOnly = options.split(",").includes("ro");
    this.#mount(target, this.#sourceOf(source), readOnly ? { readOnly: true } : {});
  }

  #addLong(volume: { readonly [key: string]: Json }, at: string): void {
    const source = textOf(volume.source) ?? "";
    const target = textOf(volume.target) ?? "";
    const type = textOf(volume.type) ?? "volume";
    const subPath = isRecord(volume.volume) ? textOf(volume.volume.subpath) : undefined;
    const extra = { ...(volume.read_only === true && { readOnly: true }), ...(subPath !== undefined && { subPath }) };
    if (type === "tmpfs") {
      this.addMemory(target, isRecord(volume.tmpfs) ? textOf(volume.tmpfs.size) : undefined);
    } else if (type === "bind") this.#mount(target, { hostPath: { path: this.#absolute(source) } }, extra);
    else if (type === "volume" && source !== "") this.#mount(target, this.#claimOf(source), extra);
    else if (type === "volume") this.#addShort(target, at);
    else this.#notes.add(at, `volumes of type ${type} are not carried over`);
  }

  #sourceOf(source: string): object {
    return /^[./~]/.test(source) ? { hostPath: { path: this.#absolute(source) } } : this.#claimOf(source);
  }

  #claimOf(name: string): object {
    const declared = this.#context.volumes[name];
    const own = isRecord(declared) ? textOf(declared.name) : undefined;
    const isExternal = isRecord(declared) && declared.external === true;
    const claimName = own ?? (isExternal ? name : `${this.#context.project}_${name}`);
    this.claims.add(claimName);
    return { persistentVolumeClaim: { claimName } };
  }

  #mount(target: string, source: object, extra: object): void {
    const base = toDnsLabel(target);
    let name = base;
    for (let count = 2; this.#names.has(name); count++) name = `${base.slice(0, 58)}-${count}`;
    this.#names.add(name);
    this.volumes.push({ name, ...source });
    this.mounts.push({ name, mountPath: target, ...extra });
  }
}
