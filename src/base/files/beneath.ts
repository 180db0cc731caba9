import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, readlinkSync, type Stats } from "node:fs";
import { codeOf, unlessCode } from "../text/error-message.ts";
import { type OpenFile, openFile } from "./whole-file.ts";

/** Linux' O_PATH: a handle on the name itself; opens no device, no FIFO, needs no read permission. */
const O_PATH = 0o10000000;
/** Opens the entry of that very name, link or not. */
export const HANDLE_ONLY = O_PATH | constants.O_NOFOLLOW;
const LINK_LIMIT = 40;

/** A path leads, or may lead, out of the directory it belongs to. */
export class EscapeError extends Error {}

/** The file that a relative path names inside a directory, held open so that it cannot be exchanged afterwards. */
export interface Held extends OpenFile {
  stats: Stats;
}

/**
 * Opens `relative` inside `root`; no symbolic link, also one that is exchanged meanwhile, leads out of `root`. Each
 * component is opened by its own name in the directory that is held open, without following; links are read and walked
 * in the same way (openat2 RESOLVE_BENEATH in user space).
 * @param root links in it are followed: it belongs to the machine
 * @param create mode of missing directories, applied exactly to the last and less the umask to others, as upstream does
 * @throws EscapeError on the attempt to leave; the system's error
 */
export function openBeneath(root: string, relative: string, create?: { mode: number }): Held {
  const rootDescriptor = openSync(root, O_PATH);
  /** From the root to the present directory; `..` goes back along it. */
  const held: number[] = [rootDescriptor];
  try {
    return walk(held, relative, create);
  } finally {
    for (const descriptor of held) closeSync(descriptor);
  }
}

/** Whether there is an entry at a relative path; one that cannot be accessed counts as present. */
export function existsBeneath(root: string, relative: string): boolean {
  try {
    using _held = openBeneath(root, relative);
    return true;
  } catch (error) {
    return codeOf(error) !== "ENOENT";
  }
}

function walk(held: number[], relative: string, create: { mode: number } | undefined): Held {
  const todo = componentsOf(relative);
  const realRoot = readlinkSync(descriptorPath(held[0] as number));
  let links = 0;
  let lastCreated = false;
  for (let name = todo.shift(); name !== undefined; name = todo.shift()) {
    if (name === "..") {
      const left = held.pop();
      if (held.length === 0 || left === undefined) {
        if (left !== undefined) held.push(left);
        throw new EscapeError(`"${relative}" leads out of its directory`);
      }
      closeSync(left);
      continue;
    }
    const parent = held.at(-1) as number;
    const path = `${descriptorPath(parent)}/${name}`;
    lastCreated = create !== undefined && makeIfMissing(path, create.mode);
    const descriptor = openSync(path, HANDLE_ONLY);
    if (!fstatSync(descriptor).isSymbolicLink()) {
      held.push(descriptor);
      continue;
    }
    closeSync(descriptor);
    if (++links > LINK_LIMIT) throw new EscapeError(`"${relative}" has too many levels of symbolic links`);
    // The link may have been replaced: the target is walked with the same checks, so that does not matter.
    const target = readlinkSync(path);
    if (target.startsWith("/")) {
      const inside = stripRoot(target, realRoot);
      if (inside === undefined) throw new EscapeError(`"${relative}" has a symbolic link that leads out`);
      for (const descriptor of held.splice(1)) closeSync(descriptor);
      todo.unshift(...componentsOf(inside));
    } else {
      todo.unshift(...componentsOf(target));
    }
  }
  const file = openFile(descriptorPath(held.at(-1) as number), O_PATH);
  if (create && lastCreated) chmodSync(descriptorPath(file.descriptor), create.mode);
  return { ...file, stats: fstatSync(file.descriptor) };
}

/** Name under which our own process, and mount(8) by our pid, reaches an open descriptor. */
export const descriptorPath = (descriptor: number) => `/proc/self/fd/${descriptor}`;

const componentsOf = (path: string) => path.split("/").filter((name) => name !== "" && name !== ".");

/** The part of an absolute link target inside the root; undefined when it is not inside. */
function stripRoot(target: string, realRoot: string): string | undefined {
  if (realRoot === "/") return target;
  return target === realRoot || target.startsWith(`${realRoot}/`) ? target.slice(realRoot.length) : undefined;
}

/** @returns false for what is there already */
function makeIfMissing(path: string, mode: number): boolean {
  const make = () => {
    mkdirSync(path, { mode });
    return true;
  };
  return unlessCode(["EEXIST"], make) ?? false;
}
