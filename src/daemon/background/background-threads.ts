import { stat } from "node:fs/promises";
import { join } from "node:path";
import {
  FileSlot,
  type PoolThread,
  type TaskOptions,
  type TaskRequest,
  type Threaded,
  WorkerPool,
} from "../../base/concurrency/worker-pool.ts";
import type { TextFiles } from "../../base/files/whole-file.ts";
import type { Clock } from "../../base/model/clock.ts";
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

const access = (key: string): TaskOptions => ({ key, timeoutMs: ACCESS_TIMEOUT_MS });
const accessTo = (path: string) => access(`path ${path}`);
const treeAt = (path: string): TaskOptions => ({ key: `tree ${path}`, timeoutMs: TREE_TIMEOUT_MS });
/** mount(8) may take long on a busy machine: not with {@link ROOT_DISK}, whose tasks wait for each other. */
const mountAt = (path: string): TaskOptions => ({ key: `mount ${path}`, timeoutMs: BIND_TIMEOUT_MS });
const parse = (work: string, file: string): TaskOptions => ({ key: `${work} ${file}`, timeoutMs: PARSE_TIMEOUT_MS });

/** Tasks below the root directory: a disk that hangs delays all of them. */
const ROOT_DISK = access("root directory");
/** A machine may have many processes, and the kernel holds back their command lines while they wait for a disk. */
const PROCESSES = access("processes");

/** The resource that each task may hang on, and its deadline. */
const OPTIONS: {
  readonly [K in keyof BackgroundTasks]: TaskOptions | ((...args: Parameters<BackgroundTasks[K]>) => TaskOptions);
} = {
  readManifest: (_, { file }) => parse("parse", file),
  readEncryptedManifest: (_, { file }) => parse("decrypt", file),
  readManifests: (path) => access(`read ${path}`),
  replaceFile: ROOT_DISK,
  probeDirectory: ROOT_DISK,
  performLogLinkTask: access("log links"),
  readBytes: accessTo,
  existsBeneath: accessTo,
  readDirectoryTexts: accessTo,
  findLog: (root, relative) => accessTo(join(root, relative)),
  readLog: (descriptor) => access(`read log ${descriptor}`),
  findPortHolder: PROCESSES,
  findPortHolders: PROCESSES,
  listProcesses: PROCESSES,
  killExecProcesses: (hostPid) => access(`kill ${hostPid}`),
  prepareHostPath: ({ path }) => accessTo(path),
  isDirectory: accessTo,
  bindSubPath: (_volume, _subPath, target) => ({ key: `bind ${target}`, timeoutMs: BIND_TIMEOUT_MS }),
  resolveOwnSubPath: ROOT_DISK,
  makeMountPoint: ROOT_DISK,
  applyFsGroup: treeAt,
  applyEmptyDirOptions: treeAt,
  removeTrees: ([first = ""]) => treeAt(first),
  makePodDirectories: ROOT_DISK,
  makeDirectory: ROOT_DISK,
  listAll: ROOT_DISK,
  prepareEmptyDir: (_source, _pod, { directory }) => mountAt(directory),
  writeVolumeState: ROOT_DISK,
  writeFileVolume: ({ directory }) => mountAt(directory),
  readImageState: ROOT_DISK,
  writeImageState: ROOT_DISK,
  prepareExtraction: treeAt,
  commitExtraction: (_fresh, directory) => treeAt(directory),
  readEnvFile: ROOT_DISK,
  writeHostsFile: ROOT_DISK,
  writeHostsFiles: ROOT_DISK,
  makeTerminationLog: ROOT_DISK,
  readTerminationLog: ROOT_DISK,
  removeFile: ROOT_DISK,
  overwriteFile: access("engine's files"),
  readText: ROOT_DISK,
  readTextIfExists: accessTo,
};

/** Path of the entry point in the compiled executable; modules there have other paths than here. */
const COMPILED_ENTRY = "/$bunfs/root/daemon/background/background-worker.js";

/** Work that may wait for a file system, or take long, in other threads: the kubelet's own thread never waits for it. */
export class BackgroundThreads {
  /** The functions of `background-tasks.ts`. Each rejects with a TaskTimeoutError at its deadline. */
  readonly tasks: Threaded<BackgroundTasks>;
  /** Quick calls that are not worth a thread of their own. */
  readonly slot: FileSlot;
  /** As {@link textFiles}, for the few files that are read again every few seconds: no thread starts for an unchanged one. */
  readonly repeatedFiles: TextFiles;
  readonly #clock: Clock;
  readonly #pool: WorkerPool;

  constructor(clock: Clock, startThread: () => PoolThread = startWorker) {
    this.#clock = clock;
    this.slot = new FileSlot(clock);
    this.#pool = new WorkerPool({ clock, startThread });
    const tasks = Object.entries(OPTIONS).map(([task, options]) => {
      const optionsFor = options as TaskOptions | ((...args: unknown[]) => TaskOptions);
      const run = (...args: unknown[]) =>
        this.#pool.run(task, args, typeof optionsFor === "function" ? optionsFor(...args) : optionsFor);
      return [task, run] as const;
    });
    this.tasks = Object.fromEntries(tasks) as unknown as Threaded<BackgroundTasks>;
    const unchanged = new UnchangedTexts(this.textFiles, this.slot);
    this.repeatedFiles = { ...this.textFiles, readText: (path, maxBytes) => unchanged.read(path, maxBytes) };
  }

  /** Text files of the administrator, anywhere on the host. */
  get textFiles(): TextFiles {
    const { readTextIfExists, readDirectoryTexts, replaceFile } = this.tasks;
    return { readText: readTextIfExists, readDirectory: readDirectoryTexts, replaceFile };
  }

  /** Resolves when every task has ended, or after a few seconds when one hangs: to be awaited before the process ends. */
  async settled(): Promise<void> {
    await Promise.race([this.#pool.settled(), this.#clock.sleep(SETTLE_MS)]);
  }
}

/** Local disks answer within milliseconds; a longer check is left to a thread. */
const CHECK_TIMEOUT_MS = 1_000;

/** Texts of files, read again when a file is another one or has changed. */
class UnchangedTexts {
  readonly #files: Pick<TextFiles, "readText">;
  readonly #slot: FileSlot;
  readonly #known = new Map<string, { state: string; text: string | undefined }>();

  constructor(files: Pick<TextFiles, "readText">, slot: FileSlot) {
    this.#files = files;
    this.#slot = slot;
  }

  async read(path: string, maxBytes: number): Promise<string | undefined> {
    const state = await this.#slot.run(() => readState(path), CHECK_TIMEOUT_MS).catch(() => undefined);
    const known = this.#known.get(path);
    if (known && known.state === state) return known.text;
    this.#known.delete(path);
    const text = await this.#files.readText(path, maxBytes);
    if (state !== undefined) this.#known.set(path, { state, text });
    return text;
  }
}

/** Distinguishes two states of a file without reading it. */
async function readState(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join();
}

function startWorker(): PoolThread {
  const isCompiled = import.meta.url.includes("/$bunfs/");
  const entry = isCompiled ? COMPILED_ENTRY : new URL("./background-worker.ts", import.meta.url).href;
  const worker = new Worker(entry, { smol: true });
  worker.unref();
  return {
    // Bun shares the texts of a flat object with the other thread, and copies those of any other: one message for each argument.
    postMessage: ({ args, ...request }: TaskRequest) => {
      for (const part of [{ ...request, count: args.length }, ...args]) worker.postMessage(part);
    },
    // Bun takes messages before timers: responses that lead to further requests would hold all timers back.
    onResponse: (listener) => worker.addEventListener("message", ({ data }) => setImmediate(listener, data)),
    onError: (listener) => {
      worker.addEventListener("error", ({ message }) => listener(`a background thread failed: ${message}`));
      worker.addEventListener("close", () => listener("a background thread ended"));
    },
    terminate: () => void worker.terminate(),
  };
}
