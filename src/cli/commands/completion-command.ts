import { defineCommand } from "citty";
import { writeAll } from "../../host/write-all.ts";
import { writeStderr } from "../../host/write-stderr.ts";
import { nearestName } from "../../text/nearest-name.ts";
import { renderCompletion, SHELLS, type Shell } from "../completion.ts";
import type { CommandSummary } from "../help.ts";
import type { CommandIo } from "./config-command.ts";

/** `kubelet-ts completion bash|zsh|fish`. Returns the exit code. */
export function runCompletion(argv: readonly string[], commands: readonly CommandSummary[], io: CommandIo): number {
  const [shell, ...rest] = argv;
  if (shell === "--help" || shell === "-h") {
    io.stdout(
      "Usage: kubelet-ts completion bash|zsh|fish\n\nPrints a script that completes kubelet-ts in that shell.\n",
    );
    return 0;
  }
  if (shell === undefined || rest.length > 0 || !SHELLS.includes(shell as Shell)) {
    const nearest = shell === undefined ? undefined : nearestName(shell, SHELLS);
    io.stderr(
      `kubelet-ts completion: name one shell: ${SHELLS.join(", ")}${nearest ? `; did you mean ${nearest}?` : ""}\n`,
    );
    return 2;
  }
  io.stdout(renderCompletion(shell as Shell, commands));
  return 0;
}

/** @param commands asked for late: the list holds this command too. */
export function makeCompletionCommand(commands: () => readonly CommandSummary[]) {
  return defineCommand({
    meta: { name: "completion", description: "print a completion script for bash, zsh or fish" },
    run: ({ rawArgs }) => {
      process.exitCode = runCompletion(rawArgs, commands(), {
        stdout: (text) => writeAll(1, text),
        stderr: writeStderr,
      });
    },
  });
}
