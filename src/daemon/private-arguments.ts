import { maskUrl } from "../base/text/url.ts";

/** Carries the real arguments to the process that replaces this one. */
const VARIABLE = "KUBELET_TS_ARGUMENTS";

/** The one flag whose values are credentials; pflag takes `-` for `_` and one dash for two. */
const SECRET_FLAG = /^--?manifest[-_]url[-_]header$/;

/** The arguments as any user may see them; equal to `argv` when they hold no secret. */
export function maskArguments(argv: readonly string[]): string[] {
  return argv.map((argument, index) => {
    if (SECRET_FLAG.test(argv[index - 1] ?? "")) return "***";
    const [, flag = "", value = argument] = /^(--?[\w-]+)=([\s\S]*)$/.exec(argument) ?? [];
    if (SECRET_FLAG.test(flag)) return `${flag}=***`;
    // --manifest-url takes a list.
    const masked = value.replace(/[a-z][a-z0-9+.-]*:[/\\][^,\s]*/gi, maskUrl);
    return flag === "" ? masked : `${flag}=${masked}`;
  });
}

/**
 * Keeps secrets in arguments from ps, and from the report that the runtime prints when it crashes: where there are any,
 * this process is replaced by one with masked arguments, which gets the real ones in its environment.
 * @returns the real arguments
 */
export function takePrivateArguments(argv: readonly string[]): readonly string[] {
  const carried = process.env[VARIABLE];
  if (carried !== undefined) {
    delete process.env[VARIABLE];
    return JSON.parse(carried) as string[];
  }
  const masked = maskArguments(argv);
  const isPrivate = masked.some((argument, index) => argument !== argv[index]);
  // Only the compiled executable can be started with nothing but its arguments.
  if (!isPrivate || !Bun.isStandaloneExecutable || process.execve === undefined) return argv;
  try {
    process.execve(process.execPath, [process.argv0, ...masked], {
      ...(process.env as Record<string, string>),
      [VARIABLE]: JSON.stringify(argv),
    });
  } catch {
    // The arguments stay visible; the kubelet works without this.
  }
  return argv;
}
