import type { ArgDef, ArgsDef } from "citty";
import { didYouMean, nearestByBeginning } from "../base/text/nearest-name.ts";
import { readWords } from "../config/flags.ts";

/** A flag as a citty declaration and its names. */
export interface Flag {
  /** Without dashes. */
  name: string;
  /** One letter. */
  short: string | undefined;
  def: ArgDef;
  takesValue: boolean;
}

/** Arguments of a command line. */
type ReadArguments =
  | { problem: string }
  | { help: true }
  | {
      help: false;
      /** Every value of each flag, in order; booleans as `true` and `false`. */
      values: ReadonlyMap<string, readonly string[]>;
      positionals: string[];
    };

/** Flags every command takes. They may be in front of the command, so a shell alias can hold them. */
export const GLOBAL_ARGS = {
  "root-dir": {
    type: "string",
    valueHint: "directory",
    description: "the kubelet of this root directory (or KUBELET_TS_ROOT_DIR, or see use)",
  },
  server: { type: "string", alias: "s", valueHint: "URL|port", description: "the kubelet at this read-only port" },
  "docker-endpoint": { type: "string", valueHint: "URL", description: "the Docker engine (default: the kubelet's)" },
} satisfies ArgsDef;

const HELP_ARGS = { help: { type: "boolean", alias: "h", description: "show this help" } } satisfies ArgsDef;

export const flagsOf = (args: ArgsDef): Flag[] =>
  Object.entries<ArgDef>({ ...args, ...GLOBAL_ARGS, ...HELP_ARGS }).flatMap(([name, def]): Flag[] =>
    def.type === "positional" ? [] : [{ name, short: shortOf(def), def, takesValue: def.type !== "boolean" }],
  );

function shortOf(def: ArgDef): string | undefined {
  const alias = "alias" in def ? def.alias : undefined;
  return [alias ?? []].flat().find((name) => name.length === 1);
}

/** The name users write: a switch that is on by default is declared without its `no-`. */
export const writtenName = ({ name, def }: Flag): string => (isNegative(def) ? `no-${name}` : name);

/** @param written with its dashes */
export const isNamed = (flag: Flag, written: string): boolean =>
  written === `--${writtenName(flag)}` || (flag.short !== undefined && written === `-${flag.short}`);

const isNegative = (def: ArgDef): boolean => def.type === "boolean" && def.default === true;

/**
 * Reads arguments as kubectl does: flags anywhere, `--name value`, `--name=value`, `-o wide`, `-owide`, `-fp`; `--` ends
 * the flags. citty 0.2 declares and runs the commands; its parser is not used, since it
 * - accepts unknown flags, a value that is missing, and any text for a switch (`--watch=maybe`),
 * - keeps the last value of a repeated flag alone (`-f a -f b`),
 * - takes `-o=wide` for the value "=wide" and `--no-headers=true` for a flag of that name,
 * - distinguishes the case of choices (`--stream=stdout`), and reads flags behind the command of `exec`.
 * @param stopsAtCommand everything from the second positional on belongs to another program, as in `exec pod ls -l`
 */
export function readArguments(
  name: string,
  args: ArgsDef,
  argv: readonly string[],
  stopsAtCommand = false,
): ReadArguments {
  const flags = flagsOf(args);
  const values = new Map<string, string[]>();
  const positionals: string[] = [];
  const find = (written: string) => flags.find((flag) => isNamed(flag, written));
  const words = readWords(argv, (written) => find(written)?.takesValue, true);
  for (const { kind, text, value: given, index } of words) {
    // The text of a variable that is not set must not mean everything, or this directory.
    if ((kind === "argument" ? text : given) === "")
      return { problem: emptyWord(kind === "flag" ? text : "an argument") };
    if (kind !== "flag") {
      positionals.push(text);
      if (!stopsAtCommand || positionals.length === 1) continue;
      positionals.push(...argv.slice(index + 1));
      break;
    }
    const flag = find(text);
    if (!flag) return { problem: unknownFlag(text, name, flags) };
    const value = given ?? (flag.takesValue ? undefined : "true");
    if (value === undefined) return { problem: `--${writtenName(flag)} needs a value: ${hintOf(flag.def)}` };
    const problem = valueProblem(flag, value);
    if (problem) return { problem };
    const meant = isNegative(flag.def) ? String(value === "false") : (choiceOf(flag.def, value) ?? value);
    values.getOrInsert(flag.name, []).push(meant);
  }
  if (values.get("help")?.at(-1) === "true") return { help: true };
  return { help: false, values, positionals };
}

/** @param what the flag, or an argument */
export const emptyWord = (what: string): string =>
  `${what} is empty: is a variable not set? Remove it if none is meant`;

const choicesOf = (def: ArgDef): readonly string[] => (def.type === "enum" ? (def.options ?? []) : []);

/** Hint for the value of a flag: `wide|json`. */
export function hintOf(def: ArgDef): string {
  if (def.type === "boolean") return "";
  const choices = choicesOf(def);
  return def.valueHint ?? (choices.length > 0 ? choices.join("|") : "value");
}

/** The choice that is meant, in whatever case it is written. */
const choiceOf = (def: ArgDef, value: string): string | undefined =>
  choicesOf(def).find((choice) => choice.toLowerCase() === value.toLowerCase());

function valueProblem(flag: Flag, value: string): string | undefined {
  const allowed = flag.takesValue ? choicesOf(flag.def) : ["true", "false"];
  if (allowed.length === 0 || allowed.includes(value) || choiceOf(flag.def, value) !== undefined) return undefined;
  return `--${writtenName(flag)} must be ${oneOf(allowed)} (found "${value}"${didYouMean(value, allowed)})`;
}

const oneOf = (words: readonly string[]) =>
  words.length === 1 ? words[0] : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

/** Flags of kubectl that have no meaning here, and what does the job. */
const FIXES: Readonly<Record<string, string>> = {
  "-L --label-columns --show-labels": "kubectl get shows labels in columns, after: kubelet-ts kubeconfig --merge",
  "-k --kustomize": "kustomize is not built in: kubectl kustomize DIR | kubelet-ts apply -f -",
  "--context --cluster --kubeconfig": "choose a kubelet of this machine with --root-dir, or with kubelet-ts use",
  "-f --filename": "name the manifest or the object without it",
  "--port": "ports are flags of the kubelet, not of its commands; that of the page is --cadvisor-port",
  "--since": "of events the latest is last: kubelet-ts events | tail",
  "--prune": "kubelet-ts delete -f FILE removes the objects of a manifest",
  "--image --schedule --from-literal --from-file --tcp":
    "give a manifest with -f, or use kubectl create after: kubelet-ts kubeconfig --merge",
};

function unknownFlag(written: string, name: string, flags: readonly Flag[]): string {
  const fix = Object.entries(FIXES).find(([known]) => known.split(" ").includes(written));
  if (fix !== undefined) return `${written}: no such flag of ${name}; ${fix[1]}`;
  const long = written.replace(/^-+/, "");
  const near = long.length > 1 ? nearestByBeginning(long, flags.map(writtenName)) : undefined;
  return `${written}: no such flag of ${name}${near ? `; did you mean --${near}?` : ""}`;
}

/** The hidden command behind the completion scripts. */
export const COMPLETE_ARGUMENT = "__complete";
