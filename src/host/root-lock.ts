import { createConnection, createServer } from "node:net";

/** What a running kubelet tells whoever asks on its root directory's socket. Any local user may ask: no secrets. */
export interface InstanceIntroduction {
  pid: number;
  /** Semantic version, without `v`. */
  version: string;
  nodeName: string;
  rootDir: string;
  /** `run-once` has no servers, and ends soon. */
  mode: "supervise" | "run-once";
  /** Where the read-only port answers, as this machine reaches it; undefined while it does not. */
  readOnlyUrl: string | undefined;
  /** As configured; 0 is off. */
  readOnlyPort: number;
  /** A Unix socket that answers as that port does, for the user we run as alone; undefined while there is none. */
  socketPath: string | undefined;
  /** e.g. `unix:///var/run/docker.sock`. */
  dockerEndpoint: string;
  /** Where the page answers; absent while it does not. */
  pageUrl?: string | undefined;
}

const PREFIX = "kubelet-ts-";

/** A kubelet answers from memory; one whose loop is stuck must not hold up whoever asks. */
const ANSWER_LIMIT_MS = 2_000;
const MAX_INTRODUCTION_CHARS = 16_384;

/**
 * Makes sure that only one process works on a root directory: an abstract Unix socket, which the kernel frees with the
 * process however it dies. The scope is the network namespace.
 * @param rootHash of the root directory
 * @param introduce asked anew by each who connects
 * @returns a function that gives the place up; undefined when another process has it
 */
export function lockRootDir(
  rootHash: string,
  introduce: () => InstanceIntroduction,
): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      // Who has gone already need not be told.
      socket.on("error", () => {});
      socket.end(`${JSON.stringify(introduce())}\n`);
    });
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen(`\0${PREFIX}${rootHash}`, () => {
      server.unref();
      resolve(() => void server.close());
    });
  });
}

/**
 * Asks whoever works on a root directory.
 * @param rootHash of the root directory
 * @returns undefined: nobody does; "silent": somebody who does not say who it is (stuck, or of an older version)
 */
export function askInstance(rootHash: string): Promise<InstanceIntroduction | "silent" | undefined> {
  return new Promise((resolve) => {
    let text = "";
    const socket = createConnection(`\0${PREFIX}${rootHash}`);
    const timer = setTimeout(() => end("silent"), ANSWER_LIMIT_MS);
    const end = (outcome: InstanceIntroduction | "silent" | undefined) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    socket.setEncoding("utf8");
    socket.on("data", (piece) => {
      text += String(piece);
      if (text.length > MAX_INTRODUCTION_CHARS) end("silent");
    });
    socket.on("error", ({ code }: NodeJS.ErrnoException) => end(code === "ECONNREFUSED" ? undefined : "silent"));
    socket.on("close", () => end(parseIntroduction(text) ?? "silent"));
  });
}

/** Root hashes of all that run here, from the text of `/proc/net/unix`. */
export function parseInstanceHashes(unixSockets: string): string[] {
  const found = unixSockets.matchAll(/ @kubelet-ts-([0-9a-f]{16})$/gm);
  return [...new Set(Array.from(found, ([, hash]) => hash!))];
}

function parseIntroduction(text: string): InstanceIntroduction | undefined {
  try {
    const said = JSON.parse(text) as Partial<InstanceIntroduction> | null;
    const { pid, version, nodeName, rootDir, mode, readOnlyUrl, readOnlyPort, dockerEndpoint, socketPath } = said ?? {};
    if (typeof pid !== "number" || typeof readOnlyPort !== "number") return undefined;
    const texts = [version, nodeName, rootDir, dockerEndpoint, readOnlyUrl ?? "", socketPath ?? ""];
    if (!texts.every((value) => typeof value === "string") || (mode !== "supervise" && mode !== "run-once")) {
      return undefined;
    }
    return said as InstanceIntroduction;
  } catch {
    return undefined;
  }
}
