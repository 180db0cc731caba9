import { libcPath } from "./flock.ts";

const SYS_CLOSE_RANGE = 436;
const CLOSE_RANGE_CLOEXEC = 4;

/**
 * Replaces this process by a new run of the program with the same pid, so that a service manager notices nothing.
 * @param argv without the name of the program
 * @throws Error where Bun may not make code executable, or the program's file is gone
 */
export async function reExecute(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<never> {
  const { dlopen, FFIType, ptr } = await import("bun:ffi");
  const { i32, u32, i64 } = FFIType;
  const { symbols } = dlopen(libcPath(), {
    execve: { args: [FFIType.ptr, FFIType.ptr, FFIType.ptr], returns: i32 },
    syscall: { args: [i64, u32, u32, u32], returns: i64 },
  });
  const program = process.execPath;
  const variables = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  const toStrings = (texts: readonly string[]) => {
    const strings = texts.map((text) => Buffer.from(`${text}\0`));
    return { strings, pointers: BigUint64Array.from([...strings.map((bytes) => BigInt(ptr(bytes))), 0n]) };
  };
  const args = toStrings([program, ...argv]);
  const env = toStrings(variables);
  // Old kernels lack it; descriptors of this program are closed by exec anyway.
  symbols.syscall(BigInt(SYS_CLOSE_RANGE), 3, 0xffff_ffff, CLOSE_RANGE_CLOEXEC);
  symbols.execve(Buffer.from(`${program}\0`), args.pointers, env.pointers);
  throw new Error(
    `"${program}" could not be executed again (${args.strings.length} arguments, ${env.strings.length} variables)`,
  );
}
