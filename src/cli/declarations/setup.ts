import type { SubCommand } from "../sub-command.ts";
import { VALIDATE_ARGS } from "./validate-args.ts";

const SHELLS = ["bash", "zsh", "fish"];

/** Commands that need neither a kubelet nor an engine. */
export const SETUP_COMMANDS: readonly SubCommand[] = [
  {
    name: "validate",
    description: "check manifests without an engine; every mistake with its line",
    section: "Check",
    usage: ["validate [flags] FILE|DIR|URL|-…"],
    about: `Checks manifests by the rules of Kubernetes and of this node; needs no Docker engine.
Exit codes: 0 no errors, 2 errors (or bad usage).`,
    args: VALIDATE_ARGS,
    run: async ({ rawArgs }) => (await import("../commands/validate-command.ts")).runValidateCommand(rawArgs),
  },
  {
    name: "config",
    description: "show the effective configuration and where each value comes from",
    section: "Check",
    usage: ["config [flags of the kubelet] [-o yaml|json]"],
    about: "Shows the effective configuration and where each value comes from. Nothing is started.",
    args: {},
    takesKubeletFlags: true,
    run: async ({ rawArgs }, io) => (await import("../commands/config-command.ts")).runConfig(rawArgs, io),
  },
  {
    name: "page",
    description: "print a link that opens the page in a browser, with logs and shell",
    section: "Show",
    usage: ["page [--open]"],
    about: `Prints a link to the page of the kubelet that runs. The link works once, for ten minutes, in a
browser on this machine; from another machine, forward the port first: ssh -L 4194:localhost:4194 HOST.
Only the user that runs the kubelet can make one.`,
    args: { open: { type: "boolean", description: "open it in the desktop's browser (xdg-open)" } },
    run: async (request, io) => (await import("../commands/page.ts")).runPage(request, io),
  },
  {
    name: "completion",
    description: "print a completion script for bash, zsh or fish",
    section: "Setup",
    usage: ["completion bash|zsh|fish"],
    about: `Prints a script that completes kubelet-ts in that shell: source <(kubelet-ts completion
bash), the same in zsh, kubelet-ts completion fish | source. It asks the binary for each
completion, so names come from the kubelet that the flags typed so far name.`,
    objects: Object.fromEntries(SHELLS.map((shell) => [shell, []])),
    args: { shell: { type: "positional", required: false, valueHint: "object" } },
    run: async (request, io) => (await import("../commands/completion.ts")).runCompletion(request, io),
  },
  {
    name: "version",
    description: "print the version",
    section: "Setup",
    usage: ["version [flags]"],
    about: "Prints the version, and the commit it was built from.",
    args: {
      output: { type: "enum", alias: "o", options: ["text", "json"], description: "one line, or an object" },
    },
    run: async (request, io) => (await import("../commands/version.ts")).runVersion(request, io),
  },
];
