import { hash } from "node:crypto";
import { fstatSync, lstatSync, readdirSync, statSync } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { FileSlot } from "../base/concurrency/worker-pool.ts";
import { type FileSystemId, findFileSystem, toFileSystemId } from "../base/files/mount-points.ts";
import { openFile, READ_FLAGS, readDescriptor, UnreadableFileError } from "../base/files/whole-file.ts";
import { MAX_MANIFEST_BYTES } from "../manifest/yaml/parse-stream.ts";

const MANIFEST_EXTENSION = /\.(ya?ml|json|manifest)(\.age)?$/i;

export const hasManifestExtension = (path: string): boolean => MANIFEST_EXTENSION.test(path);

/** Names of files that editors, package managers and copy programs leave in a directory. */
const LEFTOVERS: readonly [RegExp, string][] = [
  [/^\./, "its name starts with a dot"],
  [/~$/, "an editor's backup"],
  [/^#.*#$/, "an editor's auto-save"],
  [/\.(swp|swo|swx)$/, "an editor's swap file"],
  [/^4913$/, "an editor's test file"],
  [/\.(bak|old|orig|rej|save|tmp|temp|part|partial)$/i, "a backup or a partial file"],
  [/\.(rpmsave|rpmnew|rpmorig|ucf-dist|ucf-old|ucf-new|pacnew|pacsave|dpkg-[a-z-]+)$/, "left by a package manager"],
];

/** Why a file in a manifest directory is skipped by its name; undefined when it is read. */
export function skipReason(name: string): string | undefined {
  for (const [pattern, reason] of LEFTOVERS) if (pattern.test(name)) return reason;
  if (MANIFEST_EXTENSION.test(name) || !name.includes(".")) return undefined;
  return "not a .yaml, .yml, .json or .manifest file";
}

/** A file without an extension counts when its text is a manifest (README and LICENSE have none either). */
export function looksLikeManifest(name: string, bytes: Uint8Array): boolean {
  if (MANIFEST_EXTENSION.test(name)) return true;
  const head = new TextDecoder().decode(bytes.subarray(0, 65_536));
  return /(^|[{,\s"'])apiVersion["']?\s*:/.test(head) && /(^|[{,\s"'])kind["']?\s*:/.test(head);
}

type Listing =
  | { kind: "missing"; message: string }
  /** `message` names the path, `reason` does not. */
  | { kind: "unreadable"; message: string; reason: string }
  | { kind: "file"; files: [string] }
  | { kind: "directory"; files: string[]; skipped: { path: string; reason: string }[]; place: FileSystemId };

/** Units of UTF-16 whose order differs from that of the bytes: surrogates and what follows them. */
const UNORDERED = /[\ud800-\uffff]/;

/** Byte order. */
export const compareNames = (a: string, b: string): number =>
  UNORDERED.test(a) && UNORDERED.test(b) ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : a < b ? -1 : +(a > b);

/** The manifest files of a path, in byte order of their names; directories in it are not entered. */
export function listManifests(path: string): Listing {
  try {
    if (!statSync(path).isDirectory()) return { kind: "file", files: [path] };
    // Before the names: what is mounted or unmounted in between must not look like a file system that was read.
    const place = findFileSystem(path);
    return { kind: "directory", ...sortNames(path, readdirSync(path)), place };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return missingListing(path);
    const reason = EXPLANATIONS[code ?? ""] ?? message;
    return { kind: "unreadable", message: `"${path}" cannot be read: ${reason}`, reason };
  }
}

const missingListing = (path: string): Listing => ({ kind: "missing", message: `"${path}" does not exist` });

/** The files of a directory that are read and those that are skipped by their names, in byte order. */
function sortNames(directory: string, names: readonly string[]) {
  const files: string[] = [];
  const skipped: { path: string; reason: string }[] = [];
  for (const name of names.toSorted(compareNames)) {
    const reason = skipReason(name);
    if (reason) skipped.push({ path: join(directory, name), reason });
    else files.push(join(directory, name));
  }
  return { files, skipped };
}

export interface ManifestSnapshot {
  listing: Listing;
  contents: ReadonlyMap<string, FileContent>;
}

/** @param known files that are not read while they have this identity, and not returned while they have this text */
export function readManifests(path: string, known: ReadonlyMap<string, KnownFile>): ManifestSnapshot {
  const listing = listManifests(path);
  const files = "files" in listing ? listing.files : [];
  return { listing, contents: new Map(files.map((file) => [file, readManifestFile(file, known.get(file))])) };
}

/** Distinguishes two states of a file without reading it. */
export interface FileIdentity {
  dev: bigint;
  ino: bigint;
  size: bigint;
  mtimeNs: bigint;
  ctimeNs: bigint;
}

/** A file as it was read before, with the SHA-256 of its text; without an identity it is read again in any case. */
export type KnownFile = { hash: string; identity?: FileIdentity | undefined };

type FileContent =
  | { kind: "content"; bytes: Uint8Array; hash: string; identity: FileIdentity }
  /** It is what `known` says; with an identity when it was read. */
  | { kind: "same"; identity?: FileIdentity }
  | { kind: "missing" }
  /** A symbolic link whose target is missing: a part of a swap in several steps, or a disk that is not mounted. */
  | { kind: "dangling" }
  /** A directory, socket or device. */
  | { kind: "not-a-file"; what: string }
  | { kind: "unreadable"; message: string };

/** Reads one manifest file (through symbolic links) unless it is still the one that `known` describes. */
export function readManifestFile(path: string, known?: KnownFile): FileContent {
  try {
    // Opening a device may have an effect, so it is not opened.
    const before = statSync(path, { bigint: true });
    if (!before.isFile())
      return { kind: "not-a-file", what: before.isDirectory() ? "a directory" : "not a regular file" };
    if (known?.identity && isSameFile(known.identity, before)) return { kind: "same" };
    using file = openFile(path, READ_FLAGS);
    const { dev, ino, size, mtimeNs, ctimeNs } = fstatSync(file.descriptor, { bigint: true });
    const bytes = readDescriptor(file.descriptor, MAX_MANIFEST_BYTES - 1);
    const [text, identity] = [hash("sha256", bytes), { dev, ino, size, mtimeNs, ctimeNs }];
    if (known?.hash === text) return { kind: "same", identity };
    // Not the bytes as they are: another thread gets the whole of their buffer.
    return { kind: "content", bytes: new Uint8Array(bytes), hash: text, identity };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return isLink(path) ? { kind: "dangling" } : { kind: "missing" };
    if (error instanceof UnreadableFileError) return { kind: "unreadable", message };
    return { kind: "unreadable", message: `cannot be read: ${EXPLANATIONS[code ?? ""] ?? message}` };
  }
}

const isLink = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;

function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
  return a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs;
}

const EXPLANATIONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  ELOOP: "a symbolic link that leads to itself",
  ENOTDIR: "part of the path is not a directory",
  EAGAIN: "it is a stream without an end, not a file",
  EIO: "the disk reports an error (EIO)",
  ESTALE: "its network file system is gone (ESTALE)",
};

/** A longer check is left to a thread, which may hang. Local disks respond within milliseconds. */
const CHECK_TIMEOUT_MS = 1_000;

/**
 * The snapshot of a path that is missing, or whose files are all what `known` describes, as in an empty directory: most
 * checks find no change, and need no thread. Calls stat only, and waits for the disk outside the event loop.
 * @returns undefined: the path must be read, in a thread where it may hang
 */
export async function checkForChange(
  path: string,
  known: ReadonlyMap<string, KnownFile>,
  slot: FileSlot,
): Promise<ManifestSnapshot | undefined> {
  return await slot.run(() => snapshotIfUnchanged(path, known), CHECK_TIMEOUT_MS).catch(() => undefined);
}

/** @throws Error for what cannot be listed or examined */
async function snapshotIfUnchanged(
  path: string,
  known: ReadonlyMap<string, KnownFile>,
): Promise<ManifestSnapshot | undefined> {
  const listing = await listForCheck(path);
  const files = "files" in listing ? listing.files : [];
  const contents = new Map<string, FileContent>();
  for (const file of files) {
    const found = await stat(file, { bigint: true });
    const identity = known.get(file)?.identity;
    if (found.isDirectory()) contents.set(file, { kind: "not-a-file", what: "a directory" });
    else if (found.isFile() && identity && isSameFile(identity, found)) contents.set(file, { kind: "same" });
    else return undefined;
  }
  return { listing, contents };
}

/** As `listManifests`. @throws Error for what cannot be listed */
async function listForCheck(path: string): Promise<Listing> {
  let real: string;
  try {
    real = await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return missingListing(path);
    throw error;
  }
  const found = await stat(real);
  if (!found.isDirectory()) return { kind: "file", files: [path] };
  const place = toFileSystemId(real, found.dev);
  return { kind: "directory", ...sortNames(path, await readdir(path)), place };
}
