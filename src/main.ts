import { existsSync } from "node:fs";
import { writeAll, writeStderr } from "./base/host/write-all.ts";
import { RELAY_ARGUMENT } from "./base/model/pod-dialer.ts";
import { setRuntimeVariables, takePrivateArguments } from "./daemon/private-arguments.ts";
import { handleUnexpectedErrors } from "./daemon/unexpected-errors.ts";
import { CERTIFICATES_ARGUMENT } from "./server/certificates/certificate-process.ts";

async function main(argv: readonly string[]): Promise<void> {
  const [first, ...rest] = argv;
  if (first === RELAY_ARGUMENT) {
    const { relayLoopback } = await import("./base/host/pod-dialer.ts");
    process.exit(await relayLoopback(Number(rest[0]), process.stdin, process.stdout));
  }
  if (first === CERTIFICATES_ARGUMENT) {
    const { runCertificateProcess } = await import("./server/certificates/make-certificates.ts");
    await runCertificateProcess();
    return process.exit(0);
  }
  // A command has a name: flags alone are those of the kubelet, whose process is replaced before it has loaded their table.
  if (argv.every((word) => word.startsWith("-"))) setRuntimeVariables(argv);
  const { COMMANDS, flagTakesValue, readCommandLine } = await import("./cli/command-line.ts");
  const { COMPLETE_ARGUMENT } = await import("./cli/arguments.ts");
  if (first === COMPLETE_ARGUMENT) {
    const { runComplete } = await import("./cli/commands/completion.ts");
    const { terminalIo } = await import("./cli/sub-command.ts");
    process.exit(await runComplete(rest, { commands: COMMANDS, takesValue: flagTakesValue }, terminalIo));
  }
  const invocation = readCommandLine(argv, existsSync);
  switch (invocation.kind) {
    case "refused":
      writeStderr(`kubelet-ts: ${invocation.message}\nTry 'kubelet-ts --help'.\n`);
      return process.exit(2);
    case "command": {
      const { runSubCommand } = await import("./cli/sub-command.ts");
      // Standard output is written synchronously, so everything is written by now.
      return process.exit(await runSubCommand(invocation.command, invocation.argv));
    }
    case "flags-help": {
      const { renderFlagsHelp } = await import("./cli/help.ts");
      return writeAll(1, renderFlagsHelp());
    }
    case "kubelet": {
      setRuntimeVariables(argv);
      const { runKubelet } = await import("./cli/kubelet-command.ts");
      return process.exit(await runKubelet(invocation.argv, COMMANDS));
    }
    default:
      invocation satisfies never;
  }
}

/** Relative names have no meaning in a directory that was removed, and absolute ones need none: `/` takes its place. */
function leaveRemovedDirectory(): void {
  try {
    process.cwd();
  } catch {
    process.chdir("/");
  }
}

handleUnexpectedErrors();
leaveRemovedDirectory();

await main(takePrivateArguments(process.argv.slice(2)));
