import { existsSync } from "node:fs";
import type { CommandDef } from "citty";
import { runCommand } from "citty";
import { watchUnexpectedErrors } from "./app/unexpected-errors.ts";
import { readCommandLine } from "./cli/command-line.ts";
import type { CommandSummary } from "./cli/help.ts";
import { flagTakesValue } from "./cli/root-flags.ts";
import { writeStderr } from "./host/write-stderr.ts";
import { RELAY_ARGUMENT } from "./model/pod-dialer.ts";

/** A sub-command beside the kubelet itself; loaded only when it is asked for. */
interface SubCommand {
  description: string;
  load: () => Promise<CommandDef>;
}

const SUB_COMMANDS: Readonly<Record<string, SubCommand>> = {
  get: {
    description: "list pods, the node or events of the kubelet that runs",
    load: async () => (await import("./cli/commands/get-command.ts")).getCommand as unknown as CommandDef,
  },
  describe: {
    description: "show all about a pod, with its events, or about the node",
    load: async () => (await import("./cli/commands/describe-command.ts")).describeCommand as unknown as CommandDef,
  },
  logs: {
    description: "print what a container wrote",
    load: async () => (await import("./cli/commands/logs-command.ts")).logsCommand as unknown as CommandDef,
  },
  top: {
    description: "show the CPU and memory that pods or the node use",
    load: async () => (await import("./cli/commands/top-command.ts")).topCommand as unknown as CommandDef,
  },
  validate: {
    description: "check manifests without an engine; every mistake with its line",
    load: async () => (await import("./cli/commands/validate-command.ts")).validateCommand as unknown as CommandDef,
  },
  config: {
    description: "show the effective configuration and where each value comes from",
    load: async () => (await import("./cli/commands/config-command.ts")).configCommand as unknown as CommandDef,
  },
  completion: {
    description: "print a completion script for bash, zsh or fish",
    load: async () =>
      (await import("./cli/commands/completion-command.ts")).makeCompletionCommand(
        () => SUMMARIES,
      ) as unknown as CommandDef,
  },
  version: {
    description: "print the version",
    load: async () => (await import("./cli/commands/version-command.ts")).versionCommand as unknown as CommandDef,
  },
};

const SUMMARIES: readonly CommandSummary[] = Object.entries(SUB_COMMANDS).map(([name, { description }]) => ({
  name,
  description,
}));

async function main(argv: readonly string[]): Promise<void> {
  const [first, ...rest] = argv;
  if (first === RELAY_ARGUMENT) {
    const { relayLoopback } = await import("./host/pod-dialer.ts");
    process.exit(await relayLoopback(Number(rest[0]), process.stdin, process.stdout));
  }
  const invocation = readCommandLine(argv, {
    commands: Object.keys(SUB_COMMANDS),
    takesValue: flagTakesValue,
    exists: existsSync,
  });
  switch (invocation.kind) {
    case "refused":
      writeStderr(`kubelet-ts: ${invocation.message}\nTry 'kubelet-ts --help'.\n`);
      return process.exit(2);
    case "command":
      // The process ends when the command has: everything it wrote gets through a slow pipe.
      await runCommand(await SUB_COMMANDS[invocation.name]!.load(), { rawArgs: invocation.argv });
      return;
    case "kubelet": {
      const { runKubelet } = await import("./app/kubelet-command.ts");
      return process.exit(await runKubelet(invocation.argv, SUMMARIES));
    }
    default:
      invocation satisfies never;
  }
}

watchUnexpectedErrors();

await main(process.argv.slice(2));
