import { messageOf } from "../text/error-message.ts";
import type { IpFamily } from "../text/ip-range.ts";
import { type RunProgramOptions, runProgram } from "./run-program.ts";

const LIMITS: RunProgramOptions = { timeoutMs: 30_000, maxBytes: 32 * 1024 * 1024 };

/** Time for which iptables-legacy waits for its lock; the other one needs none and takes the flag. Unit: seconds. */
export const LOCK_WAIT_SECONDS = 5;

/** @returns its output @throws Error with what the program said; with the code `ENOENT` when it is not installed */
export async function runIptables(
  family: IpFamily,
  verb: "save" | "restore",
  args: readonly string[],
  { run = runProgram, input }: { run?: typeof runProgram; input?: string } = {},
): Promise<string> {
  const program = `${family === "IPv4" ? "ip" : "ip6"}tables-${verb}`;
  const { exitCode, stdout, stderr } = await run([program, ...args], { ...LIMITS, input });
  if (exitCode === 0) return stdout;
  // The first line may be the name of the program alone.
  const said = stderr.split("\n").find((line) => /[^:\s]\s*$/.test(line)) ?? `exit code ${exitCode}`;
  throw new Error(`${program}: ${said.replace(/^ip6?tables-\w+:? /, "").trim()}`);
}

/** Changes the rules that the text names. @throws Error with what iptables-restore said */
export async function restoreRules(family: IpFamily, input: string, run = runProgram): Promise<void> {
  await runIptables(family, "restore", ["--noflush", "--wait", `${LOCK_WAIT_SECONDS}`], { run, input });
}

/** Tries whether the kernel takes rules of Services, by a chain that is removed at once. @throws Error when it takes none now */
export const probeRules = (family: IpFamily, chain: string, run = runProgram): Promise<void> =>
  restoreRules(family, `*nat\n:${chain} - [0:0]\n-X ${chain}\nCOMMIT\n`, run);

/** Why a kubelet-ts of this user could give Services no addresses now; undefined where it could. */
export async function findRulesProblem(families: readonly IpFamily[] = ["IPv4"]): Promise<string | undefined> {
  if (families.length === 0) return "--service-cluster-ip-range is none";
  if (process.getuid?.() !== 0) return "kubelet-ts does not run as root";
  try {
    for (const family of families) await probeRules(family, "KTS-PROBE");
    return undefined;
  } catch (error) {
    return `no rules can be written (${messageOf(error)})`;
  }
}
