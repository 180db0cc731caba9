import { rmSync, writeFileSync } from "node:fs";
import { readBoundedText, readTextIfExists } from "../base/files/bounded-read.ts";
import type { PodFileSystem } from "./pod-effects.ts";
import { makeTerminationLog, readTerminationLog } from "./termination-log.ts";

/** In this thread, without a deadline; for other threads and for tests. */
export const LOCAL_POD_FILES: PodFileSystem = {
  makeTerminationLog: async (path) => makeTerminationLog(path),
  readTerminationLog: async (path) => readTerminationLog(path),
  removeFile: async (path) => rmSync(path, { force: true }),
  overwriteFile: async (path, text) => writeFileSync(path, text),
  readText: async (path, maxBytes) => readBoundedText(path, maxBytes),
  readTextIfExists: async (path, maxBytes) => readTextIfExists(path, maxBytes),
};
