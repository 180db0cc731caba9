import * as fs from "node:fs";
import { codeOf, unlessCode } from "../text/error-message.ts";

/** Names in a directory: text, or bytes where a name is not UTF-8. */
export type EntryName = string | Buffer;

const DIRECTORY = fs.constants.O_RDONLY | fs.constants.O_DIRECTORY | fs.constants.O_NONBLOCK;
const DIRECTORY_ITSELF = DIRECTORY | fs.constants.O_NOFOLLOW;

/**
 * A directory that is held open: every operation concerns one name in exactly this directory and follows no link of
 * that name (`/proc/self/fd/N/name` replaces openat and unlinkat). Declare it with `using`.
 */
export class HeldDirectory {
  readonly #descriptor: number;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** Opens a path of the machine: links in it are followed. @throws the system's error. */
  static open(path: string): HeldDirectory {
    return new HeldDirectory(fs.openSync(path, DIRECTORY));
  }

  /** Opens a directory in this one; undefined when the name is missing, a link or anything but a directory. */
  child(name: EntryName): HeldDirectory | undefined {
    const descriptor = unlessCode(["ENOENT", "ENOTDIR", "ELOOP"], () =>
      fs.openSync(this.#path(name), DIRECTORY_ITSELF),
    );
    return descriptor === undefined ? undefined : new HeldDirectory(descriptor);
  }

  /** As {@link child}; makes the directory when the name is missing. @throws Error when something else has the name. */
  ensureChild(name: string, mode: number): HeldDirectory {
    unlessCode(["EEXIST"], () => fs.mkdirSync(this.#path(name), { mode }));
    const child = this.child(name);
    if (!child) throw new Error(`"${name}" is not a directory`);
    return child;
  }

  /** Every name, as bytes. */
  names(): Buffer[] {
    return fs.readdirSync(this.path, { encoding: "buffer" });
  }

  /** Removes a file or link. @returns false for a directory. A missing name is success. */
  unlink(name: EntryName): boolean {
    return this.#removes(["EISDIR"], () => fs.unlinkSync(this.#path(name)));
  }

  /** Removes an empty directory. @returns false when it is not empty or not a directory. A missing name is success. */
  rmdir(name: EntryName): boolean {
    return this.#removes(["ENOTEMPTY", "EEXIST", "ENOTDIR"], () => fs.rmdirSync(this.#path(name)));
  }

  #removes(refusals: readonly string[], remove: () => void): boolean {
    try {
      remove();
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return true;
      if (refusals.includes(codeOf(error))) return false;
      throw error;
    }
  }

  /** Target of a link; undefined when the name is missing or not a link. */
  readlink(name: EntryName): string | undefined {
    return unlessCode(["ENOENT", "EINVAL", "ENOTDIR"], () => fs.readlinkSync(this.#path(name)));
  }

  /** @throws the system's error, `EEXIST` among them. */
  symlink(target: string, name: string): void {
    fs.symlinkSync(target, this.#path(name));
  }

  /** Moves an entry of this directory to another directory, or to another name. @throws the system's error. */
  rename(name: EntryName, to: EntryName, directory: HeldDirectory = this): void {
    fs.renameSync(this.#path(name), directory.#path(to));
  }

  /** Identifies the mount that the directory is on. Bind mounts of one file system differ in it, unlike in `st_dev`. */
  mountId(): string {
    const info = fs.readFileSync(`/proc/self/fdinfo/${this.#descriptor}`, "utf8");
    return /^mnt_id:\s*(\d+)/m.exec(info)?.[1] ?? "";
  }

  /** Its present path, for messages. */
  realPath(): string {
    return fs.readlinkSync(this.path);
  }

  /** The directory itself, for calls that take a path. Valid while it is open. */
  get path(): string {
    return `/proc/self/fd/${this.#descriptor}`;
  }

  [Symbol.dispose](): void {
    fs.closeSync(this.#descriptor);
  }

  #path(name: EntryName): string | Buffer {
    if (typeof name === "string") return `${this.path}/${name}`;
    return Buffer.concat([Buffer.from(`${this.path}/`), name]);
  }
}
