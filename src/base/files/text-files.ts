import { join } from "node:path";
import { namesIfReadable, readTextIfExists, readTextIfReadable } from "./bounded-read.ts";
import { type ReplaceFile, replaceFile } from "./replace-file.ts";

/** Text files anywhere on the host. Their disk may not respond: the process that supervises pods reads them in other threads. */
export interface TextFiles {
  /** @returns undefined when there is no such file @throws UnreadableFileError; when the disk does not respond */
  readText(path: string, maxBytes: number): Promise<string | undefined>;
  /** Files of a directory with one of these extensions (`.crt`), by name; none when it is missing. */
  readDirectory(directory: string, extensions: readonly string[], maxBytes: number): Promise<DirectoryText[]>;
  replaceFile: ReplaceFile;
}

export interface DirectoryText {
  name: string;
  /** undefined when it cannot be read. */
  text: string | undefined;
}

/** In this thread, without a deadline: for commands, for the start of the process, and for tests. */
export const LOCAL_TEXT_FILES: TextFiles = {
  readText: async (path, maxBytes) => readTextIfExists(path, maxBytes),
  readDirectory: async (...args) => readDirectoryTexts(...args),
  replaceFile,
};

/** {@link TextFiles.readDirectory} in this thread. */
export function readDirectoryTexts(
  directory: string,
  extensions: readonly string[],
  maxBytes: number,
): DirectoryText[] {
  const names = namesIfReadable(directory).filter((name) => extensions.some((extension) => name.endsWith(extension)));
  return names.sort().map((name) => ({ name, text: readTextIfReadable(join(directory, name), maxBytes) }));
}
