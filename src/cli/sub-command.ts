import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { defineCommand, runCommand } from "citty";
import { type LabelFilter, parseLabelSelector } from "../base/api/meta.ts";
import { BROKEN_PIPE_EXIT, BrokenPipeError, writeAll } from "../base/host/write-all.ts";
import { EngineError } from "../base/model/engine-error.ts";
import { parseDuration } from "../base/text/duration.ts";
import { didYouMean } from "../base/text/nearest-name.ts";
import { readArguments } from "./arguments.ts";
import { type CommandManual, renderCommandHelp } from "./help.ts";

/** The command line makes no sense: exit code 2. */
export class UsageError extends Error {}

/** The requested object does not exist or cannot be read: exit code 1. */
export class CommandError extends Error {}

/** The file that a command replaces, where a link leads. @throws CommandError when it is a device, a pipe or a directory */
export function replaceablePath(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found && !found.isFile()) throw new CommandError(`"${path}" is not a regular file`);
  return found ? realpathSync(path) : resolve(path);
}

/** Arguments that passed the declaration. */
export interface CommandRequest {
  command: SubCommand;
  positionals: readonly string[];
  /** undefined when it was not given. */
  value: (flag: string) => string | undefined;
  /** Every value of a repeated flag. */
  values: (flag: string) => readonly string[];
  /** A switch is on, by the command line or its default. */
  isOn: (flag: string) => boolean;
  /** As written, for a command with a parser of its own. */
  rawArgs: readonly string[];
}

/** A sub-command. Its arguments are declared for citty; help and completion are made from the same declaration. */
export interface SubCommand extends CommandManual {
  /** Values of the first argument, with their aliases. */
  objects?: Readonly<Record<string, readonly string[]>>;
  /** It takes the flags of the kubelet, which have a parser of their own. */
  takesKubeletFlags?: true;
  /** Hint where an argument is given to a command that takes none. */
  wordsHint?: string;
  /** The second argument and all after it are another program's. */
  stopsAtCommand?: true;
  /** Exit code of a failure; default 1. */
  failureCode?: number;
  /** Returns the exit code. */
  run: (request: CommandRequest, io: CommandIo) => Promise<number>;
}

/** Runs a sub-command: arguments, `--help`, errors. Returns the exit code: 0 done, 1 failed, 2 bad usage. */
export async function runSubCommand(
  command: SubCommand,
  argv: readonly string[],
  io: CommandIo = terminalIo,
): Promise<number> {
  try {
    const request = readRequest(command, argv);
    if (request === "help") {
      io.stdout(renderCommandHelp(command));
      return 0;
    }
    const definition = defineCommand({
      meta: { name: command.name, description: command.description },
      run: ({ data }) => command.run(data as CommandRequest, io),
    });
    const { result } = await runCommand(definition, { rawArgs: [], data: request });
    return result as number;
  } catch (error) {
    if (error instanceof BrokenPipeError) return BROKEN_PIPE_EXIT;
    if (error instanceof UsageError) {
      io.stderr(`kubelet-ts ${command.name}: ${error.message}\nTry 'kubelet-ts ${command.name} --help'.\n`);
      return 2;
    }
    if (isExpectedFailure(error)) {
      io.stderr(`kubelet-ts ${command.name}: ${(error as Error).message}\n`);
      return command.failureCode ?? 1;
    }
    throw error;
  }
}

/** Errors whose message is for the user, and what the file system or the network refused. All others are defects. */
const isExpectedFailure = (error: unknown): boolean =>
  error instanceof CommandError ||
  error instanceof EngineError ||
  (error instanceof Error && "syscall" in error && error.syscall !== "write");

/** @throws UsageError */
function readRequest(command: SubCommand, argv: readonly string[]): CommandRequest | "help" {
  const read = command.takesKubeletFlags
    ? { help: argv.some((word) => word === "--help" || word === "-h"), values: new Map(), positionals: [] }
    : readArguments(command.name, command.args, argv, command.stopsAtCommand);
  if ("problem" in read) throw new UsageError(read.problem);
  if (read.help) return "help";
  const { values, positionals } = read;
  const takesWords = Object.values(command.args).some(({ type }) => type === "positional");
  if (!takesWords && positionals.length > 0)
    throw new UsageError(`takes no arguments (found "${positionals[0]}")${command.wordsHint ?? ""}`);
  return {
    command,
    positionals,
    value: (flag) => values.get(flag)?.at(-1),
    values: (flag) => values.get(flag) ?? [],
    isOn: (flag) => (values.get(flag)?.at(-1) ?? String(command.args[flag]?.default ?? false)) === "true",
    rawArgs: argv,
  };
}

/** Which object a first argument means: `po`, `pods` and `pod` are all `pods`. @throws UsageError */
export function findObject({ name, objects = {} }: SubCommand, asWritten: string | undefined): string {
  const known = Object.keys(objects);
  const written = asWritten?.toLowerCase();
  if (written === undefined) throw new UsageError(`${name} what? Name one of: ${known.join(", ")}`);
  const found = Object.entries(objects).find(([object, aliases]) => object === written || aliases.includes(written));
  if (found) return found[0];
  const hint = didYouMean(written, Object.entries(objects).flat(2));
  throw new UsageError(`"${written}" is not something ${name} knows: ${known.join(", ")}${hint}`);
}

/** The kind and the names of `pods a b`, `pod/a pod/b`. @throws UsageError */
export function readNames(request: CommandRequest): { object: string; names: string[] } {
  const [written, ...words] = request.positionals;
  const [kind, name] = written?.split("/", 2) ?? [];
  const object = findObject(request.command, kind);
  const others = words.map((word) => {
    const [otherKind, otherName] = word.split("/", 2);
    if (otherName === undefined) return word;
    if (findObject(request.command, otherKind) !== object) throw new UsageError(`"${word}" is none of the ${object}`);
    return otherName;
  });
  const names = name ? [name, ...others] : others;
  selectorOf(request, names);
  return { object, names };
}

/** A kind that only the local API serves, or objects of several kinds. */
export function needsApi({ command: { objects = {} }, positionals }: CommandRequest): boolean {
  const [first, ...rest] = positionals;
  if (first === undefined) return false;
  const own = Object.entries(objects);
  const kindOf = (word: string) =>
    own.find(([kind, aliases]) => [kind, ...aliases].includes(word.split("/", 1)[0]!.toLowerCase()))?.[0];
  const kind = kindOf(first);
  return kind === undefined || rest.some((word) => word.includes("/") && kindOf(word) !== kind);
}

/** Which pods are meant. */
export interface PodScope {
  /** undefined: all of them. */
  namespace: string | undefined;
}

/** `-A` wins over `-n`, as with kubectl. */
export const scopeOf = ({ value, isOn }: CommandRequest): PodScope => ({
  namespace: isOn("all-namespaces") ? undefined : value("namespace") || undefined,
});

/**
 * @param names given besides the selector
 * @throws UsageError
 */
export function selectorOf({ value }: CommandRequest, names: readonly string[] = []): LabelFilter {
  if (names.length > 0 && value("selector")) throw new UsageError("give names or --selector, not both");
  const filter = parseLabelSelector(value("selector") ?? "");
  if ("problem" in filter) throw new UsageError(`--selector: ${filter.problem}`);
  return filter;
}

/**
 * A flag whose value is a duration, in milliseconds; undefined when it was not given.
 * @throws UsageError
 */
export function durationFlag({ value }: CommandRequest, flag: string): number | undefined {
  const text = value(flag);
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  const advice = /^\d+$/.test(text) ? `: write ${text}s` : "";
  if (ms === undefined)
    throw new UsageError(`--${flag} must be a duration as in 30s, 5m, 2h (found "${text}")${advice}`);
  return ms;
}

/** Suffix of messages with `--dry-run`; "" without it. The server checks in both cases. */
export function dryRunText({ value }: CommandRequest): string {
  const mode = value("dry-run") ?? "none";
  if (mode === "none") return "";
  return mode === "server" ? " (server dry run)" : " (dry run)";
}

/** A kubelet has one node. @throws CommandError when another one is named */
export function requireNode(node: { metadata: { name: string } }, names: readonly string[]): void {
  const other = names.find((name) => name !== node.metadata.name);
  if (other !== undefined) throw new CommandError(`node "${other}" not found; this one is "${node.metadata.name}"`);
}

/**
 * Streams and clock of a command. Commands do not use consola: their output is kubectl's, byte for byte, and scripts parse
 * it. consola formats the log (daemon/logging.ts).
 */
export interface CommandIo {
  /** Writes everything before it returns. @throws BrokenPipeError when the reader has closed the pipe */
  stdout: (data: string | Uint8Array) => void;
  stderr: (text: string) => void;
  /** Standard input. */
  input: () => AsyncIterable<Uint8Array>;
  /** Whether standard output is a terminal. */
  isTerminal: boolean;
  now: () => Date;
  /** Minutes east of Greenwich at some time. */
  offsetMinutes: (at: Date) => number;
}

export const terminalIo: CommandIo = {
  stdout: (data) => writeAll(1, data),
  stderr: (text) => writeAll(2, text),
  input: () => Bun.stdin.stream(),
  isTerminal: process.stdout.isTTY,
  now: () => new Date(),
  offsetMinutes: (at) => -at.getTimezoneOffset(),
};
