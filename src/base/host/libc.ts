import { existsSync } from "node:fs";

const MUSL_ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/** The C library for bun:ffi: musl's on Alpine, else glibc's. */
export function libcPath(): string {
  const musl = `/lib/libc.musl-${MUSL_ARCHITECTURES[process.arch] ?? process.arch}.so.1`;
  return existsSync(musl) ? musl : "libc.so.6";
}

const load = async () => {
  const { dlopen, FFIType } = await import("bun:ffi");
  const { i32, u32, u64, i64, ptr } = FFIType;
  const addressOf = { args: [i32, ptr, ptr], returns: i32 } as const;
  return dlopen(libcPath(), {
    __errno_location: { args: [], returns: ptr },
    flock: { args: [i32, i32], returns: i32 },
    prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
    socket: { args: [i32, i32, i32], returns: i32 },
    sendto: { args: [i32, ptr, u64, i32, ptr, u32], returns: i64 },
    recv: { args: [i32, ptr, u64, i32], returns: i64 },
    getsockname: addressOf,
    getpeername: addressOf,
    shutdown: { args: [i32, i32], returns: i32 },
    madvise: { args: [u64, u64, i32], returns: i32 },
    close: { args: [i32], returns: i32 },
  }).symbols;
};
let calls: ReturnType<typeof load> | undefined;

/**
 * System calls that Bun does not offer. Loaded once: to compile them takes longer than to call them.
 * @throws Error where Bun may not make code executable (MemoryDenyWriteExecute, BUN_JSC_useJIT=0)
 */
export const loadLibc = () => (calls ??= load());
