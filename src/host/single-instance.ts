import { createServer } from "node:net";

/**
 * Makes sure that only one process works on a root directory: an abstract Unix socket, which the kernel frees with the
 * process however it dies. The scope is the network namespace.
 * @param rootHash of the root directory
 * @returns a function that gives the place up; undefined when another process has it
 */
export function claimRoot(rootHash: string): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen(`\0kubelet-ts-${rootHash}`, () => {
      server.unref();
      resolve(() => void server.close());
    });
  });
}
