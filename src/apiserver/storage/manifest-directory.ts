import { createHash } from "node:crypto";
import { readdirSync, rmdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { prepareFile, readBoundedBytes, readTextIfReadable, sync } from "../../base/files/whole-file.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { isRecord } from "../../base/text/json.ts";
import { readPlainObjects } from "../../manifest/plain-objects.ts";
import { internalError } from "../api-error.ts";
import { MAX_BODY_BYTES } from "../api-request.ts";
import { withoutEphemeralContainers } from "../kinds/pod-kind.ts";
import type { ApiMetadata, ApiObject } from "../object-store.ts";
import {
  isKept,
  type ReadOptions,
  type ResourceDefinition,
  type ResourceRegistry,
  resourceId,
  type StoredObject,
} from "../resource-definition.ts";

/** The object in one file. */
export interface StoredFile extends StoredObject {
  path: string;
}

/** Result of reading the directory once. */
interface DirectoryContents {
  files: StoredFile[];
  /** Files without a usable object, with the reason. */
  unreadable: { path: string; problem: string }[];
  /** Names of the directories: namespaces. */
  namespaces: string[];
}

interface ManifestDirectoryDeps {
  rootDir: string;
  registry: ResourceRegistry;
  logger: Logger;
  readOptions: ReadOptions;
}

/** The part of an object that is kept in a file of its own, not in the readable manifest. */
interface Sidecar {
  generation?: number;
  managedFields?: unknown;
  status?: unknown;
}

/** Objects with more values are written as JSON, which is YAML too: in a tenth of the time. */
const MAX_YAML_LINES = 2_000;

/** A text is read again only when one of these has changed. */
interface KnownText {
  fileVersion: string;
  outcome: { file: StoredFile } | { problem: string };
}

/**
 * Submitted objects as readable files: `<root-dir>/manifests/<namespace>/<kind>-<name>.yaml`. Fields that people do not
 * edit (managedFields, the status of workloads) are in `<root-dir>/state/api/`; losing that directory loses no object.
 */
export class ManifestDirectory {
  readonly path: string;
  readonly #sidecars: string;
  readonly #deps: ManifestDirectoryDeps;
  readonly #known = new Map<string, KnownText>();
  /** The file of each object, by resource and key: a file written by hand may have any name. */
  readonly #paths = new Map<string, string>();

  /** Writes a value as YAML; undefined until it is loaded: JSON is written, which is YAML too. */
  #toYaml: ((value: unknown) => string) | undefined;

  constructor(deps: ManifestDirectoryDeps) {
    this.#deps = deps;
    this.path = join(deps.rootDir, "manifests");
    this.#sidecars = join(deps.rootDir, "state", "api");
  }

  async loadYaml(): Promise<void> {
    this.#toYaml = (await import("../../base/text/write-yaml.ts")).writeYaml;
  }

  /** Where an object is kept, or will be. */
  pathOf(definition: ResourceDefinition, { namespace, name }: Pick<ApiMetadata, "namespace" | "name">): string {
    const known = this.#paths.get(pathKey(definition, namespace, name));
    if (known !== undefined) return known;
    return join(this.path, namespace ?? "", `${definition.kind.toLowerCase()}-${name}.yaml`);
  }

  save(definition: ResourceDefinition, object: ApiObject): void {
    const { metadata } = object;
    // A pod that is going must not be created again at the next start.
    if (definition.gracefulDeletion && metadata.deletionTimestamp) return this.remove(definition, object);
    const path = this.pathOf(definition, metadata);
    const { text, sidecar } = this.#split(definition, object);
    const before = this.#known.get(path);
    const sidecarPath = this.#sidecarOf(definition, metadata);
    const sidecarText = JSON.stringify({ uid: metadata.uid, ...sidecar });
    const changes: [path: string, text: string][] = [];
    // The manifest comes last: what is refused must not be in it.
    if (textAt(sidecarPath) !== sidecarText) changes.push([sidecarPath, sidecarText]);
    if (!before || before.fileVersion === "" || textAt(path) !== text) changes.push([path, text]);
    writeFilesAtomically(changes);
    this.#paths.set(pathKey(definition, metadata.namespace, metadata.name), path);
    this.#known.set(path, { fileVersion: fileVersionOf(path), outcome: { file: { path, definition, object } } });
  }

  remove(definition: ResourceDefinition, { metadata }: ApiObject): void {
    const path = this.pathOf(definition, metadata);
    rmSync(path, { force: true });
    rmSync(this.#sidecarOf(definition, metadata), { force: true });
    this.#paths.delete(pathKey(definition, metadata.namespace, metadata.name));
    this.#known.delete(path);
    // An object that is deleted does not return after a power cut.
    syncIfThere(dirname(path));
    if (definition.plural !== "namespaces") return;
    try {
      rmdirSync(join(this.path, metadata.name));
    } catch {
      // The directory contains files that are not objects.
    }
  }

  /** Whether a file is as it was read or written last, so that an event about it brings no news. */
  isKnown(path: string): boolean {
    // Hidden files, and those that are not complete.
    if (basename(path).startsWith(".") || path.endsWith(".tmp")) return true;
    const known = this.#known.get(path);
    return known !== undefined && known.fileVersion === fileVersionOf(path);
  }

  /** Reads the existing files; unchanged texts are not read again. Never throws. */
  read(): DirectoryContents {
    const contents: DirectoryContents = { files: [], unreadable: [], namespaces: [] };
    for (const entry of this.#list(this.path, contents)) {
      if (entry.isDirectory()) {
        contents.namespaces.push(entry.name);
        const directory = join(this.path, entry.name);
        for (const file of this.#list(directory, contents))
          this.#readFile(join(directory, file.name), entry.name, contents);
      } else this.#readFile(join(this.path, entry.name), undefined, contents);
    }
    const seen = new Set([...contents.files, ...contents.unreadable].map(({ path }) => path));
    for (const path of this.#known.keys()) if (!seen.has(path)) this.#known.delete(path);
    this.#paths.clear();
    for (const { path, definition, object } of contents.files) {
      this.#paths.set(pathKey(definition, object.metadata.namespace, object.metadata.name), path);
    }
    return contents;
  }

  #list(directory: string, contents: DirectoryContents) {
    try {
      return readdirSync(directory, { withFileTypes: true })
        .filter((entry) => !entry.name.startsWith("."))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT") contents.unreadable.push({ path: directory, problem: message });
      return [];
    }
  }

  #readFile(path: string, namespace: string | undefined, contents: DirectoryContents): void {
    if (!/\.(ya?ml|json)$/.test(path)) return;
    const fileVersion = fileVersionOf(path);
    let known = this.#known.get(path);
    if (!known || known.fileVersion !== fileVersion || fileVersion === "") {
      known = { fileVersion, outcome: this.#parse(path, namespace) };
      this.#known.set(path, known);
    }
    if ("file" in known.outcome) contents.files.push(known.outcome.file);
    else contents.unreadable.push({ path, problem: known.outcome.problem });
  }

  #parse(path: string, namespace: string | undefined): KnownText["outcome"] {
    let parsed: ReturnType<typeof parseManifestObject>;
    try {
      parsed = parseManifestObject(readBoundedBytes(path, MAX_BODY_BYTES));
    } catch (error) {
      return { problem: (error as Error).message };
    }
    if ("problem" in parsed) return parsed;
    const { object } = parsed;
    const definition = this.#deps.registry.findKind(object.apiVersion, object.kind);
    if (!definition || !isKept(definition))
      return { problem: `${object.kind} of ${object.apiVersion} is not kept here` };
    if (definition.namespaced !== (namespace !== undefined)) {
      return {
        problem: `${object.kind} belongs ${definition.namespaced ? "into the directory of its namespace" : "above the namespaces"}`,
      };
    }
    const found = object.metadata.namespace;
    if (namespace !== undefined && found !== undefined && found !== namespace) {
      return { problem: `metadata.namespace is "${found}", but the file is in the directory of "${namespace}"` };
    }
    return this.#complete(path, definition, object, namespace);
  }

  /** Adds the fields that a file written by hand lacks, and those of the sidecar file. */
  #complete(
    path: string,
    definition: ResourceDefinition,
    object: ApiObject,
    namespace: string | undefined,
  ): KnownText["outcome"] {
    const metadata: ApiMetadata = { ...object.metadata, ...(namespace !== undefined && { namespace }) };
    metadata.uid ??= uidOf(`${path}\n${metadata.name}`);
    metadata.creationTimestamp ??= toApiTime(new Date(statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0));
    const { generation, managedFields, status } = this.#readSidecar(definition, metadata);
    if (generation !== undefined) metadata.generation = generation;
    if (Array.isArray(managedFields)) metadata.managedFields = managedFields;
    const whole: ApiObject = { ...object, metadata, ...(status !== undefined && { status }) };
    const decoded = definition.decode?.(whole, this.#deps.readOptions);
    const [cause] = decoded?.causes ?? [];
    if (cause) return { problem: `${cause.field ? `${cause.field}: ` : ""}${cause.message ?? "is not valid"}` };
    return { file: { path, definition, object: decoded?.object ?? whole } };
  }

  #split(definition: ResourceDefinition, whole: ApiObject): { text: string; sidecar: Sidecar } {
    const { status, ...object } = withoutEphemeralContainers(whole);
    const { managedFields, resourceVersion: _version, generation, ...metadata } = object.metadata;
    const written = { ...object, metadata };
    const json = `${JSON.stringify(written, null, 2)}\n`;
    const isLong = json.length > MAX_YAML_LINES && json.split("\n", MAX_YAML_LINES).length === MAX_YAML_LINES;
    const text = isLong ? json : (this.#toYaml?.(written) ?? json);
    return {
      text,
      sidecar: {
        ...(generation !== undefined && { generation }),
        ...(managedFields !== undefined && { managedFields }),
        // That of a pod is what its containers are.
        ...(status !== undefined && !definition.gracefulDeletion && { status }),
      },
    };
  }

  #sidecarOf(definition: ResourceDefinition, { namespace, name }: Pick<ApiMetadata, "namespace" | "name">): string {
    return join(this.#sidecars, resourceId(definition), `${namespace ?? ""}_${name}.json`);
  }

  /** The sidecar of an object; empty if it belongs to another object of that name. */
  #readSidecar(definition: ResourceDefinition, metadata: ApiMetadata): Sidecar {
    const text = textAt(this.#sidecarOf(definition, metadata));
    if (text === undefined) return {};
    try {
      const value: unknown = JSON.parse(text);
      return isRecord(value) && value.uid === metadata.uid ? (value as Sidecar) : {};
    } catch {
      this.#deps.logger.warn(`State file of ${definition.kind} "${metadata.name}" is damaged: ignoring it`);
      return {};
    }
  }
}

const pathKey = (definition: ResourceDefinition, namespace: string | undefined, name: string) =>
  `${resourceId(definition)} ${namespace ?? ""}/${name}`;

const textAt = (path: string): string | undefined => readTextIfReadable(path, MAX_BODY_BYTES);

/** Changes with every write of the file; "" when there is none. */
function fileVersionOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat ? `${stat.ino} ${stat.size} ${stat.mtimeNs}` : "";
}

/** A UUID that the same file always gets. */
function uidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

/**
 * The one object of a manifest file, YAML or JSON.
 * @returns what is wrong with the text as `problem`, with line and column
 */
function parseManifestObject(bytes: Uint8Array): { object: ApiObject } | { problem: string } {
  const read = readPlainObjects(bytes);
  if ("problem" in read) {
    const { line = 1, column = 1, message } = read.problem;
    return { problem: `${line}:${column}: ${message}` };
  }
  const [object] = read.objects;
  if (!object || read.objects.length > 1) {
    return { problem: `1:1: the file must hold one object (found ${read.objects.length})` };
  }
  if (typeof object.apiVersion !== "string") return { problem: "1:1: an object has apiVersion and kind" };
  if (typeof object.metadata.name !== "string") return { problem: "1:1: metadata.name is required" };
  return { object: object as ApiObject };
}

/**
 * Replaces files one after the other, in this order, once the new content of all of them is on the disk: a full disk
 * changes none. After a crash each is the old one or the new one. Mode 0600, directories 0700.
 * @throws Error of the file system
 */
function writeFilesAtomically(changes: readonly (readonly [path: string, text: string])[]): void {
  const prepared: ReturnType<typeof prepareFile>[] = [];
  try {
    for (const [path, text] of changes) prepared.push(prepareFile(path, text, { durable: true, directoryMode: 0o700 }));
    for (const file of prepared) file.commit();
    for (const directory of new Set(changes.map(([path]) => dirname(path)))) sync(directory);
  } catch (error) {
    for (const file of prepared) file.discard();
    throw error;
  }
}

/** As {@link sync}; a directory that has gone keeps no names. */
function syncIfThere(directory: string): void {
  try {
    sync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** A disk that answered this recently is not probed again. */
const FRESH_MS = 50;

interface DiskCheckDeps {
  directory: string;
  tasks: {
    /** Resolves when the disk of the directory answers. @throws TaskTimeoutError when it does not, in time */
    probeDirectory(directory: string): Promise<void>;
  };
  clock: Clock;
}

/**
 * Probes the disk before objects are written: they are written in the thread that supervises pods, so that a request runs
 * to its end undisturbed, and a disk that hangs would stop that thread.
 */
export class DiskCheck {
  readonly #deps: DiskCheckDeps;
  #answeredMs = Number.NEGATIVE_INFINITY;

  constructor(deps: DiskCheckDeps) {
    this.#deps = deps;
  }

  /** @throws ApiError 500 when the disk does not answer in time */
  async wait(): Promise<void> {
    const { clock, directory, tasks } = this.#deps;
    if (clock.monotonicMs() - this.#answeredMs < FRESH_MS) return;
    try {
      await tasks.probeDirectory(directory);
      this.#answeredMs = clock.monotonicMs();
    } catch (error) {
      // Other failures are reported by the write itself.
      if ((error as Error).name !== "TaskTimeoutError") return;
      throw internalError("the disk of the root directory does not answer: nothing was changed, and pods keep running");
    }
  }
}
