import { join } from "node:path";
import { readTextIfExists, replaceFile, UnreadableFileError } from "../files/whole-file.ts";
import { messageOf } from "../text/error-message.ts";
import { readNodeName } from "./node-info.ts";

/** The names under which a root directory was used, the first and the present one among them. */
interface KeptNames {
  /** The first name: containers and state files of this root directory always have it. */
  owner: string;
  /** The name at the last run. */
  name: string;
  /** All names but the present one. */
  former: readonly string[];
  /** At the last run it was that of `--hostname-override`. */
  isChosen?: true;
}

const MAX_BYTES = 64 * 1024;
const MAX_FORMER = 20;

const pathOf = (rootDir: string): string => join(rootDir, "state", "node-name.json");

const readText = (rootDir: string): string | undefined => readTextIfExists(pathOf(rootDir), MAX_BYTES);

/**
 * The names of a root directory. In one that was not used yet, or by an older version, or that this user may not read, all
 * are that of the node.
 * @throws Error when the disk does not give them: under another name its pods would run twice
 */
export function readKeptNames(rootDir: string, nodeName: string): KeptNames {
  const none = onlyName(nodeName);
  const text = readIfAllowed(rootDir);
  try {
    const kept = JSON.parse(text ?? "null") as Partial<KeptNames> | null;
    const former = Array.isArray(kept?.former) ? kept.former.filter((name) => typeof name === "string") : [];
    return typeof kept?.owner === "string" && typeof kept.name === "string"
      ? { owner: kept.owner, name: kept.name, former, ...(kept.isChosen === true && { isChosen: true as const }) }
      : none;
  } catch {
    return none;
  }
}

const onlyName = (name: string): KeptNames => ({ owner: name, name, former: [] });

/** As {@link readKeptNames}, for what is only shown: a disk that fails gives none. */
export function readKeptNamesIfReadable(rootDir: string, nodeName: string): KeptNames {
  try {
    return readKeptNames(rootDir, nodeName);
  } catch {
    return onlyName(nodeName);
  }
}

function readIfAllowed(rootDir: string): string | undefined {
  try {
    return readText(rootDir);
  } catch (error) {
    const isRefused = ["EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "");
    if (isRefused || error instanceof UnreadableFileError) return undefined;
    throw new Error(`Cannot read "${pathOf(rootDir)}", which keeps the name of this node: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** The name of the node that a pod's name ends with, of all names its root directory was used with, else the first. */
export function nodeNameOfPod(rootDir: string, podName: string, owner: string): string {
  const { name, former } = readKeptNamesIfReadable(rootDir, owner);
  return [name, ...former].find((it) => podName.endsWith(`-${it}`)) ?? owner;
}

/**
 * The name of the node of a root directory: that of `--hostname-override`, else that of the last run, else that of the
 * machine. A machine that is renamed keeps its pods, which have the name of the node in theirs.
 * @returns `notices` for the log when the name differs from that of the last run or of the machine
 */
export function keepNodeName(rootDir: string, override: string): { name: string; notices: string[] } {
  const machine = readNodeName("");
  const kept = readKeptNames(rootDir, readNodeName(override));
  const name = override === "" ? kept.name : readNodeName(override);
  const notices: string[] = [];
  if (name !== kept.name) {
    notices.push(
      `The node was "${kept.name}" and is "${name}" now: pods of manifests are replaced one by one, those of workloads run on`,
    );
  } else if (override === "" && name !== machine) {
    notices.push(
      `This machine is called "${machine}" now; the node stays "${name}", so that no pod is restarted. To rename it, set --hostname-override=${machine}`,
    );
  }
  const former = new Set([kept.name, ...kept.former]);
  former.delete(name);
  const chosen = override === "" ? {} : { isChosen: true };
  const next = JSON.stringify({ owner: kept.owner, name, former: [...former].slice(0, MAX_FORMER), ...chosen });
  try {
    if (readText(rootDir) !== next) replaceFile(pathOf(rootDir), next, { durable: true });
  } catch (error) {
    const why = messageOf(error);
    if (name === kept.name) {
      const what = `The name of the node cannot be kept: ${why}. Renaming the machine would start its pods twice`;
      return { name, notices: [...notices, what] };
    }
    // Under a name that a later start does not know of, its pods would run twice.
    return { name: kept.name, notices: [`The node stays "${kept.name}": its new name cannot be kept: ${why}`] };
  }
  return { name, notices };
}
