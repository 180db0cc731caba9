import { existsSync } from "node:fs";

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

/** Calls flock of the C library. @throws Error where Bun may not make code executable (MemoryDenyWriteExecute, BUN_JSC_useJIT=0) */
async function flockByCall(descriptor: number): Promise<boolean> {
  const { dlopen, FFIType, read } = await import("bun:ffi");
  const library = dlopen(libcPath(), {
    flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
    __errno_location: { args: [], returns: FFIType.ptr },
  });
  try {
    for (;;) {
      if (library.symbols.flock(descriptor, LOCK_EX | LOCK_NB) === 0) return true;
      const location = library.symbols.__errno_location();
      const errno = location === null ? 0 : read.i32(location);
      if (errno === EWOULDBLOCK) return false;
      if (errno !== EINTR) throw new Error(`flock failed with errno ${errno}`);
    }
  } finally {
    library.close();
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

const MUSL_ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/** The C library for bun:ffi: musl's on Alpine, else glibc's. */
export function libcPath(): string {
  const musl = `/lib/libc.musl-${MUSL_ARCHITECTURES[process.arch] ?? process.arch}.so.1`;
  return existsSync(musl) ? musl : "libc.so.6";
}
