import { defineCommand } from "citty";
import { type LabelFilter, parseLabelSelector } from "../api/label-selector.ts";
import { READER_GONE_EXIT, ReaderGone } from "../host/write-all.ts";
import { type FindingOptions, type FoundKubelet, findKubelet } from "./client/find-kubelet.ts";
import { KubeletApi, KubeletApiError } from "./client/kubelet-api.ts";
import type { PodScope } from "./client/pod-lookup.ts";
import { terminalIo, type ViewIo } from "./command-io.ts";
import { parseViewArguments, renderViewHelp, type ViewCommand } from "./view-flags.ts";

/** The command line makes no sense: exit code 2. */
export class UsageError extends Error {}

/** What was asked for is not there or cannot be had: exit code 1. */
export class ViewError extends Error {}

/** Arguments that make sense. */
export interface ViewRequest {
  positionals: readonly string[];
  /** undefined when it was not given. */
  value: (flag: string) => string | undefined;
  isOn: (flag: string) => boolean;
}

/**
 * Frame of every command that looks at a running kubelet: arguments, `--help`, errors. Returns the exit code: 0 done, 1
 * not to be had, 2 bad usage.
 */
export async function runView(
  command: ViewCommand,
  argv: readonly string[],
  run: (request: ViewRequest, io: ViewIo) => Promise<number>,
  io: ViewIo = terminalIo,
): Promise<number> {
  const parsed = parseViewArguments(command, argv);
  try {
    if ("problem" in parsed) throw new UsageError(parsed.problem);
    if (parsed.help) {
      io.stdout(renderViewHelp(command));
      return 0;
    }
    const { values, positionals } = parsed;
    const value = (flag: string) => values.get(flag);
    return await run({ positionals, value, isOn: (flag) => values.get(flag) === "true" }, io);
  } catch (error) {
    if (error instanceof ReaderGone) return READER_GONE_EXIT;
    if (error instanceof UsageError) {
      io.stderr(`kubelet-ts ${command.name}: ${error.message}\nTry 'kubelet-ts ${command.name} --help'.\n`);
      return 2;
    }
    if (error instanceof ViewError || error instanceof KubeletApiError) {
      io.stderr(`kubelet-ts ${command.name}: ${error.message}\n`);
      return 1;
    }
    throw error;
  }
}

/** The command as main.ts runs it; the process ends with it, whatever connections are still open. */
export function toCommand(command: ViewCommand, run: (request: ViewRequest, io: ViewIo) => Promise<number>) {
  return defineCommand({
    meta: { name: command.name },
    // All was written by then: standard output is written to synchronously.
    run: async ({ rawArgs }) => process.exit(await runView(command, rawArgs, run)),
  });
}

export const findingOptions = ({ value }: ViewRequest): FindingOptions => ({
  rootDir: value("root-dir"),
  server: value("server"),
});

/** @throws ViewError when none can be asked */
export async function openKubelet(request: ViewRequest): Promise<{ api: KubeletApi; kubelet: FoundKubelet }> {
  forgetProxies();
  const kubelet = await findKubelet(findingOptions(request));
  if ("problem" in kubelet) throw new ViewError(kubelet.problem);
  return { api: new KubeletApi(kubelet), kubelet };
}

/** Bun's fetch would send even what is for this machine to a proxy. */
function forgetProxies(): void {
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]) {
    delete process.env[name];
    delete process.env[name.toLowerCase()];
  }
}

/** `-A` wins over `-n`, as with kubectl. */
export const scopeOf = ({ value, isOn }: ViewRequest): PodScope => ({
  namespace: isOn("all-namespaces") ? undefined : value("namespace") || undefined,
});

/**
 * @param names what else says which are meant
 * @throws UsageError
 */
export function selectorOf({ value }: ViewRequest, names: readonly string[] = []): LabelFilter {
  if (names.length > 0 && value("selector")) throw new UsageError("give names or --selector, not both");
  const filter = parseLabelSelector(value("selector") ?? "");
  if ("problem" in filter) throw new UsageError(`--selector: ${filter.problem}`);
  return filter;
}

/** There is one node here. @throws ViewError when another one is named */
export function requireNode(node: { metadata: { name: string } }, names: readonly string[]): void {
  const other = names.find((name) => name !== node.metadata.name);
  if (other !== undefined) throw new ViewError(`node "${other}" not found; this one is "${node.metadata.name}"`);
}
