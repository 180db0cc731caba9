import { constants } from "node:fs";
import type { SeededRandom } from "./seeded-random.ts";

type Kind = "file" | "directory" | "link";

/** A change that a power cut may undo: unless it was synced, it may be there or not. */
interface Unsynced {
  atMs: number;
  undo: () => void;
}

class Inode {
  readonly ino: number;
  readonly kind: Kind;
  mode: number;
  /** File system. */
  device = 1;
  links = 1;
  mtimeMs: number;
  ctimeMs: number;
  data: Uint8Array = EMPTY;
  target = "";
  readonly entries = new Map<string, Inode>();
  parent: Inode | undefined;
  name = "";
  /** Contents that a power cut leaves for sure; undefined: none. */
  synced: Uint8Array | undefined;
  writtenAtMs = 0;
  isUnsynced = false;
  watchers: Set<Watcher> | undefined;

  constructor(ino: number, kind: Kind, mode: number, nowMs: number) {
    this.ino = ino;
    this.kind = kind;
    this.mode = mode;
    this.mtimeMs = nowMs;
    this.ctimeMs = nowMs;
  }
}

const EMPTY = new Uint8Array();
const TYPE_BITS: Record<Kind, number> = { file: 0o100000, directory: 0o040000, link: 0o120000 };
const O_PATH = 0o10000000;
/** After this time the kernel has written contents, and the names of files, alone. */
const WRITEBACK_MS = 30_000;
const JOURNAL_MS = 5_000;
/** Changes that are looked at again, whether a power cut may still undo them. */
const MAX_RECENT = 256;
const MAX_PATHS = 4096;

/** Where cgroups are mounted. */
export const CGROUPS = "/sys/fs/cgroup/";
const CGROUP_FILES = [
  "cgroup.procs",
  "cpu.cfs_period_us",
  "cpu.cfs_quota_us",
  "cpu.shares",
  "memory.limit_in_bytes",
  "memory.use_hierarchy",
  "pids.max",
];

/** Its files go with it, other cgroups in it do not. */
const isEmptyCgroup = (path: string, { entries }: Inode) =>
  path.startsWith(CGROUPS) && ![...entries.values()].some(({ kind }) => kind === "directory");

/** The kind of a file, as its directory tells it. */
class FileKind {
  protected readonly inode: Inode;

  constructor(inode: Inode) {
    this.inode = inode;
  }

  isFile(): boolean {
    return this.inode.kind === "file";
  }

  isDirectory(): boolean {
    return this.inode.kind === "directory";
  }

  isSymbolicLink(): boolean {
    return this.inode.kind === "link";
  }
}

/** Kinds that no file here has. */
const OTHER_KINDS = ["isFIFO", "isSocket", "isBlockDevice", "isCharacterDevice"] as const;
Object.assign(FileKind.prototype, Object.fromEntries(OTHER_KINDS.map((name) => [name, () => false])));

const sizeOf = ({ kind, target, data }: Inode) => (kind === "link" ? target.length : data.length);

class Stats extends FileKind {
  readonly dev = this.inode.device;
  readonly ino = this.inode.ino;
  readonly size = sizeOf(this.inode);
  readonly mode = this.inode.mode | TYPE_BITS[this.inode.kind];
  readonly uid = 0;
  readonly gid = 0;
  readonly nlink = this.inode.links;
  readonly blocks = Math.ceil(this.size / 512);
  readonly mtimeMs = this.inode.mtimeMs;
  readonly ctimeMs = this.inode.ctimeMs;

  get mtime(): Date {
    return new Date(this.mtimeMs);
  }
}

class BigStats extends FileKind {
  readonly dev = BigInt(this.inode.device);
  readonly ino = BigInt(this.inode.ino);
  readonly size = BigInt(sizeOf(this.inode));
  readonly mode = BigInt(this.inode.mode | TYPE_BITS[this.inode.kind]);
  readonly uid = 0n;
  readonly gid = 0n;
  readonly nlink = BigInt(this.inode.links);
  readonly mtimeNs = BigInt(Math.floor(this.inode.mtimeMs * 1000)) * 1000n;
  readonly ctimeNs = BigInt(Math.floor(this.inode.ctimeMs * 1000)) * 1000n;
}

interface OpenFile {
  inode: Inode;
  flags: number;
  position: number;
}

/** Errors of a disk for changes; EIO also for reads, EBUSY for removals only. */
export type DiskFailure = "ENOSPC" | "EIO" | "EROFS" | "EBUSY";
/** A full disk allows these. */
const REMOVALS: ReadonlySet<string> = new Set(["unlink", "rmdir"]);

function isRefused(code: DiskFailure, syscall: string, isChange: boolean): boolean {
  if (code === "EIO") return true;
  if (REMOVALS.has(syscall)) return code !== "ENOSPC";
  return isChange && code !== "EBUSY";
}

const ERRNO: Record<string, number> = {
  ENOENT: 2,
  EIO: 5,
  EBADF: 9,
  EACCES: 13,
  EBUSY: 16,
  EEXIST: 17,
  ENOTDIR: 20,
  EISDIR: 21,
  EINVAL: 22,
  ENOSPC: 28,
  EROFS: 30,
  ENOTEMPTY: 39,
  ELOOP: 40,
};

/** Without a stack, as those of the kernel: most are asked for, and a stack costs more than the access. */
function systemError(code: string, syscall: string, path: string): NodeJS.ErrnoException {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new Error(`${code}: ${syscall} '${path}'`);
  Error.stackTraceLimit = stackTraceLimit;
  return Object.assign(error, { code, errno: -(ERRNO[code] ?? 1), syscall, path });
}

interface Place {
  directory: Inode;
  name: string;
  inode: Inode | undefined;
}

class Watcher {
  readonly #inode: Inode;
  readonly onName: (file: string) => void;

  constructor(inode: Inode, onName: (file: string) => void) {
    this.#inode = inode;
    this.onName = onName;
    inode.watchers ??= new Set();
    inode.watchers.add(this);
  }

  /** It never fails. */
  on(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  close(): void {
    this.#inode.watchers?.delete(this);
  }
}

interface DiskHost {
  wallMs(): number;
  /** Before each access of the program. @throws when it is dead */
  effect(): void;
  /** Delivers an event to the process. */
  deliver(run: () => void): void;
  random: SeededRandom;
}

/**
 * A file system in memory, with what a power cut leaves of it. The functions under `fs` are those of node:fs that the program
 * uses; people use the methods of the disk itself, which no fault hits.
 */
export class SimulatedDisk {
  readonly #host: DiskHost;
  #inodes = 1;
  readonly #root: Inode;
  #unsynced: Unsynced[] = [];
  readonly #dirty = new Set<Inode>();
  /** Names in a path. */
  readonly #parts = new Map<string, readonly string[]>();
  readonly #open = new Map<number, OpenFile>();
  #nextDescriptor = 10;
  /** Descriptors that have a lock, by inode. */
  readonly #locks = new Map<number, number>();
  #isProgram = true;
  failure: { code: DiskFailure; below: string } | undefined;
  /** The program has written a file: its path, and what is in it now. */
  onWrite: (path: string, data: Uint8Array) => void = () => {};
  readonly fs = this.#functions();

  constructor(host: DiskHost) {
    this.#host = host;
    this.#root = this.#make("directory", 0o755);
  }

  get openFiles(): number {
    return this.#open.size;
  }

  /** Names and link targets of all files below a path, with their sizes. */
  list(path: string): Map<string, number> {
    const found = new Map<string, number>();
    const walk = (inode: Inode, at: string) => {
      for (const [name, child] of inode.entries) {
        const full = `${at}/${name}`;
        if (child.kind === "directory") walk(child, full);
        else found.set(full, child.data.length);
      }
    };
    const start = this.#find(path);
    if (start) walk(start, path);
    return found;
  }

  // --- what people do ---

  read(path: string): string | undefined {
    const inode = this.#find(path);
    return inode?.kind === "file" ? Buffer.from(inode.data).toString() : undefined;
  }

  exists(path: string): boolean {
    return this.#find(path) !== undefined;
  }

  /** Writes in place, as `>` of a shell does. */
  write(path: string, text: string): void {
    this.#byPeople(() => this.fs.writeFileSync(path, text));
  }

  /** Writes another file and renames it, as editors do. */
  replace(path: string, text: string): void {
    this.#byPeople(() => {
      const temporary = `${path.slice(0, path.lastIndexOf("/") + 1)}.${path.slice(path.lastIndexOf("/") + 1)}.swp`;
      this.fs.writeFileSync(temporary, text);
      this.fs.renameSync(temporary, path);
    });
  }

  remove(path: string): void {
    this.#byPeople(() => this.fs.rmSync(path, { recursive: true, force: true }));
  }

  rename(from: string, to: string): void {
    this.#byPeople(() => this.fs.renameSync(from, to));
  }

  /** @param device its file system */
  makeDirectory(path: string, device = 1): void {
    this.#byPeople(() => this.fs.mkdirSync(path, { recursive: true }));
    if (device !== 1) this.#need(path, "mount").device = device;
  }

  /** Everything so far is on the disk for good. */
  sync(): void {
    this.#unsynced = [];
    for (const inode of this.#dirty) this.#settle(inode);
    this.#dirty.clear();
  }

  /** An exclusive flock(2), which ends with its descriptor. @returns false when another descriptor has it */
  lock(descriptor: number): boolean {
    const { inode } = this.#fileOf(descriptor, "flock");
    const holder = this.#locks.get(inode.ino) ?? descriptor;
    if (holder !== descriptor && this.#open.has(holder)) return false;
    this.#locks.set(inode.ino, descriptor);
    return true;
  }

  /** The kernel closes what the process had open. */
  endProcess(): void {
    this.#open.clear();
    const walk = (inode: Inode) => {
      inode.watchers = undefined;
      for (const child of inode.entries.values()) walk(child);
    };
    walk(this.#root);
  }

  /** The machine loses power: of what was not synced, some is there and some is not. */
  cutPower(): void {
    const { random } = this.#host;
    const now = this.#host.wallMs();
    this.endProcess();
    const open = this.#unsynced.filter(({ atMs }) => now - atMs < JOURNAL_MS);
    // Names are written in their order: what comes after the cut has not happened.
    const kept = random.whole(0, open.length);
    for (const { undo } of open.slice(kept).reverse()) undo();
    this.#unsynced = [];
    for (const inode of this.#dirty) {
      if (inode.isUnsynced && now - inode.writtenAtMs < WRITEBACK_MS) {
        const fate = random.next();
        if (fate < 0.3) inode.data = inode.synced ?? EMPTY;
        else if (fate < 0.5) inode.data = inode.data.slice(0, random.whole(0, inode.data.length));
        else if (fate < 0.6) inode.data = new Uint8Array(inode.data.length);
      }
      this.#settle(inode);
    }
    this.#dirty.clear();
    this.remove("/run");
    this.makeDirectory("/run");
  }

  #byPeople(work: () => void): void {
    const was = this.#isProgram;
    this.#isProgram = false;
    try {
      work();
    } finally {
      this.#isProgram = was;
    }
  }

  #settle(inode: Inode): void {
    inode.synced = inode.data;
    inode.isUnsynced = false;
  }

  #make(kind: Kind, mode: number): Inode {
    return new Inode(this.#inodes++, kind, mode, this.#host.wallMs());
  }

  #access(place: string | Inode, syscall: string, isChange: boolean): void {
    if (!this.#isProgram) return;
    if (isChange) this.#host.effect();
    const { failure } = this;
    if (!failure || !isRefused(failure.code, syscall, isChange)) return;
    const path = typeof place === "string" ? this.#placeOf(place) : this.#pathOf(place);
    if (path.startsWith(failure.below)) throw systemError(failure.code, syscall, path);
  }

  /** Where a path below the descriptor of a directory is. */
  #placeOf(path: string): string {
    const [descriptor, below = ""] = /^\/proc\/self\/fd\/(\d+)(.*)$/.exec(path)?.slice(1) ?? [];
    const file = this.#open.get(Number(descriptor));
    return file ? `${this.#pathOf(file.inode)}${below}` : path;
  }

  // --- names ---

  /** @returns directory, name and inode of a path; the last component is followed unless it is a link and `follow` is false */
  #walk(path: string, syscall: string, follow = true): Place {
    const place = this.#resolve(path, follow);
    if (typeof place === "string") throw systemError(place, syscall, path);
    return place;
  }

  /** As `#walk`. @returns the code of what is wrong otherwise: most paths that are not there are asked for, and no one needs an Error */
  #resolve(path: string, follow: boolean): Place | string {
    let links = 0;
    let parts = this.#partsOf(path);
    let here = this.#root;
    let directory = this.#root;
    let name = "";
    let inode: Inode | undefined = this.#root;
    for (let index = 0; index < parts.length; index++) {
      const part = parts[index]!;
      const isLast = index === parts.length - 1;
      if (here.kind !== "directory") return "ENOTDIR";
      directory = here;
      name = part;
      // /proc/self/fd/N, /proc/PID/fd/N
      if (index === 0 && part === "proc" && parts[2] === "fd" && parts.length > 3) {
        const file = this.#open.get(Number(parts[3]));
        if (!file) return "ENOENT";
        if (parts.length === 4)
          return { directory: file.inode.parent ?? this.#root, name: file.inode.name, inode: file.inode };
        here = file.inode;
        inode = here;
        index = 3;
        continue;
      }
      if (part === "..") {
        here = here.parent ?? this.#root;
        inode = here;
        continue;
      }
      inode = here.entries.get(part);
      if (!inode) return isLast ? { directory, name, inode } : "ENOENT";
      if (inode.kind === "link" && (!isLast || follow)) {
        if (++links > 40) return "ELOOP";
        const rest = parts.slice(index + 1);
        const target = inode.target.split("/").filter((piece) => piece !== "" && piece !== ".");
        parts = [...target, ...rest];
        if (inode.target.startsWith("/")) here = this.#root;
        index = -1;
        inode = here;
        continue;
      }
      here = inode;
    }
    return { directory, name, inode };
  }

  /** The program asks for the same few paths all day. */
  #partsOf(path: string): readonly string[] {
    const known = this.#parts.get(path);
    if (known) return known;
    if (this.#parts.size > MAX_PATHS) this.#parts.clear();
    const parts = path.split("/").filter((part) => part !== "" && part !== ".");
    this.#parts.set(path, parts);
    return parts;
  }

  #find(path: string, follow = true): Inode | undefined {
    const place = this.#resolve(path, follow);
    return typeof place === "string" ? undefined : place.inode;
  }

  #need(path: string, syscall: string, follow = true): Inode {
    const { inode } = this.#walk(path, syscall, follow);
    if (!inode) throw systemError("ENOENT", syscall, path);
    return inode;
  }

  #link(directory: Inode, name: string, inode: Inode): void {
    const before = directory.entries.get(name);
    directory.entries.set(name, inode);
    inode.parent = directory;
    inode.name = name;
    this.#changed(directory, name, () => {
      if (before) directory.entries.set(name, before);
      else directory.entries.delete(name);
    });
  }

  /** The kernel makes the files of a cgroup. */
  #linkDirectory(path: string, directory: Inode, name: string, mode = 0o755): void {
    const made = this.#make("directory", mode);
    this.#link(directory, name, made);
    if (!path.startsWith(CGROUPS)) return;
    for (const file of CGROUP_FILES) {
      const inode = this.#make("file", 0o644);
      made.entries.set(file, Object.assign(inode, { parent: made, name: file }));
    }
  }

  #unlink(directory: Inode, name: string): void {
    const before = directory.entries.get(name);
    if (!before) return;
    directory.entries.delete(name);
    this.#changed(directory, name, () => directory.entries.set(name, before));
  }

  #changed(directory: Inode, name: string, undo: () => void): void {
    const now = this.#host.wallMs();
    directory.mtimeMs = now;
    directory.ctimeMs = now;
    if (this.#unsynced.length > MAX_RECENT)
      this.#unsynced = this.#unsynced.filter(({ atMs }) => now - atMs < JOURNAL_MS);
    this.#unsynced.push({ atMs: now, undo });
    this.#notify(directory, name);
  }

  #notify(directory: Inode, name: string): void {
    for (const watcher of directory.watchers ?? []) this.#host.deliver(() => watcher.onName(name));
  }

  #written(inode: Inode): void {
    const now = this.#host.wallMs();
    inode.mtimeMs = now;
    inode.ctimeMs = now;
    inode.writtenAtMs = now;
    inode.isUnsynced = true;
    if (this.#dirty.size > MAX_RECENT) this.#writeBack(now);
    this.#dirty.add(inode);
    if (inode.parent) this.#notify(inode.parent, inode.name);
  }

  /** Contents that were written long ago are on the disk for good; most of these files have gone since. */
  #writeBack(now: number): void {
    for (const inode of this.#dirty) {
      if (now - inode.writtenAtMs < WRITEBACK_MS) continue;
      this.#settle(inode);
      this.#dirty.delete(inode);
    }
  }

  #fileOf(descriptor: number, syscall: string): OpenFile {
    const file = this.#open.get(descriptor);
    if (!file) throw systemError("EBADF", syscall, String(descriptor));
    return file;
  }

  #pathOf(inode: Inode): string {
    const names: string[] = [];
    for (let at: Inode | undefined = inode; at?.parent; at = at.parent) names.unshift(at.name);
    return `/${names.join("/")}`;
  }

  #stats(inode: Inode, options?: { bigint?: boolean }) {
    return options?.bigint ? new BigStats(inode) : new Stats(inode);
  }

  // --- node:fs ---

  #functions() {
    const text = (path: unknown) => (path instanceof URL ? path.pathname : String(path));
    const bytes = (data: unknown) =>
      typeof data === "string" ? Buffer.from(data) : new Uint8Array(data as Uint8Array);

    const openSync = (path: unknown, flags: string | number = "r", mode = 0o666): number => {
      const at = text(path);
      const bits = typeof flags === "number" ? flags : (FLAGS[flags] ?? 0);
      const creates = (bits & constants.O_CREAT) !== 0;
      const follow = (bits & constants.O_NOFOLLOW) === 0;
      const writes = (bits & 3) !== 0;
      const found = this.#walk(at, "open", follow && (bits & constants.O_EXCL) === 0);
      this.#access(at, "open", creates && !found.inode);
      let { inode } = found;
      if (inode && creates && (bits & constants.O_EXCL) !== 0) throw systemError("EEXIST", "open", at);
      if (!inode) {
        if (!creates) throw systemError("ENOENT", "open", at);
        inode = this.#make("file", mode & 0o7777);
        this.#link(found.directory, found.name, inode);
      }
      if (inode.kind === "link" && (bits & O_PATH) === 0) throw systemError("ELOOP", "open", at);
      if ((bits & constants.O_DIRECTORY) !== 0 && inode.kind !== "directory") throw systemError("ENOTDIR", "open", at);
      if (writes && inode.kind === "directory") throw systemError("EISDIR", "open", at);
      if (writes && this.#isProgram && this.failure?.code === "EROFS") this.#access(inode, "open", true);
      if ((bits & constants.O_TRUNC) !== 0 && inode.data.length > 0) {
        inode.data = EMPTY;
        this.#written(inode);
      }
      const descriptor = this.#nextDescriptor++;
      this.#open.set(descriptor, { inode, flags: bits, position: 0 });
      return descriptor;
    };
    const closeSync = (descriptor: number) => {
      if (!this.#open.delete(descriptor)) throw systemError("EBADF", "close", String(descriptor));
    };
    const put = (inode: Inode, data: Uint8Array, position: number) => {
      let next = data;
      if (position > 0 || inode.data.length > data.length) {
        next = new Uint8Array(Math.max(inode.data.length, position + data.length));
        next.set(inode.data);
        next.set(data, position);
      }
      inode.data = next;
      this.#written(inode);
      if (this.#isProgram) this.onWrite(this.#pathOf(inode), next);
    };
    const writeFileSync = (path: unknown, data: unknown, options?: { mode?: number; flag?: string } | string) => {
      const how = typeof options === "object" ? options : {};
      const isOwn = typeof path !== "number";
      const descriptor = isOwn ? openSync(path, how?.flag ?? "w", how?.mode ?? 0o666) : path;
      try {
        const file = this.#fileOf(descriptor, "write");
        this.#access(file.inode, "write", true);
        const content = bytes(data);
        put(file.inode, content, file.position);
        file.position += content.length;
      } finally {
        if (isOwn) closeSync(descriptor);
      }
    };
    const writeSync = (
      descriptor: number,
      data: unknown,
      offset?: number | null,
      length?: number,
      position?: number,
    ) => {
      const file = this.#fileOf(descriptor, "write");
      this.#access(file.inode, "write", true);
      const isText = typeof data === "string";
      const all = bytes(data);
      const start = isText ? 0 : (offset ?? 0);
      const piece = isText ? all : all.slice(start, length === undefined ? undefined : start + length);
      const at = (isText ? offset : position) ?? file.position;
      put(file.inode, piece, at);
      file.position = at + piece.length;
      return piece.length;
    };
    const readSync = (
      descriptor: number,
      buffer: Uint8Array,
      offset = 0,
      length = buffer.length - offset,
      position: number | null = null,
    ) => {
      const file = this.#fileOf(descriptor, "read");
      this.#access(file.inode, "read", false);
      const at = position ?? file.position;
      const piece = file.inode.data.subarray(at, at + length);
      buffer.set(piece, offset);
      if (position === null) file.position += piece.length;
      return piece.length;
    };
    const readFileSync = (path: unknown, options?: string | { encoding?: string | null }) => {
      if (/^\/proc\/self\/fdinfo\/\d+$/.test(text(path))) return "pos: 0\nmnt_id: 1\n";
      const inode = typeof path === "number" ? this.#fileOf(path, "read").inode : this.#need(text(path), "open");
      this.#access(text(path), "open", false);
      if (inode.kind === "directory") throw systemError("EISDIR", "read", text(path));
      const encoding = typeof options === "string" ? options : options?.encoding;
      const content = Buffer.from(inode.data);
      return encoding ? content.toString(encoding as BufferEncoding) : content;
    };
    const statOf =
      (syscall: "stat" | "lstat") => (path: unknown, options?: { throwIfNoEntry?: boolean; bigint?: boolean }) => {
        const at = text(path);
        const follow = syscall === "stat";
        const inode = options?.throwIfNoEntry === false ? this.#find(at, follow) : this.#need(at, syscall, follow);
        return inode && this.#stats(inode, options);
      };
    const mkdirSync = (path: unknown, options?: { recursive?: boolean; mode?: number } | number) => {
      const at = text(path);
      const how = typeof options === "object" ? options : {};
      if (how.recursive) {
        if (this.#find(at)?.kind === "directory") return undefined;
        const parts = at.split("/").filter((part) => part !== "");
        const isProc = parts[0] === "proc" && parts[2] === "fd";
        for (let count = isProc ? parts.length : 1; count <= parts.length; count++) {
          const part = `/${parts.slice(0, count).join("/")}`;
          const { directory, name, inode } = this.#walk(part, "mkdir");
          if (inode && inode.kind !== "directory") throw systemError("EEXIST", "mkdir", at);
          if (inode) continue;
          this.#access(part, "mkdir", true);
          this.#linkDirectory(part, directory, name, how.mode);
        }
        return undefined;
      }
      const { directory, name, inode } = this.#walk(at, "mkdir", false);
      if (inode) throw systemError("EEXIST", "mkdir", at);
      this.#access(at, "mkdir", true);
      this.#linkDirectory(at, directory, name, how.mode);
      return undefined;
    };
    const unlinkSync = (path: unknown) => {
      const at = text(path);
      const { directory, name, inode } = this.#walk(at, "unlink", false);
      if (!inode) throw systemError("ENOENT", "unlink", at);
      if (inode.kind === "directory") throw systemError("EISDIR", "unlink", at);
      this.#access(at, "unlink", true);
      inode.links--;
      this.#unlink(directory, name);
    };
    const rmdirSync = (path: unknown) => {
      const at = text(path);
      const { directory, name, inode } = this.#walk(at, "rmdir", false);
      if (!inode) throw systemError("ENOENT", "rmdir", at);
      if (inode.kind !== "directory") throw systemError("ENOTDIR", "rmdir", at);
      if (inode.entries.size > 0 && !isEmptyCgroup(at, inode)) throw systemError("ENOTEMPTY", "rmdir", at);
      this.#access(at, "rmdir", true);
      this.#unlink(directory, name);
    };
    const rmSync = (path: unknown, options: { recursive?: boolean; force?: boolean } = {}) => {
      const at = text(path);
      const found = options.force ? this.#find(at, false) : this.#need(at, "rm", false);
      if (!found) return;
      if (found.kind !== "directory") return unlinkSync(at);
      if (!options.recursive) throw systemError("EISDIR", "rm", at);
      for (const name of [...found.entries.keys()]) rmSync(`${at}/${name}`, options);
      rmdirSync(at);
    };
    const fsyncSync = (descriptor: number) => {
      const { inode } = this.#fileOf(descriptor, "fsync");
      this.#access(inode, "fsync", true);
      if (inode.kind === "directory") this.#unsynced = [];
      else {
        this.#settle(inode);
        this.#dirty.delete(inode);
      }
    };
    const watch = (path: unknown, options: unknown, listener?: (event: string, file: string) => void) => {
      const inode = this.#need(text(path), "watch");
      const onName = (typeof options === "function" ? options : listener) as (event: string, file: string) => void;
      return new Watcher(inode, (file) => onName("rename", file));
    };
    const createReadStream = () => {
      throw systemError("ENOENT", "open", "stream");
    };
    const fstatSync = (descriptor: number, options?: { bigint?: boolean }) =>
      this.#stats(this.#fileOf(descriptor, "fstat").inode, options);
    const nothing = () => {};

    const later =
      <A extends unknown[], R>(run: (...values: A) => R) =>
      (...values: A): Promise<R> => {
        try {
          return Promise.resolve(run(...values));
        } catch (error) {
          return Promise.reject(error);
        }
      };
    const handle = (descriptor: number) => ({
      fd: descriptor,
      stat: later((options?: { bigint?: boolean }) => fstatSync(descriptor, options)),
      read: later((buffer: Uint8Array, offset?: number, length?: number, position?: number | null) => ({
        bytesRead: readSync(descriptor, buffer, offset, length, position),
        buffer,
      })),
      sync: later(() => fsyncSync(descriptor)),
      writeFile: later((data: unknown) => writeFileSync(descriptor, data)),
      close: later(() => closeSync(descriptor)),
      [Symbol.asyncDispose]: later(() => closeSync(descriptor)),
    });
    const functions = {
      openSync,
      closeSync,
      writeFileSync,
      writeSync,
      readSync,
      readFileSync,
      statSync: statOf("stat"),
      lstatSync: statOf("lstat"),
      fstatSync,
      mkdirSync,
      mkdtempSync: (prefix: string) => {
        const path = `${prefix}${this.#host.random.hex(6)}`;
        mkdirSync(path, { mode: 0o700 });
        return path;
      },
      unlinkSync,
      rmdirSync,
      rmSync,
      renameSync: (from: unknown, to: unknown) => {
        const source = this.#walk(text(from), "rename", false);
        const { inode } = source;
        if (!inode) throw systemError("ENOENT", "rename", text(from));
        const target = this.#walk(text(to), "rename", false);
        this.#access(text(to), "rename", true);
        if (target.inode === inode) return;
        const replaced = target.inode;
        if (replaced?.kind === "directory" && inode.kind !== "directory")
          throw systemError("EISDIR", "rename", text(to));
        if (replaced?.kind === "directory" && replaced.entries.size > 0)
          throw systemError("ENOTEMPTY", "rename", text(to));
        // One step of the journal: a power cut leaves the old name or the new one, never neither.
        source.directory.entries.delete(source.name);
        target.directory.entries.set(target.name, inode);
        inode.parent = target.directory;
        inode.name = target.name;
        inode.ctimeMs = this.#host.wallMs();
        this.#changed(target.directory, target.name, () => {
          if (replaced) target.directory.entries.set(target.name, replaced);
          else target.directory.entries.delete(target.name);
          source.directory.entries.set(source.name, inode);
          inode.parent = source.directory;
          inode.name = source.name;
        });
        this.#notify(source.directory, source.name);
      },
      symlinkSync: (target: string, path: unknown) => {
        const at = text(path);
        const { directory, name, inode } = this.#walk(at, "symlink", false);
        if (inode) throw systemError("EEXIST", "symlink", at);
        this.#access(at, "symlink", true);
        const link = this.#make("link", 0o777);
        link.target = String(target);
        this.#link(directory, name, link);
      },
      linkSync: (from: unknown, to: unknown) => {
        const inode = this.#need(text(from), "link", false);
        const target = this.#walk(text(to), "link", false);
        if (target.inode) throw systemError("EEXIST", "link", text(to));
        this.#access(text(to), "link", true);
        inode.links++;
        this.#link(target.directory, target.name, inode);
      },
      readlinkSync: (path: unknown) => {
        const at = text(path);
        if (/^\/proc\/(self|\d+)\/fd\/\d+$/.test(at)) return this.#pathOf(this.#need(at, "readlink"));
        const inode = this.#need(at, "readlink", false);
        if (inode.kind !== "link") throw systemError("EINVAL", "readlink", at);
        return inode.target;
      },
      readdirSync: (path: unknown, options?: { withFileTypes?: boolean; encoding?: string; recursive?: boolean }) => {
        const at = text(path);
        const inode = this.#need(at, "scandir");
        this.#access(at, "scandir", false);
        if (inode.kind !== "directory") throw systemError("ENOTDIR", "scandir", at);
        const names = [...inode.entries.keys()];
        if (options?.withFileTypes) {
          return names.map((name) => Object.assign(new FileKind(inode.entries.get(name)!), { name, parentPath: at }));
        }
        return options?.encoding === "buffer" ? names.map((name) => Buffer.from(name)) : names;
      },
      realpathSync: (path: unknown) => this.#pathOf(this.#need(text(path), "realpath")),
      chmodSync: (path: unknown, mode: number) => {
        this.#access(text(path), "chmod", true);
        this.#need(text(path), "chmod").mode = mode & 0o7777;
      },
      fchmodSync: (descriptor: number, mode: number) => {
        this.#fileOf(descriptor, "fchmod").inode.mode = mode & 0o7777;
      },
      chownSync: nothing,
      lchownSync: nothing,
      fsyncSync,
      ftruncateSync: (descriptor: number, length = 0) => {
        const { inode } = this.#fileOf(descriptor, "ftruncate");
        this.#access(inode, "ftruncate", true);
        const next = new Uint8Array(length);
        next.set(inode.data.subarray(0, length));
        inode.data = next;
        this.#written(inode);
      },
      statfsSync: (path: unknown) => {
        this.#need(text(path), "statfs");
        return {
          type: 0xef53,
          bsize: 4096,
          blocks: 25_000_000,
          bfree: 20_000_000,
          bavail: 20_000_000,
          files: 6_000_000,
          ffree: 5_900_000,
        };
      },
      existsSync: (path: unknown) => this.#find(text(path)) !== undefined,
      accessSync: (path: unknown) => {
        this.#need(text(path), "access");
      },
      copyFileSync: (from: unknown, to: unknown) => writeFileSync(to, readFileSync(from)),
    };
    const promises: Record<string, unknown> = Object.fromEntries(
      Object.entries(functions).map(([name, run]) => [name.slice(0, -"Sync".length), later(run as () => unknown)]),
    );
    promises.open = later((path: unknown, flags?: string, mode?: number) => handle(openSync(path, flags, mode)));
    return { ...functions, constants, promises, watch, createReadStream };
  }
}

const FLAGS: Record<string, number> = {
  r: constants.O_RDONLY,
  "r+": constants.O_RDWR,
  w: constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC,
  wx: constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL,
  "w+": constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC,
  a: constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND,
};
