import type { HostPathVolumeSource } from "../../api/pod.ts";
import { type PoolThread, type TaskOptions, type TaskRequest, WorkerPool } from "../../concurrency/worker-pool.ts";
import type { ReadManifestOptions } from "../../manifest/manifest-result.ts";
import type { Clock } from "../../model/clock.ts";
import type { FileIdentity } from "../../sources/manifest-files.ts";
import type { HostFiles } from "../../volumes/host-files.ts";
import type { FsGroupOptions } from "../../volumes/ownership.ts";
import type { BackgroundTasks } from "./background-tasks.ts";

/** A look at a path; local disks answer within milliseconds. */
const LOOK_TIMEOUT_MS = 10_000;
/** Several looks, and two runs of mount(8). */
const BIND_TIMEOUT_MS = 30_000;
/** Millions of files. */
const TREE_TIMEOUT_MS = 600_000;
/** Longest time that one manifest may take. */
const PARSE_TIMEOUT_MS = 60_000;

/** Where the entry point lies in the compiled executable; modules there have other paths than here. */
const COMPILED_ENTRY = "/$bunfs/root/app/background/background-worker.js";

/** Work that may wait for a file system, or take long, in other threads: the kubelet's own thread never waits for it. */
export class BackgroundThreads implements HostFiles {
  readonly #pool: WorkerPool;

  constructor(clock: Clock, startThread: () => PoolThread = startWorker) {
    this.#pool = new WorkerPool({ clock, startThread });
  }

  /** Parses a text, for long ones. */
  readManifest(bytes: Uint8Array, options: ReadManifestOptions) {
    return this.#run("readManifest", [bytes, options], { key: `parse ${options.file}`, timeoutMs: PARSE_TIMEOUT_MS });
  }

  readManifests(path: string, known: ReadonlyMap<string, FileIdentity>) {
    return this.#run("readManifests", [path, known], { key: `read ${path}`, timeoutMs: LOOK_TIMEOUT_MS });
  }

  prepareHostPath(source: HostPathVolumeSource) {
    return this.#run("prepareHostPath", [source], { key: `look ${source.path}`, timeoutMs: LOOK_TIMEOUT_MS });
  }

  isDirectory(path: string) {
    return this.#run("isDirectory", [path], { key: `look ${path}`, timeoutMs: LOOK_TIMEOUT_MS });
  }

  bindSubPath(volumePath: string, subPath: string, target: string) {
    return this.#run("bindSubPath", [volumePath, subPath, target], {
      key: `bind ${target}`,
      timeoutMs: BIND_TIMEOUT_MS,
    });
  }

  applyFsGroup(directory: string, options: FsGroupOptions) {
    return this.#run("applyFsGroup", [directory, options], { key: `tree ${directory}`, timeoutMs: TREE_TIMEOUT_MS });
  }

  removeTree(path: string) {
    return this.#run("removeTree", [path], { key: `tree ${path}`, timeoutMs: TREE_TIMEOUT_MS });
  }

  #run<K extends keyof BackgroundTasks>(
    task: K,
    args: Parameters<BackgroundTasks[K]>,
    options: TaskOptions,
  ): Promise<Awaited<ReturnType<BackgroundTasks[K]>>> {
    return this.#pool.run(task, args, options);
  }
}

function startWorker(): PoolThread {
  const isCompiled = import.meta.url.includes("/$bunfs/");
  const entry = isCompiled ? COMPILED_ENTRY : new URL("./background-worker.ts", import.meta.url).href;
  const worker = new Worker(entry, { smol: true });
  worker.unref();
  return {
    postMessage: (request: TaskRequest) => worker.postMessage(request),
    onAnswer: (listener) => worker.addEventListener("message", ({ data }) => listener(data)),
    onError: (listener) => {
      worker.addEventListener("error", ({ message }) => listener(`a background thread failed: ${message}`));
      worker.addEventListener("close", () => listener("a background thread ended"));
    },
    terminate: () => void worker.terminate(),
  };
}
