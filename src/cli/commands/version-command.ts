import { defineCommand } from "citty";
import { buildInfo, versionLine } from "../../app/version.ts";
import { writeAll } from "../../host/write-all.ts";
import { writeStderr } from "../../host/write-stderr.ts";
import { parseViewArguments, renderViewHelp, type ViewCommand } from "../view-flags.ts";
import type { CommandIo } from "./config-command.ts";

const VERSION: ViewCommand = {
  name: "version",
  usage: ["version [flags]"],
  about: "Prints the version, and the commit it was built from.",
  flags: [
    {
      name: "output",
      short: "o",
      value: "text|json",
      choices: ["text", "json"],
      description: "One line, or an object with the state of the tree and the date, too.",
    },
  ],
};

/** `kubelet-ts version [-o text|json]`. Returns the exit code. */
export function runVersion(argv: readonly string[], io: CommandIo): number {
  const parsed = parseViewArguments(VERSION, argv);
  const fail = (problem: string): number => {
    io.stderr(`kubelet-ts version: ${problem}\nTry 'kubelet-ts version --help'.\n`);
    return 2;
  };
  if ("problem" in parsed) return fail(parsed.problem);
  if (parsed.help) {
    io.stdout(renderViewHelp(VERSION));
    return 0;
  }
  if (parsed.positionals.length > 0) return fail(`takes no arguments (found "${parsed.positionals[0]}")`);
  io.stdout(parsed.values.get("output") === "json" ? `${JSON.stringify(buildInfo)}\n` : `${versionLine()}\n`);
  return 0;
}

export const versionCommand = defineCommand({
  meta: { name: "version", description: "print the version" },
  run: ({ rawArgs }) => {
    process.exitCode = runVersion(rawArgs, {
      stdout: (text) => writeAll(1, text),
      stderr: writeStderr,
    });
  },
});
