import type { Pod } from "../../base/api/pod.ts";
import { runProgram } from "../../base/host/run-program.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { ActionResult } from "../../page/wire.ts";
import type { PageActions } from "../../server/page/page-routes.ts";

interface PageActionsDeps {
  rootDir: string;
  /** This program, as it is started again. */
  command: readonly string[];
  pods: () => readonly Pod[];
}

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** Unit: UTF-16 code units. */
const MAX_MESSAGE = 16_384;
/** Each is a process of its own. */
const MAX_COMMANDS = 4;

/** Actions of the page: those of the command line, with its texts. */
export function createPageActions({ rootDir, command, pods }: PageActionsDeps): PageActions {
  let running = 0;
  const start = async (args: readonly string[], input = ""): Promise<CommandResult> => {
    if (running >= MAX_COMMANDS) return { ok: false, message: BUSY, stdout: "" };
    running++;
    return await runCommand([...command, ...args], input).finally(() => running--);
  };
  const ofPod = async (uid: string, verb: string, ...flags: string[]): Promise<ActionResult> => {
    const pod = pods().find(({ metadata }) => metadata.uid === uid);
    if (!pod) return GONE;
    const { name = "", namespace = "default" } = pod.metadata;
    return toResult(await start([verb, `pod/${name}`, `--namespace=${namespace}`, ...flags, `--root-dir=${rootDir}`]));
  };
  return {
    apply: async (manifest, dryRun) => {
      const flags = dryRun ? ["--dry-run=server"] : [];
      const applied = await start(["apply", "-f", "-", ...flags, `--root-dir=${rootDir}`], manifest);
      if (applied.ok) return toResult(applied);
      // The API names fields; the check of manifests names lines too.
      const findings = toFindings((await start(["validate", "-"], manifest)).message);
      return toResult({ ...applied, message: joinFindings(applied, findings) });
    },
    compare: async (manifest) => {
      const compared = await start(["diff", "-f", "-", `--root-dir=${rootDir}`], manifest);
      // It ends with 1 when there is a difference.
      const isDifference = compared.exitCode === 1 && / "[^"]*"$/m.test(compared.stdout.split("\n", 1)[0] ?? "");
      if (compared.ok) return { ok: true, message: "No difference: nothing restarts." };
      if (!isDifference) return toResult({ ...compared, message: toFindings(compared.message) || compared.message });
      return toResult({ ...compared, ok: true, message: shortenDiff(compared.message, MAX_MESSAGE) });
    },
    // The pod is shown as Terminating meanwhile; its grace period may be longer than a request.
    remove: async (uid) => {
      const { ok, message } = await ofPod(uid, "delete", "--wait=false");
      return { ok, message: ok ? `${message}: its containers are being stopped` : message };
    },
    restart: (uid) => ofPod(uid, "restart"),
  };
}

/** Adds the findings to a message, which names the objects that were applied before the error: each object of a manifest is applied alone. Pure. */
export function joinFindings({ message, stdout }: Pick<CommandResult, "message" | "stdout">, findings: string): string {
  if (findings === "") return message;
  return stdout.trim() === "" ? findings : `${message}\n\n${findings}`;
}

/** A difference that is too long is shown as what it changes and restarts, without its lines. Pure. */
export function shortenDiff(message: string, maxLength: number): string {
  if (message.length <= maxLength) return message;
  const kept = message.split("\n").filter((line) => !line.startsWith("  ") || line.startsWith("  => "));
  return `${kept.join("\n")}\n(${message.length} characters of changed lines are left out: kubelet-ts diff shows them)`;
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
const BUSY = "Other commands of the page are still running: try again when they have ended.";

interface CommandResult extends ActionResult {
  exitCode?: number;
  stdout: string;
}

const toResult = ({ ok, message }: CommandResult): ActionResult => ({
  ok,
  message: message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}\n… (the rest is left out)` : message,
});

async function runCommand(argv: readonly string[], input: string): Promise<CommandResult> {
  try {
    const { exitCode, stdout, stderr } = await runProgram(argv, {
      input,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_OUTPUT_BYTES,
    });
    return { ok: exitCode === 0, exitCode, message: withoutCommand(stdout + stderr), stdout };
  } catch (error) {
    return { ok: false, message: messageOf(error), stdout: "" };
  }
}
