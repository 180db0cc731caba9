import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EmptyDirVolumeSource, HostPathVolumeSource, Pod } from "../../base/api/pod.ts";
import { PoolSlot } from "../../base/concurrency/pool-slot.ts";
import { type PoolThread, type TaskOptions, type TaskRequest, WorkerPool } from "../../base/concurrency/worker-pool.ts";
import { type ReplaceOptions, replaceFileAsync } from "../../base/files/replace-file.ts";
import { readTextIfExistsAsync, type TextFiles } from "../../base/files/text-files.ts";
import { type LogFiles, readLogAsync } from "../../base/host/log-directory.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { LogLinkTask, LogPlaces } from "../../docker/log-link-files.ts";
import type { PodFileSystem } from "../../kubelet/pod-effects.ts";
import { makeTerminationLogAsync, readTerminationLogAsync } from "../../kubelet/termination-log.ts";
import type { EmptyDirPlace } from "../../kubelet/volumes/empty-dir.ts";
import type { FileVolumeContent, FileVolumePlace } from "../../kubelet/volumes/file-volume.ts";
import { type HostFiles, listAllAsync } from "../../kubelet/volumes/host-files.ts";
import type { ImageVolumePlace, ImageVolumeState } from "../../kubelet/volumes/image-volume.ts";
import { ensureHostsFileAsync, type HostsFileRequest } from "../../kubelet/volumes/network-files.ts";
import type { FsGroupOptions } from "../../kubelet/volumes/ownership.ts";
import { PodDirectories } from "../../kubelet/volumes/pod-directories.ts";
import type { ReadManifestOptions } from "../../manifest/manifest-result.ts";
import type { FileIdentity } from "../../sources/manifest-files.ts";
import type { BackgroundTasks } from "./background-tasks.ts";

/** One access to a path; local disks answer within milliseconds. */
const ACCESS_TIMEOUT_MS = 10_000;
/** Several accesses, and two runs of mount(8). */
const BIND_TIMEOUT_MS = 30_000;
/** Millions of files. */
const TREE_TIMEOUT_MS = 600_000;
/** Longest time that one manifest may take. */
const PARSE_TIMEOUT_MS = 60_000;

/** Longest time that an exit waits for state files and links. */
const SETTLE_MS = 5_000;

/** Tasks below the root directory: they hang together. */
const ROOT_DISK: TaskOptions = { key: "root directory", timeoutMs: ACCESS_TIMEOUT_MS };
/** A machine may have many processes, and the kernel holds back their command lines while they wait for a disk. */
const PROCESSES: TaskOptions = { key: "processes", timeoutMs: ACCESS_TIMEOUT_MS };
const LOG_DISK: TaskOptions = { key: "log links", timeoutMs: ACCESS_TIMEOUT_MS };

/** Path of the entry point in the compiled executable; modules there have other paths than here. */
const COMPILED_ENTRY = "/$bunfs/root/daemon/background/background-worker.js";

/**
 * Work that may wait for a file system, or take long, in other threads: the kubelet's own thread never waits for it. What is
 * done for each start of a container is tried first on a thread of the runtime, through {@link PoolSlot}.
 */
export class BackgroundThreads implements HostFiles, PodFileSystem, LogFiles {
  readonly slot: PoolSlot;
  readonly #clock: Clock;
  readonly #pool: WorkerPool;

  constructor(clock: Clock, startThread: () => PoolThread = startWorker) {
    this.#clock = clock;
    this.slot = new PoolSlot(clock);
    this.#pool = new WorkerPool({ clock, startThread });
  }

  /** Resolves when every task has ended, or after a few seconds when one hangs: to be awaited before the process ends. */
  async settled(): Promise<void> {
    const all = this.slot.settled().then(() => this.#pool.settled());
    await Promise.race([all, this.#clock.sleep(SETTLE_MS)]);
  }

  /** Parses a text, for long ones. */
  readManifest(bytes: Uint8Array, options: ReadManifestOptions) {
    return this.#run("readManifest", [bytes, options], { key: `parse ${options.file}`, timeoutMs: PARSE_TIMEOUT_MS });
  }

  readManifests(path: string, known: ReadonlyMap<string, FileIdentity>) {
    return this.#run("readManifests", [path, known], { key: `read ${path}`, timeoutMs: ACCESS_TIMEOUT_MS });
  }

  /** As `replaceFile` of src/base/files, for files below the root directory. */
  async replaceFile(path: string, content: string | Uint8Array, options: ReplaceOptions): Promise<void> {
    const quick = await this.slot.attempt(() => replaceFileAsync(path, content, options), ACCESS_TIMEOUT_MS);
    if (!quick) await this.#run("replaceFile", [path, content, options], ROOT_DISK);
  }

  performLogLinkTask(places: LogPlaces, task: LogLinkTask) {
    return this.#run("performLogLinkTask", [places, task], LOG_DISK);
  }

  /** As `writeHostsFile` of src/kubelet/volumes. */
  async writeHostsFile(path: string, request: HostsFileRequest): Promise<void> {
    const isRight = await this.slot.attempt(() => ensureHostsFileAsync(path, request), ACCESS_TIMEOUT_MS);
    if (!isRight?.value) await this.#run("writeHostsFile", [path, request], ROOT_DISK);
  }

  async makeTerminationLog(path: string): Promise<void> {
    const quick = await this.slot.attempt(() => makeTerminationLogAsync(path), ACCESS_TIMEOUT_MS);
    if (!quick) await this.#run("makeTerminationLog", [path], ROOT_DISK);
  }

  async readTerminationLog(path: string): Promise<string | undefined> {
    const quick = await this.slot.attempt(() => readTerminationLogAsync(path), ACCESS_TIMEOUT_MS);
    return quick ? quick.value : await this.#run("readTerminationLog", [path], ROOT_DISK);
  }

  async removeFile(path: string): Promise<void> {
    const quick = await this.slot.attempt(() => rm(path, { force: true }), ACCESS_TIMEOUT_MS);
    if (!quick) await this.#run("removeFile", [path], ROOT_DISK);
  }

  async overwriteFile(path: string, text: string): Promise<void> {
    const quick = await this.slot.attempt(() => writeFile(path, text), ACCESS_TIMEOUT_MS);
    if (!quick) await this.#run("overwriteFile", [path, text], { key: "engine's files", timeoutMs: ACCESS_TIMEOUT_MS });
  }

  readText(path: string, maxBytes: number) {
    return this.#run("readText", [path, maxBytes], ROOT_DISK);
  }

  /** Text files of the administrator, anywhere on the host. */
  get textFiles(): TextFiles {
    return {
      readText: this.readTextIfExists.bind(this),
      readDirectory: (directory, extensions, maxBytes) =>
        this.#run("readDirectoryTexts", [directory, extensions, maxBytes], accessTo(directory)),
      replaceFile: this.replaceFile.bind(this),
    };
  }

  /** As `readTextIfExists` of src/base/files, anywhere on the host. */
  async readTextIfExists(path: string, maxBytes: number): Promise<string | undefined> {
    const quick = await this.slot.attempt(() => readTextIfExistsAsync(path, maxBytes), ACCESS_TIMEOUT_MS);
    return quick ? quick.value : await this.#run("readTextIfExists", [path, maxBytes], accessTo(path));
  }

  /** Decrypts and parses a text. */
  readEncryptedManifest(bytes: Uint8Array, how: ReadManifestOptions, identityFile: string) {
    const options = { key: `decrypt ${how.file}`, timeoutMs: PARSE_TIMEOUT_MS };
    return this.#run("readEncryptedManifest", [bytes, how, identityFile], options);
  }

  existsBeneath(directory: string, path: string) {
    return this.#run("existsBeneath", [directory, path], accessTo(directory));
  }

  /** Resolves when the disk of a directory below the root directory answers. @throws TaskTimeoutError; the system's error */
  probeDirectory(directory: string) {
    return this.#run("probeDirectory", [directory], ROOT_DISK);
  }

  findLog(root: string, relative: string) {
    return this.#run("findLog", [root, relative], accessTo(join(root, relative)));
  }

  async readLog(descriptor: number, position: number, length: number): Promise<Uint8Array> {
    const quick = await this.slot.attempt(() => readLogAsync(descriptor, position, length), ACCESS_TIMEOUT_MS);
    if (quick) return quick.value;
    const options = { key: `read log ${descriptor}`, timeoutMs: ACCESS_TIMEOUT_MS };
    return await this.#run("readLog", [descriptor, position, length], options);
  }

  findPortHolder(port: number) {
    return this.#run("findPortHolder", [port], PROCESSES);
  }

  findPortHolders(ports: readonly number[]) {
    return this.#run("findPortHolders", [ports], PROCESSES);
  }

  listProcesses(containers: Parameters<BackgroundTasks["listProcesses"]>[0]) {
    return this.#run("listProcesses", [containers], PROCESSES);
  }

  killExecProcesses(hostPid: number, containerId: string) {
    const options = { key: `kill ${hostPid}`, timeoutMs: ACCESS_TIMEOUT_MS };
    return this.#run("killExecProcesses", [hostPid, containerId], options);
  }

  /** A file of the administrator, anywhere on the host. */
  readBytes(path: string, maxBytes: number) {
    return this.#run("readBytes", [path, maxBytes], accessTo(path));
  }

  prepareHostPath(source: HostPathVolumeSource) {
    return this.#run("prepareHostPath", [source], accessTo(source.path));
  }

  isDirectory(path: string) {
    return this.#run("isDirectory", [path], accessTo(path));
  }

  bindSubPath(volumePath: string, subPath: string, target: string) {
    return this.#run("bindSubPath", [volumePath, subPath, target], {
      key: `bind ${target}`,
      timeoutMs: BIND_TIMEOUT_MS,
    });
  }

  resolveOwnSubPath(volumePath: string, subPath: string) {
    return this.#run("resolveOwnSubPath", [volumePath, subPath], ROOT_DISK);
  }

  makeMountPoint(directory: string, relative: string, isDirectory: boolean) {
    return this.#run("makeMountPoint", [directory, relative, isDirectory], ROOT_DISK);
  }

  applyFsGroup(directory: string, options: FsGroupOptions) {
    return this.#run("applyFsGroup", [directory, options], treeAt(directory));
  }

  removeTree(path: string) {
    return this.#run("removeTree", [path], treeAt(path));
  }

  async makePodDirectories(rootDir: string, uid: string): Promise<void> {
    const quick = await this.slot.attempt(() => new PodDirectories(rootDir, uid).createAsync(), ACCESS_TIMEOUT_MS);
    if (!quick) await this.#run("makePodDirectories", [rootDir, uid], ROOT_DISK);
  }

  makeDirectory(path: string) {
    return this.#run("makeDirectory", [path], ROOT_DISK);
  }

  async listAll(directories: readonly string[]): Promise<string[][]> {
    const quick = await this.slot.attempt(() => listAllAsync(directories), ACCESS_TIMEOUT_MS);
    return quick ? quick.value : await this.#run("listAll", [directories], ROOT_DISK);
  }

  prepareEmptyDir(source: EmptyDirVolumeSource, pod: Pod, place: EmptyDirPlace, canMount: boolean) {
    return this.#run("prepareEmptyDir", [source, pod, place, canMount], mountAt(place.directory));
  }

  writeVolumeState(stateDirectory: string, state: string) {
    return this.#run("writeVolumeState", [stateDirectory, state], ROOT_DISK);
  }

  writeFileVolume(place: FileVolumePlace, content: FileVolumeContent, canMount: boolean) {
    return this.#run("writeFileVolume", [place, content, canMount], mountAt(place.directory));
  }

  readImageState(place: ImageVolumePlace) {
    return this.#run("readImageState", [place], ROOT_DISK);
  }

  writeImageState(place: ImageVolumePlace, state: ImageVolumeState) {
    return this.#run("writeImageState", [place, state], ROOT_DISK);
  }

  prepareExtraction(directory: string) {
    return this.#run("prepareExtraction", [directory], treeAt(directory));
  }

  commitExtraction(fresh: string, directory: string) {
    return this.#run("commitExtraction", [fresh, directory], treeAt(directory));
  }

  readEnvFile(directory: string, path: string) {
    return this.#run("readEnvFile", [directory, path], ROOT_DISK);
  }

  #run<K extends keyof BackgroundTasks>(
    task: K,
    args: Parameters<BackgroundTasks[K]>,
    options: TaskOptions,
  ): Promise<Awaited<ReturnType<BackgroundTasks[K]>>> {
    return this.#pool.run(task, args, options);
  }
}

const accessTo = (path: string): TaskOptions => ({ key: `path ${path}`, timeoutMs: ACCESS_TIMEOUT_MS });
const treeAt = (path: string): TaskOptions => ({ key: `tree ${path}`, timeoutMs: TREE_TIMEOUT_MS });
/** mount(8) may take long on a busy machine: not with {@link ROOT_DISK}, whose tasks wait for each other. */
const mountAt = (path: string): TaskOptions => ({ key: `mount ${path}`, timeoutMs: BIND_TIMEOUT_MS });

function startWorker(): PoolThread {
  const isCompiled = import.meta.url.includes("/$bunfs/");
  const entry = isCompiled ? COMPILED_ENTRY : new URL("./background-worker.ts", import.meta.url).href;
  const worker = new Worker(entry, { smol: true });
  worker.unref();
  return {
    postMessage: (request: TaskRequest) => worker.postMessage(request),
    onResponse: (listener) => worker.addEventListener("message", ({ data }) => listener(data)),
    onError: (listener) => {
      worker.addEventListener("error", ({ message }) => listener(`a background thread failed: ${message}`));
      worker.addEventListener("close", () => listener("a background thread ended"));
    },
    terminate: () => void worker.terminate(),
  };
}
