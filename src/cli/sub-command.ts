import { resolve } from "node:path";
import { defineCommand, runCommand } from "citty";
import { parseDuration } from "../base/api/duration.ts";
import { type LabelFilter, parseLabelSelector } from "../base/api/label-selector.ts";
import { BROKEN_PIPE_EXIT, BrokenPipeError } from "../base/host/write-all.ts";
import { nearestName } from "../base/text/nearest-name.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../config/option-table.ts";
import { DockerClient } from "../docker/engine/docker-client.ts";
import { DockerError, DockerProtocolError, DockerUnreachableError } from "../docker/engine/docker-error.ts";
import type { DockerEndpoint } from "../docker/engine/endpoint.ts";
import { computeRootHash } from "../docker/labels.ts";
import { readArguments } from "./arguments.ts";
import { chooseRootDir } from "./client/default-context.ts";
import type { EngineReader } from "./client/engine-reader.ts";
import { type FindingOptions, type FoundKubelet, findKubelet } from "./client/find-kubelet.ts";
import { KubeletApi, KubeletApiError } from "./client/kubelet-api.ts";
import type { PodScope } from "./client/pod-lookup.ts";
import { type CommandIo, terminalIo } from "./command-io.ts";
import { type CommandManual, renderCommandHelp } from "./help.ts";

/** The command line makes no sense: exit code 2. */
export class UsageError extends Error {}

/** The requested object does not exist or cannot be read: exit code 1. */
export class CommandError extends Error {}

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
  /** Half a line, for the list of commands. */
  description: string;
  /** Section of `kubelet-ts --help`; a command without one is not shown. */
  section?: "Show" | "Change" | "Inside" | "Check" | "Setup";
  /** Values of the first argument, with their aliases. */
  objects?: Readonly<Record<string, readonly string[]>>;
  /** It takes the flags of the kubelet, which have a parser of their own. */
  takesKubeletFlags?: true;
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
    if (command.takesKubeletFlags && argv.some((word) => word === "--help" || word === "-h")) {
      io.stdout(renderCommandHelp(command));
      return 0;
    }
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

/** Errors whose message is for the user. All others are defects, reported with their stack. */
const EXPECTED_FAILURES = [
  CommandError,
  KubeletApiError,
  DockerError,
  DockerUnreachableError,
  DockerProtocolError,
] as const;

/** Besides those, what the file system or the network refused. */
const isExpectedFailure = (error: unknown): boolean =>
  EXPECTED_FAILURES.some((kind) => error instanceof kind) ||
  (error instanceof Error && "syscall" in error && error.syscall !== "write");

/** @throws UsageError */
export function readRequest(command: SubCommand, argv: readonly string[]): CommandRequest | "help" {
  const read = command.takesKubeletFlags
    ? { help: false as const, values: new Map<string, readonly string[]>(), positionals: [] }
    : readArguments(command.name, command.args, argv, command.stopsAtCommand);
  if ("problem" in read) throw new UsageError(read.problem);
  if (read.help) return "help";
  const { values, positionals } = read;
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
  const near = nearestName(written, Object.entries(objects).flat(2));
  const hint = near ? `; did you mean ${near}?` : "";
  throw new UsageError(`"${written}" is not something ${name} knows: ${known.join(", ")}${hint}`);
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

/** `--root-dir` wins over KUBELET_TS_ROOT_DIR in the environment, that over the default of `kubelet-ts use`. */
export const findingOptions = ({ value }: CommandRequest): FindingOptions => ({
  rootDir: chooseRootDir(value("root-dir"))?.rootDir,
  server: value("server"),
});

/** @throws CommandError when none can be asked */
export async function openKubelet(request: CommandRequest): Promise<{ api: KubeletApi; kubelet: FoundKubelet }> {
  removeProxies();
  const kubelet = await findKubelet(findingOptions(request));
  if ("problem" in kubelet) throw new CommandError(kubelet.problem);
  return { api: new KubeletApi(kubelet), kubelet };
}

/** The source of read commands: a kubelet, or the engine. */
export type PodReader = Pick<KubeletApi, "pods" | "events" | "node"> & {
  /** Absent without a kubelet. */
  refusedManifests?: KubeletApi["refusedManifests"];
  /** Why the engine is asked instead of a kubelet. */
  note?: string;
};

/**
 * The kubelet; where none runs, the engine and the checkpoints of the root directory.
 * @throws CommandError when neither can be asked
 */
export async function openReader(request: CommandRequest): Promise<PodReader> {
  removeProxies();
  const options = findingOptions(request);
  const kubelet = await findKubelet(options);
  if (!("problem" in kubelet)) return new KubeletApi(kubelet);
  if (!kubelet.isAbsent) throw new CommandError(kubelet.problem);
  return await openEngine(request, kubelet.problem);
}

/** @param noKubelet why the kubelet cannot be asked */
export async function openEngine(request: CommandRequest, noKubelet: string): Promise<EngineReader> {
  const [{ EngineReader }, { readKeptPods }] = await Promise.all([
    import("./client/engine-reader.ts"),
    import("./client/kept-pods.ts"),
  ]);
  const { rootDir } = findingOptions(request);
  return new EngineReader({
    client: new DockerClient(engineEndpoint(request, undefined)),
    rootHash: rootDir === undefined ? undefined : computeRootHash(resolve(rootDir)),
    kept: readKeptPods(resolve(rootDir ?? DEFAULT_KUBELET_OPTIONS.rootDir)).map(({ pod }) => pod),
    noKubelet,
  });
}

/** @param known of the kubelet that runs. @throws UsageError */
export function engineEndpoint({ value }: CommandRequest, known: string | undefined): DockerEndpoint {
  try {
    return DockerClient.endpointFrom(value("docker-endpoint") ?? known);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Bun's fetch would send requests for this machine to a proxy. */
export function removeProxies(): void {
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) {
    delete process.env[name];
    delete process.env[name.toLowerCase()];
  }
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
  if (ms === undefined) throw new UsageError(`--${flag} must be a duration as in 30s, 5m, 2h (found "${text}")`);
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
