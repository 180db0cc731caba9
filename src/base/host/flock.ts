import { loadLibc } from "./libc.ts";

const LOCK_EX = 2;
const LOCK_NB = 4;
const EINTR = 4;
const EWOULDBLOCK = 11;

/**
 * Takes an exclusive flock(2) without waiting. It ends with the descriptor; child processes do not inherit it.
 * @returns false when another process holds it
 * @throws Error when the kernel or the runtime offers no way to take the lock
 */
export async function tryFlock(descriptor: number): Promise<boolean> {
  try {
    return await flockByCall(descriptor);
  } catch (error) {
    return flockByProgram(descriptor, error as Error);
  }
}

async function flockByCall(descriptor: number): Promise<boolean> {
  const libc = await loadLibc();
  const { read } = await import("bun:ffi");
  for (;;) {
    if (libc.flock(descriptor, LOCK_EX | LOCK_NB) === 0) return true;
    const location = libc.__errno_location();
    const errno = location === null ? 0 : read.i32(location);
    if (errno === EWOULDBLOCK) return false;
    if (errno !== EINTR) throw new Error(`flock failed with errno ${errno}`);
  }
}

/** flock(1) locks the open file that it is given as its own descriptor 3: the lock stays when it has ended. */
function flockByProgram(descriptor: number, cause: Error): boolean {
  const path = Bun.which("flock");
  if (path === null) {
    throw new Error(
      `bun:ffi is not available (${cause.message}) and flock(1) is not installed. Install util-linux, or allow executable memory (systemd: MemoryDenyWriteExecute=no)`,
      { cause },
    );
  }
  const { exitCode } = Bun.spawnSync([path, "-x", "-n", "3"], {
    stdio: ["ignore", "ignore", "ignore", descriptor],
    timeout: 5_000,
  });
  if (exitCode === 0 || exitCode === 1) return exitCode === 0;
  throw new Error(`${path} ended with exit code ${exitCode} (bun:ffi: ${cause.message})`, { cause });
}
