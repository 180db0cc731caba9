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
 * Every object of files, directories, URLs and standard input, in their order; a List counts as its items.
 * @param isRecursive directories are entered too
 * @throws CommandError with the place of the first mistake, UsageError without any file
 */
export async function readManifestObjects(files: readonly string[], isRecursive = false): Promise<ManifestObject[]> {
  if (files.length === 0) throw new UsageError("give -f with a file, a directory, a URL or -");
  const objects: ManifestObject[] = [];
  const paths = isRecursive ? files.flatMap(manifestsBelow) : files;
  for (const input of await readInputs(paths, () => Bun.stdin.stream())) {
    if ("problem" in input) throw new CommandError(`${input.file}: ${input.problem}`);
    if (!("bytes" in input)) continue;
    objects.push(...objectsOf(input.file, input.bytes));
  }
  if (objects.length === 0) throw new CommandError(`there is no object in ${files.join(", ")}`);
  return objects;
}

/** The manifest files of a directory and those below it, sorted by name; another path is returned unchanged. @throws CommandError */
export function manifestsBelow(path: string): string[] {
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
  const { message, line, column } = read.problem;
  throw refusal(file, bytes, `${file}:${line === undefined ? "" : `${line}:${column}:`} ${message}`);
}

/** The first error of a text as the kubelet reads it, which names formats of other programs and the next step. */
function refusal(file: string, bytes: Uint8Array, otherwise: string): CommandError {
  const { findings } = readManifest(bytes, { file, nodeName: "node", source: "file", strictness: "ignore" });
  const error = findings.find(({ severity }) => severity === "error");
  return new CommandError(error ? describeFinding(error) : otherwise);
}
