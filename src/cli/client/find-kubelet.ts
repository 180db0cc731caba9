import { accessSync, constants, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { askInstance, type InstanceIntroduction, parseInstanceHashes } from "../../host/root-lock.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../model/kubelet-options.ts";
import { computeRootHash } from "../../runtime/labels.ts";

/** A kubelet that can be asked. */
export interface FoundKubelet {
  /** Of its read-only port, without a slash at the end. */
  url: string;
  /** Its Unix socket, to be asked instead of the host of the URL. */
  socketPath?: string;
  /** What it said of itself; absent when its address was given. */
  introduction?: InstanceIntroduction;
}

/** Why none can be asked, and where it was looked for. */
export interface NoKubelet {
  problem: string;
  /** One runs, but has no address. */
  introduction?: InstanceIntroduction;
}

/** How running kubelets are found on this machine. */
export interface InstanceFinder {
  ask: (rootHash: string) => Promise<InstanceIntroduction | "silent" | undefined>;
  /** Root hashes of all that run. */
  list: () => string[];
  /** Whether we may use a Unix socket. */
  mayUse: (socketPath: string) => boolean;
}

/** Through the sockets that keep a second kubelet from a root directory. */
export const localInstances: InstanceFinder = {
  ask: askInstance,
  list: () => {
    try {
      return parseInstanceHashes(readFileSync("/proc/net/unix", "utf8"));
    } catch {
      // Without /proc only the default can be tried.
      return [];
    }
  },
  mayUse: (path) => {
    try {
      accessSync(path, constants.R_OK | constants.W_OK);
      return true;
    } catch {
      return false;
    }
  },
};

/** What the flags say. */
export interface FindingOptions {
  rootDir: string | undefined;
  server: string | undefined;
}

/** The kubelet of the flags: at `--server`, of `--root-dir`, of the default root directory, else the only one there is. */
export async function findKubelet(
  { rootDir, server }: FindingOptions,
  finder: InstanceFinder = localInstances,
): Promise<FoundKubelet | NoKubelet> {
  if (server !== undefined) {
    const url = toServerUrl(server);
    return url ? { url } : { problem: `--server must be a URL, host:port or a port (found "${server}")` };
  }
  const wanted = resolve(rootDir ?? DEFAULT_KUBELET_OPTIONS.rootDir);
  const said = await finder.ask(computeRootHash(wanted));
  if (said !== undefined) return toKubelet(said, wanted, finder);
  const others = await askAll(finder);
  const [only] = others;
  if (rootDir === undefined && only && others.length === 1) return toKubelet(only, only.rootDir, finder);
  return { problem: `no kubelet runs on the root directory "${wanted}"${hintOf(rootDir, others)}` };
}

async function askAll(finder: InstanceFinder): Promise<InstanceIntroduction[]> {
  const answers = await Promise.all(finder.list().map((hash) => finder.ask(hash)));
  const known = answers.filter((answer) => answer !== undefined && answer !== "silent");
  return known.toSorted((a, b) => (a.rootDir < b.rootDir ? -1 : 1));
}

function toKubelet(
  said: InstanceIntroduction | "silent",
  rootDir: string,
  { mayUse }: InstanceFinder,
): FoundKubelet | NoKubelet {
  if (said === "silent") {
    return {
      problem: `the kubelet that works on "${rootDir}" does not say where it can be asked (it hangs, or is of an older version): give its address with --server`,
    };
  }
  const { readOnlyUrl, mode, pid, socketPath } = said;
  if (socketPath !== undefined && mayUse(socketPath)) {
    return { url: "http://kubelet", socketPath, introduction: said };
  }
  if (readOnlyUrl !== undefined) return { url: readOnlyUrl, introduction: said };
  const who = `the kubelet-ts that works on "${said.rootDir}" (pid ${pid})`;
  const why = mode === "run-once" ? "only starts pods (--runonce) and cannot be asked" : silence(said);
  return { problem: `${who} ${why}`, introduction: said };
}

/** Why one that supervises pods has no address for us. */
function silence({ readOnlyPort, socketPath }: InstanceIntroduction): string {
  const port =
    readOnlyPort === 0
      ? "has its read-only port off"
      : `does not answer on its read-only port ${readOnlyPort} (another program may have it: see its log)`;
  if (socketPath !== undefined)
    return `${port}, and its socket is for its own user alone: ask as that user, usually root`;
  return readOnlyPort === 0 ? `${port}: start it with --read-only-port=10255` : `${port}, or starts just now`;
}

function hintOf(rootDir: string | undefined, others: readonly InstanceIntroduction[]): string {
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
