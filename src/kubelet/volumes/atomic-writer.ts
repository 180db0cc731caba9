import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { readBoundedBytes } from "../../base/files/whole-file.ts";
import { unlessCode } from "../../base/text/error-message.ts";

/** Its bytes are made of the text when the file is written: that of a large object is shared by all its pods. */
export interface ProjectedFile {
  text: string;
  encoding: "utf8" | "base64";
  mode: number;
}

/** Relative path to file; `./a//b` is `a/b`. A path with `..`, or that begins with it, is refused when it is written. */
export type Payload = ReadonlyMap<string, ProjectedFile>;

const DATA_LINK = "..data";

interface AtomicWriteOptions {
  /** Called with the new directory before it becomes visible (ownership for fsGroup). */
  own?: ((directory: string) => void) | undefined;
  /** Names in `target` that are left alone, as long as they are not links: containers have something mounted there. */
  mountPoints?: ReadonlySet<string>;
}

/**
 * Makes a volume show exactly these files, all at once: they go to a new time-stamped directory, then the link `..data`
 * is renamed over the old one, so that a reader sees all of the old or all of the new. What users see are links through
 * `..data`, which never change while a name stays. Source: upstream's `AtomicWriter`.
 * @param now for the directory's name only.
 * @returns whether anything was different.
 * @throws Error for a path that cannot be; what was there stays.
 */
export function writeAtomically(
  target: string,
  files: Payload,
  now: Date,
  { own, mountPoints = new Set() }: AtomicWriteOptions = {},
): boolean {
  const payload: Payload = new Map([...files].map(([path, file]) => [toPlainPath(path), file]));
  const previous = readLink(join(target, DATA_LINK));
  if (previous !== undefined && holdsExactly(join(target, previous), payload)) {
    // A crash may have come between the swap and the links.
    const linked = linkVisibleNames(target, payload, mountPoints);
    return removeStaleNames(target, payload, previous, mountPoints) || linked;
  }
  const directory = fs.mkdtempSync(join(target, `..${timeStamp(now)}.`));
  try {
    fs.chmodSync(directory, 0o755);
    writeFiles(directory, payload);
    own?.(directory);
    fs.rmSync(join(target, "..data_tmp"), { force: true });
    fs.symlinkSync(directory.slice(target.length + 1), join(target, "..data_tmp"));
  } catch (error) {
    fs.rmSync(directory, { recursive: true, force: true });
    throw error;
  }
  fs.renameSync(join(target, "..data_tmp"), join(target, DATA_LINK));
  linkVisibleNames(target, payload, mountPoints);
  removeStaleNames(target, payload, directory.slice(target.length + 1), mountPoints);
  return true;
}

function writeFiles(directory: string, payload: Payload): void {
  for (const [path, { text, encoding, mode }] of payload) {
    const file = join(directory, path);
    fs.mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
    fs.writeFileSync(file, text, { encoding, mode });
    fs.chmodSync(file, mode);
  }
}

function holdsExactly(directory: string, payload: Payload): boolean {
  const present = listFiles(directory);
  if (present?.length !== payload.size) return false;
  return present.every((path) => {
    const wanted = payload.get(path);
    if (wanted === undefined) return false;
    const file = join(directory, path);
    const { mode, size } = fs.lstatSync(file);
    if ((mode & 0o7777) !== wanted.mode) return false;
    const bytes = Buffer.from(wanted.text, wanted.encoding);
    return size === bytes.length && bytes.equals(readBoundedBytes(file, size));
  });
}

/** Relative paths of the regular files; undefined when there is no such directory. */
function listFiles(directory: string): string[] | undefined {
  const entries = unlessCode(["ENOENT"], () => fs.readdirSync(directory, { recursive: true, withFileTypes: true }));
  return entries
    ?.filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
}

const visibleNames = (payload: Payload) => new Set([...payload.keys()].map((path) => path.split("/")[0] ?? ""));

function linkVisibleNames(target: string, payload: Payload, mountPoints: ReadonlySet<string>): boolean {
  let changed = false;
  for (const name of visibleNames(payload)) {
    const link = join(target, name);
    const wanted = join(DATA_LINK, name);
    if (readLink(link) === wanted || isMountPoint(link, name, mountPoints)) continue;
    fs.rmSync(link, { recursive: true, force: true });
    fs.symlinkSync(wanted, link);
    changed = true;
  }
  return changed;
}

const isMountPoint = (path: string, name: string, mountPoints: ReadonlySet<string>) =>
  mountPoints.has(name) && fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === false;

/** Removes links whose files are gone and every data directory but the current one. */
function removeStaleNames(
  target: string,
  payload: Payload,
  current: string,
  mountPoints: ReadonlySet<string>,
): boolean {
  const wanted = visibleNames(payload);
  let changed = false;
  for (const name of fs.readdirSync(target)) {
    if (name === DATA_LINK || name === current || wanted.has(name)) continue;
    if (isMountPoint(join(target, name), name, mountPoints)) continue;
    fs.rmSync(join(target, name), { recursive: true, force: true });
    changed = true;
  }
  return changed;
}

/** As `filepath.Clean`; no special name is left; in particular the first one, of which a link is made, is a plain name. */
function toPlainPath(path: string): string {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (path.startsWith("/") || names.length === 0 || names[0]?.startsWith("..") || names.includes("..")) {
    throw new Error(`invalid path: must be relative, must not be "" nor contain or start with "..": "${path}"`);
  }
  return names.join("/");
}

const readLink = (path: string): string | undefined => unlessCode(["ENOENT", "EINVAL"], () => fs.readlinkSync(path));

/** e.g. `2026_01_31_12_34_56`. */
const timeStamp = (now: Date) => now.toISOString().slice(0, 19).replace(/[-:T]/g, "_");
