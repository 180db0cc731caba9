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
 * Settings of the runtime that it reads when the process starts, and only then. Those of the user stay.
 *
 * - Fetches that may be open at a time, 256 by default. A followed log, an exec and a stop that waits are a fetch each, and
 *   every further one, even a list of the containers, waits until one of them ends.
 * - Memory of the machine for which the garbage collector plans: with that of a real one it lets 60 MB of garbage gather
 *   in a burst of requests before it collects, with 192 MiB two thirds of it. With less, a scrape of a hundred
 *   pods spends more time on collecting. It is no limit.
 * - No second optimizing compiler: a kubelet works for milliseconds at a time. Without it the program reads 1,800 objects in
 *   0.53 s of processor time instead of 0.77 s and has 6 MB less, and compiling for a change of a Service costs 2 ms instead of 5.
 */
const RUNTIME_VARIABLES = {
  BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
  BUN_JSC_forceRAMSize: String(192 * 1024 * 1024),
  BUN_JSC_useFTLJIT: "0",
};

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
  if (maskArguments(argv).some((argument, index) => argument !== argv[index])) tryReplaceProcess(argv);
  return argv;
}

/** Replaces the process by one with {@link RUNTIME_VARIABLES}, where one is not set. Costs a start of the runtime, 5 ms. */
export function setRuntimeVariables(argv: readonly string[]): void {
  const isSet = Object.keys(RUNTIME_VARIABLES).every((name) => process.env[name] !== undefined);
  if (!isSet) tryReplaceProcess(argv);
}

function tryReplaceProcess(argv: readonly string[]): void {
  try {
    replaceProcess(argv, process.env);
  } catch {
    // The arguments stay visible and the limit stays low; the kubelet works without this.
  }
}

/**
 * Starts the program again as this process, with the same pid, so that a service manager notices nothing, and without its
 * secrets in sight.
 * @param argv without the name of the program
 * @throws Error where that is not possible, or the program's file is gone
 */
export function replaceProcess(argv: readonly string[], environment: Readonly<NodeJS.ProcessEnv>): never {
  // Only the compiled executable can be started with nothing but its arguments.
  if (!Bun.isStandaloneExecutable || process.execve === undefined) throw new Error("this is not the compiled program");
  process.execve(process.execPath, [process.argv0, ...maskArguments(argv)], {
    ...RUNTIME_VARIABLES,
    ...(environment as Record<string, string>),
    [VARIABLE]: JSON.stringify(argv),
  });
  throw new Error(`"${process.execPath}" could not be executed again`);
}
