import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { readPlainObjects } from "../../manifest/plain-objects.ts";
import { readManifest } from "../../manifest/read-manifest.ts";
import { compareNames, hasManifestExtension, skipReason } from "../../sources/manifest-files.ts";
import { describeFinding } from "../../sources/source-set.ts";
import { CommandError, UsageError } from "../sub-command.ts";
import { readInputs } from "../validate-inputs.ts";
import type { ApiObject } from "./api-client.ts";

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

/** Every object of such texts; a List counts as its items. @throws CommandError with the place of the first mistake */
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
  const place = line === undefined ? "" : `${line}:${column}:`;
  throw new CommandError(error ? describeFinding(error) : `${file}:${place} ${message}`);
}
