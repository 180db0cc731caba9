import { runKubelet } from "./cli/kubelet-command.ts";

/** Sub-commands beside the kubelet itself; each is loaded only when it is asked for. */
const COMMANDS: Readonly<Record<string, (argv: readonly string[]) => Promise<number>>> = {
  version: async () => {
    const { versionLine } = await import("./cli/version.ts");
    process.stdout.write(`${versionLine()}\n`);
    return 0;
  },
};

const argv = process.argv.slice(2);
const command = COMMANDS[argv[0] ?? ""];
const code = await (command ? command(argv.slice(1)) : runKubelet(argv));
process.exit(code);
