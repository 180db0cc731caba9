import { existsSync } from "node:fs";

const MUSL_ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/** The C library for bun:ffi: musl's on Alpine, else glibc's. */
export function libcPath(): string {
  const musl = `/lib/libc.musl-${MUSL_ARCHITECTURES[process.arch] ?? process.arch}.so.1`;
  return existsSync(musl) ? musl : "libc.so.6";
}
