import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";

/** A manifest of exactly this size is already too long. Source: kubelet's file source. */
export const MAX_MANIFEST_BYTES = 10 * 1024 * 1024;

const MANIFEST_EXTENSION = /\.(ya?ml|json|manifest)$/i;

/** What editors, package managers and copy programs leave beside a file [U11 U12]. */
const LEFTOVERS: readonly [RegExp, string][] = [
  [/^\./, "its name starts with a dot"],
  [/~$/, "an editor's backup"],
  [/^#.*#$/, "an editor's auto-save"],
  [/\.(swp|swo|swx)$/, "an editor's swap file"],
  [/^4913$/, "an editor's test file"],
  [/\.(bak|old|orig|rej|save|tmp|temp|part|partial)$/i, "a backup or half a file"],
  [/\.(rpmsave|rpmnew|rpmorig|ucf-dist|ucf-old|ucf-new|pacnew|pacsave|dpkg-[a-z-]+)$/, "left by a package manager"],
];

/** Why a file in a manifest directory is not looked at, or undefined when its name says nothing against it. */
export function skipReason(name: string): string | undefined {
  for (const [pattern, reason] of LEFTOVERS) if (pattern.test(name)) return reason;
  if (MANIFEST_EXTENSION.test(name) || !name.includes(".")) return undefined;
  return "not a .yaml, .yml, .json or .manifest file";
}

/** A file without extension counts when its text says that it is a manifest (README and LICENSE stand there too). */
export function looksLikeManifest(name: string, bytes: Uint8Array): boolean {
  if (MANIFEST_EXTENSION.test(name)) return true;
  const head = new TextDecoder().decode(bytes.subarray(0, 65_536));
  return /(^|[{,\s"'])apiVersion["']?\s*:/.test(head) && /(^|[{,\s"'])kind["']?\s*:/.test(head);
}

export type Listing =
  | { kind: "missing" }
  /** `message` names the path, `reason` does not. */
  | { kind: "unreadable"; message: string; reason: string }
  | { kind: "files"; isDirectory: boolean; files: string[]; skipped: { path: string; reason: string }[] };

/** The manifest files behind a path, in byte order of their names; no recursion. */
export function listManifests(path: string): Listing {
  try {
    if (!statSync(path).isDirectory()) return { kind: "files", isDirectory: false, files: [path], skipped: [] };
    const files: string[] = [];
    const skipped: { path: string; reason: string }[] = [];
    const names = readdirSync(path).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    for (const name of names) {
      const reason = skipReason(name);
      if (reason) skipped.push({ path: join(path, name), reason });
      else files.push(join(path, name));
    }
    return { kind: "files", isDirectory: true, files, skipped };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return { kind: "missing" };
    const reason = explain(code) ?? message;
    return { kind: "unreadable", message: `"${path}" cannot be read: ${reason}`, reason };
  }
}

/** Tells two states of a file apart without reading it. */
export interface FileIdentity {
  dev: bigint;
  ino: bigint;
  size: bigint;
  mtimeNs: bigint;
  ctimeNs: bigint;
}

export type FileContent =
  | { kind: "content"; bytes: Uint8Array; identity: FileIdentity }
  /** Not read: it is what `known` says. */
  | { kind: "same" }
  | { kind: "missing" }
  /** A directory, socket, device …: nothing to read, nothing wrong. */
  | { kind: "not-a-file"; what: string }
  | { kind: "unreadable"; message: string };

/** Reads one manifest file (through symbolic links) unless it is still the one that `known` describes. */
export function readManifestFile(path: string, known?: FileIdentity): FileContent {
  let fd: number | undefined;
  try {
    // Looked at before it is opened: opening a FIFO would wait for a writer.
    const before = statSync(path, { bigint: true });
    if (!before.isFile())
      return { kind: "not-a-file", what: before.isDirectory() ? "a directory" : "not a regular file" };
    if (known && isSameFile(known, before)) return { kind: "same" };
    fd = openSync(path, "r");
    const stat = fstatSync(fd, { bigint: true });
    if (stat.size >= BigInt(MAX_MANIFEST_BYTES)) return { kind: "unreadable", message: tooLarge(stat.size) };
    const bytes = readAll(fd, Number(stat.size));
    if (bytes.length >= MAX_MANIFEST_BYTES) return { kind: "unreadable", message: tooLarge(bytes.length) };
    const { dev, ino, size, mtimeNs, ctimeNs } = stat;
    return { kind: "content", bytes, identity: { dev, ino, size, mtimeNs, ctimeNs } };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return { kind: "missing" };
    return { kind: "unreadable", message: `cannot be read: ${explain(code) ?? message}` };
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** The file may have grown since it was measured: reads to its end, within the limit. */
function readAll(fd: number, expected: number): Uint8Array {
  let buffer = Buffer.alloc(Math.min(expected + 1, MAX_MANIFEST_BYTES));
  let length = 0;
  while (length < MAX_MANIFEST_BYTES) {
    if (length === buffer.length) {
      const larger = Buffer.alloc(Math.min(buffer.length * 2, MAX_MANIFEST_BYTES));
      buffer.copy(larger);
      buffer = larger;
    }
    const read = readSync(fd, buffer, length, buffer.length - length, length);
    if (read === 0) break;
    length += read;
  }
  return buffer.subarray(0, length);
}

function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
  return a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs;
}

const tooLarge = (size: number | bigint): string => `is too large: ${size} bytes, must be below ${MAX_MANIFEST_BYTES}`;

function explain(code: string | undefined): string | undefined {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return "permission denied";
    case "ELOOP":
      return "a symbolic link that leads to itself";
    case "ENOTDIR":
      return "part of the path is not a directory";
    case "EIO":
      return "the disk reports an error (EIO)";
    case "ESTALE":
      return "its network file system is gone (ESTALE)";
    default:
      return undefined;
  }
}
