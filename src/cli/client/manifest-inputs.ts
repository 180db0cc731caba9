import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { readBoundedBytesOf, StreamTooLongError } from "../../base/files/bounded-stream.ts";
import { isPipe, openPipe } from "../../base/files/pipe.ts";
import { LOCAL_TEXT_FILES, namesIfReadable } from "../../base/files/whole-file.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { didYouMean } from "../../base/text/nearest-name.ts";
import { isManifestUrl, maskUrl } from "../../base/text/url.ts";
import { readPlainObjects } from "../../manifest/plain-objects.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { MAX_MANIFEST_BYTES } from "../../manifest/yaml/parse-stream.ts";
import {
  compareNames,
  hasManifestExtension,
  listManifests,
  looksLikeManifest,
  readManifestFile,
  skipReason,
} from "../../sources/manifest-files.ts";
import { describeFinding } from "../../sources/source-set.ts";
import { fetchManifest, type UrlFetchDeps } from "../../sources/url-fetch.ts";
import { CommandError, UsageError } from "../sub-command.ts";
import type { ApiObject } from "./api-client.ts";

/** Message about an input that reaches the limit of manifests. */
export const TOO_LONG = "is 10 MiB or longer";
const FETCH: UrlFetchDeps = {
  options: {
    manifestUrlHeaders: [],
    manifestUrlTimeoutMs: 10_000,
    manifestUrlCaFile: "",
    manifestUrlClientCertFile: "",
    manifestUrlClientKeyFile: "",
  },
  proxyFor: () => undefined,
  files: LOCAL_TEXT_FILES,
};

/** One manifest, why it could not be read, or a file that the kubelet skips because of its name or contents. */
export type ManifestInput =
  | { file: string; bytes: Uint8Array }
  | { file: string; problem: string }
  | { file: string; skipped: string };

/**
 * Reads the arguments: files, the manifest files of directories, URLs, `-`.
 * @param input standard input, read once
 */
export async function readInputs(
  args: readonly string[],
  input: () => AsyncIterable<Uint8Array>,
): Promise<ManifestInput[]> {
  const inputs: ManifestInput[] = [];
  for (const arg of args) {
    if (arg === "-") {
      if (!inputs.some(({ file }) => file === "-")) inputs.push(await readStream("-", input));
    } else if (isManifestUrl(arg)) inputs.push(await fetchInput(arg));
    else if (isPipe(arg)) inputs.push(await readStream(arg, () => openPipe(arg)));
    else inputs.push(...readPath(arg));
  }
  return inputs;
}

/** Reads up to the size limit. */
async function readStream(
  file: string,
  open: () => AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>,
): Promise<ManifestInput> {
  try {
    return { file, bytes: await readBoundedBytesOf(await open(), MAX_MANIFEST_BYTES - 1) };
  } catch (error) {
    return { file, problem: error instanceof StreamTooLongError ? TOO_LONG : messageOf(error) };
  }
}

/** Fetches a URL as the kubelet does, without headers and certificates. */
async function fetchInput(url: string): Promise<ManifestInput> {
  const file = maskUrl(url);
  try {
    const response = await fetchManifest(url, FETCH, {}, new AbortController().signal);
    // A request without validators is never answered with "unchanged".
    return { file, bytes: response.kind === "bytes" ? response.bytes : new Uint8Array() };
  } catch (error) {
    return { file, problem: `cannot be fetched: ${(error as Error).message}` };
  }
}

function readPath(path: string): ManifestInput[] {
  const listing = listManifests(path);
  const hint = listing.kind === "missing" ? didYouMean(basename(path), namesIfReadable(dirname(path))) : "";
  if (listing.kind === "missing") return [{ file: path, problem: `there is no such file or directory${hint}` }];
  if (listing.kind === "unreadable") return [{ file: path, problem: `cannot be read: ${listing.reason}` }];
  const isDirectory = listing.kind === "directory";
  const skipped = (listing.kind === "directory" ? listing.skipped : []).map(
    (entry): ManifestInput => ({ file: entry.path, skipped: entry.reason }),
  );
  const read: ManifestInput[] = listing.files.flatMap((file): ManifestInput[] => {
    const content = readManifestFile(file);
    if (content.kind === "unreadable") return [{ file, problem: content.message }];
    const name = basename(file);
    if (content.kind === "content") {
      const isManifest = !isDirectory || looksLikeManifest(name, content.bytes);
      return [isManifest ? { file, bytes: content.bytes } : { file, skipped: "it has no apiVersion and kind" }];
    }
    if (content.kind === "not-a-file" && isDirectory) return [{ file, skipped: `it is ${content.what}` }];
    // The file was removed after it was listed.
    if (isDirectory) return [];
    return [{ file, problem: content.kind === "not-a-file" ? `is ${content.what}` : "there is no such file" }];
  });
  if (!read.every((input) => "skipped" in input)) return [...read, ...skipped];
  const problem = "the directory has no manifest: its files must end in .yaml, .yml, .json or .manifest";
  return [{ file: path, problem }, ...read, ...skipped];
}

/** An object of a manifest and its file. */
interface ManifestObject {
  file: string;
  object: ApiObject;
}

/** Files below a directory that `-R` reads; links to directories are not followed. */
const MAX_FILES = 10_000;

/**
 * The texts of files, directories, URLs and standard input, in their order.
 * @param isRecursive directories are entered too
 * @throws CommandError about the first that cannot be read, UsageError without any file
 */
export async function readManifestFiles(
  files: readonly string[],
  isRecursive = false,
): Promise<{ file: string; bytes: Uint8Array }[]> {
  if (files.length === 0) throw new UsageError("give -f with a file, a directory, a URL or -");
  const inputs = await readInputs(isRecursive ? files.flatMap(manifestsBelow) : files, () => Bun.stdin.stream());
  return inputs.flatMap((input) => {
    if ("problem" in input) throw new CommandError(`${input.file}: ${input.problem}`);
    return "bytes" in input ? input : [];
  });
}

/** Every object of such texts; a List counts as its items. @throws CommandError with the position of the first mistake */
export async function readManifestObjects(files: readonly string[], isRecursive = false): Promise<ManifestObject[]> {
  const texts = await readManifestFiles(files, isRecursive);
  const objects = texts.flatMap(({ file, bytes }) => objectsOf(file, bytes));
  if (objects.length === 0) throw new CommandError(`there is no object in ${files.join(", ")}`);
  return objects;
}

/** The manifest files of a directory and those below it, sorted by name; another path is returned unchanged. @throws CommandError */
function manifestsBelow(path: string): string[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
  const files = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && hasManifestExtension(entry.name) && skipReason(entry.name) === undefined)
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort(compareNames);
  if (files.length === 0) throw new CommandError(`there is no manifest in "${path}" and the directories below it`);
  if (files.length > MAX_FILES) throw new CommandError(`"${path}" has more than ${MAX_FILES} manifests`);
  return files;
}

function objectsOf(file: string, bytes: Uint8Array): ManifestObject[] {
  const read = readPlainObjects(bytes);
  if ("objects" in read) return read.objects.map((object) => ({ file, object: object as ApiObject }));
  // The kubelet's own reader names formats of other programs and the next step.
  const { findings } = readManifest(bytes, { file, nodeName: "node", source: "file", strictness: "ignore" });
  const error = findings.find(({ severity }) => severity === "error");
  const { message, line, column } = read.problem;
  const position = line === undefined ? "" : `${line}:${column}:`;
  throw new CommandError(error ? describeFinding(error) : `${file}:${position} ${message}`);
}
