import { constants, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { readTextIfReadable } from "../../base/files/whole-file.ts";
import {
  describeNamelessHolder,
  type InstanceInfo,
  listInstances,
  mayAccess,
  readInstance,
} from "../../base/host/root-directory.ts";
import { unlessFailed } from "../../base/text/error-message.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../config/option-table.ts";
import { CommandError, type CommandRequest } from "../sub-command.ts";
import { readKeptPods } from "./kept-pods.ts";

/** The kubelet did not answer, or not as it should; the message is for users. */
export class KubeletApiError extends CommandError {}

/** A kubelet that can be asked. */
interface FoundKubelet {
  /** URL of its read-only port, without a slash at the end. */
  url: string;
  /** Its Unix socket, to be asked instead of the host of the URL. */
  socketPath?: string;
  /** Absent when its address was given. */
  instance?: InstanceInfo;
}

/** Why no kubelet can be asked. */
interface NoKubelet {
  problem: string;
  /** One runs, but has no address. */
  instance?: InstanceInfo;
  /** The root directory belongs to another user. */
  isForeign?: true;
  /** No kubelet runs on that root directory, so the engine alone knows its pods. */
  isAbsent?: true;
}

/** How running kubelets are found on this machine. */
export interface InstanceFinder {
  /** The process that uses a root directory; "unreadable" when this user may not know. */
  read: (rootDir: string) => InstanceInfo | "unreadable" | undefined;
  /** Root directories of all that run for this user or root. */
  list: () => string[];
  /** Why a root directory that was removed is in use still. */
  describeNameless: (rootDir: string) => string | undefined;
  /** Whether a kubelet that ran on this root directory has left pods. */
  hasPods: (rootDir: string) => boolean;
  /** Whether we may use a Unix socket. */
  mayUse: (socketPath: string) => boolean;
}

/** Through the lock files in root directories. */
export const localInstances: InstanceFinder = {
  read: readInstance,
  describeNameless: describeNamelessHolder,
  // Without /proc only the default can be tried.
  list: () => unlessFailed(listInstances) ?? [],
  hasPods: (rootDir) => readKeptPods(rootDir).length > 0,
  mayUse: (path) => mayAccess(path, constants.R_OK | constants.W_OK),
};

/** The flags that name a kubelet. */
interface FindingOptions {
  rootDir: string | undefined;
  server: string | undefined;
}

/**
 * The kubelet of the flags: at `--server`, of `--root-dir`, of the default root directory, else the only one there is,
 * unless the default root directory has pods of its own.
 */
export async function findKubelet(
  { rootDir, server }: FindingOptions,
  finder: InstanceFinder = localInstances,
): Promise<FoundKubelet | NoKubelet> {
  if (server !== undefined) {
    const url = toServerUrl(server);
    return url ? { url } : { problem: `--server must be a URL, host:port or a port (found "${server}")` };
  }
  const wanted = resolve(rootDir ?? DEFAULT_KUBELET_OPTIONS.rootDir);
  const found = await readStarted(wanted, finder);
  if (found !== undefined) return toKubelet(found, wanted, finder);
  const removed = finder.describeNameless(wanted);
  if (removed !== undefined) return { problem: removed };
  const others = listKubelets(finder);
  const [only] = others;
  if (rootDir === undefined && only && others.length === 1 && !finder.hasPods(wanted))
    return toKubelet(only, only.rootDir, finder);
  const problem = `no kubelet runs on the root directory "${wanted}"${hintOf(rootDir, others)}`;
  // With another kubelet and no --root-dir, the engine's answer would be a guess.
  return rootDir !== undefined || others.length === 0 ? { problem, isAbsent: true } : { problem };
}

export const STARTING_POLL_MS = 100;
export const STARTING_POLLS = 50;

/** A kubelet that was started a moment ago is waited for until it has its address. */
async function readStarted(rootDir: string, finder: InstanceFinder): Promise<ReturnType<InstanceFinder["read"]>> {
  for (let polls = 0; ; polls++) {
    const found = finder.read(rootDir);
    const isStarting = typeof found === "object" && found.isStarting === true && found.mode === "supervise";
    if (!isStarting || polls >= STARTING_POLLS) return found;
    await Bun.sleep(STARTING_POLL_MS);
  }
}

/** Every kubelet on this machine that this user may know, by root directory. */
export function listKubelets(finder: InstanceFinder = localInstances): InstanceInfo[] {
  const found = finder.list().map((rootDir) => finder.read(rootDir));
  const known = found.filter((instance) => instance !== undefined && instance !== "unreadable");
  return known.toSorted((a, b) => (a.rootDir < b.rootDir ? -1 : 1));
}

function toKubelet(
  instance: InstanceInfo | "unreadable",
  rootDir: string,
  { mayUse }: InstanceFinder,
): FoundKubelet | NoKubelet {
  if (instance === "unreadable") {
    return {
      isForeign: true,
      problem: `the root directory "${rootDir}" belongs to another user: run the command as that user, usually root (sudo); commands that only read also take --server=http://127.0.0.1:10255, if its read-only port is on`,
    };
  }
  const { readOnlyUrl, mode, pid, socketPath } = instance;
  const who = `the kubelet-ts on "${instance.rootDir}" (pid ${pid})`;
  if (instance.isSilent) return { problem: `${who} is stopped and answers nothing: kill -CONT ${pid}`, instance };
  if (socketPath !== undefined && mayUse(socketPath)) return { url: "http://kubelet", socketPath, instance };
  if (readOnlyUrl !== undefined) return { url: readOnlyUrl, instance };
  const why = mode === "run-once" ? "only starts pods (--runonce) and cannot be asked" : whyUnreachable(instance);
  return { problem: `${who} ${why}`, instance };
}

/** Why one that supervises pods has no address for us. */
function whyUnreachable({ readOnlyPort, socketPath }: InstanceInfo): string {
  const port =
    readOnlyPort === 0
      ? "has its read-only port off"
      : `does not answer on its read-only port ${readOnlyPort} (another program may have it: see its log)`;
  if (socketPath !== undefined)
    return `${port}, and its socket is for its own user alone: ask as that user, usually root`;
  return readOnlyPort === 0 ? `${port}: start it with --read-only-port=10255` : `${port}, or starts just now`;
}

function hintOf(rootDir: string | undefined, others: readonly InstanceInfo[]): string {
  if (others.length === 0) {
    const way = rootDir === undefined ? ", nor on any other here" : "";
    return `${way}; start one with: kubelet-ts --pod-manifest-path=<directory>`;
  }
  const list = others.map(({ rootDir: root, nodeName }) => `  --root-dir=${root}  (node "${nodeName}")`);
  return `; ${others.length === 1 ? "one runs" : "some run"} on:\n${list.join("\n")}`;
}

/** `http://host:port` of a URL, of `host:port` or of a port on this machine; undefined when it is none of them. */
export function toServerUrl(text: string): string | undefined {
  const full = /^\d+$/.test(text) ? `http://127.0.0.1:${text}` : text.includes("://") ? text : `http://${text}`;
  if (!URL.canParse(full)) return undefined;
  const { protocol, pathname, host } = new URL(full);
  if ((protocol !== "http:" && protocol !== "https:") || host === "") return undefined;
  return `${protocol}//${host}${pathname.replace(/\/+$/, "")}`;
}

const MAX_BYTES = 4096;

/** File of the user's default context: one line, the root directory of a kubelet. */
export const defaultContextPath = (environment: NodeJS.ProcessEnv = process.env): string =>
  join(environment.XDG_CONFIG_HOME || join(environment.HOME || homedir(), ".config"), "kubelet-ts", "root-dir");

/** @param rootDir undefined removes the choice */
export function writeDefaultContext(rootDir: string | undefined, path = defaultContextPath()): void {
  if (rootDir === undefined) return rmSync(path, { force: true });
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, `${rootDir}\n`, { mode: 0o600 });
}

/** The root directory of the flags, the environment or `kubelet-ts use`, and which of them named it. */
export function chooseRootDir(
  flag: string | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): { rootDir: string; origin: string } | undefined {
  if (flag !== undefined) return { rootDir: flag, origin: "--root-dir" };
  if (environment.KUBELET_TS_ROOT_DIR)
    return { rootDir: environment.KUBELET_TS_ROOT_DIR, origin: "KUBELET_TS_ROOT_DIR" };
  // A file that cannot be read chooses nothing.
  const chosen = readTextIfReadable(defaultContextPath(environment), MAX_BYTES)?.trim();
  return chosen ? { rootDir: chosen, origin: "kubelet-ts use" } : undefined;
}

/** `--root-dir` wins over KUBELET_TS_ROOT_DIR in the environment, that over the default of `kubelet-ts use`. */
export const findingOptions = ({ value }: CommandRequest): FindingOptions => ({
  rootDir: chooseRootDir(value("root-dir"))?.rootDir,
  server: value("server"),
});

/** The kubelet that a command means, and its root directory, or the one where it was looked for. */
export async function locateKubelet(
  request: CommandRequest,
): Promise<(FoundKubelet | NoKubelet) & { rootDir: string }> {
  const options = findingOptions(request);
  const kubelet = await findKubelet(options);
  const rootDir = kubelet.instance?.rootDir ?? resolve(options.rootDir ?? DEFAULT_KUBELET_OPTIONS.rootDir);
  return { ...kubelet, rootDir };
}

/** Bun's fetch applies proxy variables to every address. @returns the environment as it was */
export function removeProxies(): NodeJS.ProcessEnv {
  const before = { ...process.env };
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) {
    delete process.env[name];
    delete process.env[name.toLowerCase()];
  }
  return before;
}
