import type { Pod } from "../../api/pod.ts";
import { runProgram } from "../../host/run-program.ts";
import type { ActionResult } from "../../page/wire.ts";
import type { PageActions } from "../../pageserver/page-routes.ts";
import { messageOf } from "../../text/error-message.ts";

export interface PageActionsDeps {
  rootDir: string;
  /** This program, as it is started again. */
  command: readonly string[];
  pods: () => readonly Pod[];
}

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** Unit: UTF-16 code units. */
const MAX_MESSAGE = 16_384;

/** Actions of the page: those of the command line, with its texts. */
export function createPageActions({ rootDir, command, pods }: PageActionsDeps): PageActions {
  const find = (uid: string) => pods().find(({ metadata }) => metadata.uid === uid);
  const run = (args: readonly string[], input = "") =>
    runCommand([...command, ...args, `--root-dir=${rootDir}`], input);
  const ofPod = async (uid: string, verb: "delete" | "restart"): Promise<ActionResult> => {
    const pod = find(uid);
    if (!pod) return GONE;
    const { name = "", namespace = "default" } = pod.metadata;
    return run([verb, `pod/${name}`, `--namespace=${namespace}`]);
  };
  return {
    apply: async (manifest, dryRun) => {
      const applied = await run(["apply", "-f", "-", ...(dryRun ? ["--dry-run=server"] : [])], manifest);
      if (applied.ok) return applied;
      // The API names fields; the check of manifests names lines too.
      const findings = toFindings((await runCommand([...command, "validate", "-"], manifest)).message);
      return findings === "" ? applied : { ok: false, message: findings };
    },
    compare: (manifest) => compare([...command, "diff", "-f", "-", `--root-dir=${rootDir}`], manifest),
    remove: (uid) => ofPod(uid, "delete"),
    restart: (uid) => ofPod(uid, "restart"),
  };
}

/** Lines `-:6:3: text` of `kubelet-ts validate -` and of `diff` as `line 6, column 3: text`; "" when there are none. Pure. */
export const toFindings = (output: string): string =>
  output
    .split("\n")
    .flatMap((line) => {
      const [, row, column, rest] = /^-:(\d+):(\d+): (?:: )?(.*)$/.exec(line) ?? [];
      return row === undefined ? [] : `line ${row}, column ${column}: ${rest}`;
    })
    .join("\n");

/** An output without the name of the command, which the reader did not type. Pure. */
export const withoutCommand = (output: string): string => output.trim().replace(/^kubelet-ts \w+: (?:-: )?/gm, "");

const GONE: ActionResult = { ok: false, message: "This pod is no longer on the node." };

/** `kubelet-ts diff`, which ends with 1 when there is a difference. */
async function compare(argv: readonly string[], input: string): Promise<ActionResult> {
  const { ok, message, exitCode } = await runCommand(argv, input);
  if (ok) return { ok, message: "No difference: nothing restarts." };
  const isDifference = exitCode === 1 && message.startsWith('pod "');
  return { ok: isDifference, message: isDifference ? message : toFindings(message) || message };
}

async function runCommand(argv: readonly string[], input: string): Promise<ActionResult & { exitCode?: number }> {
  try {
    const { exitCode, stdout, stderr } = await runProgram(argv, {
      input,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_OUTPUT_BYTES,
    });
    return { ok: exitCode === 0, exitCode, message: withoutCommand(stdout + stderr).slice(0, MAX_MESSAGE) };
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}
