import type { ArgsDef } from "citty";
import type { SubCommand } from "../sub-command.ts";
import { CONTAINER_ARG, NAMESPACE_ARG, POD_ARG } from "./shared-args.ts";

const DELETE_ARGS = {
  ...POD_ARG,
  filename: {
    type: "string",
    alias: "f",
    valueHint: "file",
    description: "the pods of this manifest; may be repeated",
  },
  all: { type: "boolean", description: "every pod of the root directory" },
  "grace-period": { type: "string", valueHint: "seconds", description: "in place of the pods' own" },
  now: { type: "boolean", description: "a grace period of one second" },
  force: { type: "boolean", description: "kill at once" },
  ...NAMESPACE_ARG,
} satisfies ArgsDef;

/** Commands that change what runs. */
export const CHANGE_COMMANDS: readonly SubCommand[] = [
  {
    name: "delete",
    description: "stop and remove pods, also while no kubelet runs",
    section: "Change",
    usage: ["delete pod NAME… [flags]", "delete -f FILE [flags]", "delete --all [flags]"],
    about: `Stops pods with their grace periods and removes containers, volumes, cgroups and log links.
A pod of a manifest that a running kubelet reads is removed by removing the manifest.`,
    args: DELETE_ARGS,
    run: async (request, io) => (await import("../commands/delete.ts")).runDelete(request, io),
  },
  {
    name: "down",
    description: "the same as delete, as with compose",
    section: "Change",
    usage: ["down --all [flags]", "down NAME… [flags]"],
    about: "Removes every pod of a root directory, or those that are named. It asks nothing.",
    args: DELETE_ARGS,
    run: async (request, io) => (await import("../commands/delete.ts")).runDelete(request, io),
  },
];

const STREAM_ARGS = {
  stdin: { type: "boolean", alias: "i", description: "pass standard input" },
  tty: { type: "boolean", alias: "t", description: "with a terminal" },
} satisfies ArgsDef;

/** Commands that reach into containers. */
export const INSIDE_COMMANDS: readonly SubCommand[] = [
  {
    name: "exec",
    description: "run a command in a container",
    section: "Inside",
    usage: ["exec POD [-c CONTAINER] [-it] -- COMMAND [ARG…]"],
    about: "Runs a command in a container and exits with its exit code. Works while no kubelet runs.",
    stopsAtCommand: true,
    args: {
      ...POD_ARG,
      command: { type: "positional", required: false },
      ...CONTAINER_ARG,
      ...STREAM_ARGS,
      ...NAMESPACE_ARG,
    },
    run: async (request, io) => (await import("../commands/exec.ts")).runExec(request, io),
  },
  {
    name: "attach",
    description: "hold the streams of a container's own process",
    section: "Inside",
    usage: ["attach POD [-c CONTAINER] [-i]"],
    about: "Shows what the container's own process writes; with -i it reads what is typed. It goes on afterwards.",
    args: { ...POD_ARG, ...CONTAINER_ARG, ...STREAM_ARGS, ...NAMESPACE_ARG },
    run: async (request, io) => (await import("../commands/exec.ts")).runAttach(request, io),
  },
];
