import type { ArgsDef } from "citty";
import type { SubCommand } from "../sub-command.ts";
import {
  CONTAINER_ARG,
  choice,
  NAMESPACE_ARG,
  POD_ARG,
  SCOPE_ARGS,
  SELECTOR_ARG,
  text,
  toggle,
  word,
} from "./shared-args.ts";

const FILENAME_ARG = {
  filename: text("file", "file, directory, URL or -; may be repeated", "f"),
  recursive: toggle("with -f: also the directories below", "R"),
} satisfies ArgsDef;

const SUBMIT_ARGS = {
  ...FILENAME_ARG,
  namespace: text("namespace", "for objects that name none", "n"),
  "dry-run": choice(["none", "client", "server"], "check, and change nothing"),
  validate: choice(["strict", "warn", "ignore", "true", "false"], "treatment of unknown fields (default: strict)"),
  output: choice(["name", "json", "yaml"], "print the objects", "o"),
} satisfies ArgsDef;

/** `pod web`, `pod/web`, `deploy,svc -l app=web`. */
const TARGET_ARGS = { kind: word("kind"), name: word("name") } satisfies ArgsDef;

const SELECTION_ARGS = {
  ...SELECTOR_ARG,
  "field-selector": text("field=value,…", "only objects with these fields"),
} satisfies ArgsDef;

/** Objects are named in the namespace "default" unless another one is given. */
const CHANGE_SCOPE_ARGS = {
  namespace: { ...SCOPE_ARGS.namespace, description: "of the objects (default: default)" },
  "all-namespaces": { ...SCOPE_ARGS["all-namespaces"], description: "with --all or -l: in all namespaces" },
} satisfies ArgsDef;

const DELETE_ARGS = {
  ...TARGET_ARGS,
  ...FILENAME_ARG,
  all: toggle("every object of the kind; without a kubelet, every pod"),
  ...SELECTION_ARGS,
  "grace-period": text("seconds", "in place of the pods' own"),
  now: toggle("a grace period of one second"),
  force: toggle("kill at once"),
  cascade: choice(
    ["background", "foreground", "orphan", "true", "false"],
    "how the pods of a workload are deleted (default: background)",
  ),
  wait: toggle("wait until they are gone (default; --wait=false does not)"),
  timeout: text("duration", "of the wait (default: none)"),
  "ignore-not-found": toggle("what is gone already is no error"),
  "dry-run": choice(["none", "client", "server"], "check, and delete nothing"),
  output: choice(["name"], "print names only", "o"),
  ...CHANGE_SCOPE_ARGS,
} satisfies ArgsDef;

/** Commands that change what runs. */
export const CHANGE_COMMANDS: readonly SubCommand[] = [
  {
    name: "apply",
    description: "create or change objects from manifests",
    section: "Change",
    usage: ["apply -f FILE|DIR|URL|- [flags]"],
    wordsHint: "; give manifests with -f",
    about: `Submits objects to the running kubelet by server-side apply; it keeps them under
<root-dir>/manifests. Objects that come from a manifest file are changed in that file.`,
    args: {
      ...SUBMIT_ARGS,
      "server-side": toggle("accepted; every apply is server-side"),
      "force-conflicts": toggle("accepted; the manifest always wins"),
    },
    run: async (request, io) => (await import("../commands/apply.ts")).runApply(request, io),
  },
  {
    name: "create",
    description: "create objects from manifests",
    section: "Change",
    usage: ["create -f FILE|DIR|URL|- [flags]"],
    wordsHint: "; give manifests with -f",
    about: "Submits objects to the running kubelet. An object that exists already is an error.",
    args: SUBMIT_ARGS,
    run: async (request, io) => (await import("../commands/apply.ts")).runCreate(request, io),
  },
  {
    name: "delete",
    description: "stop and remove pods, also without a kubelet (or: down)",
    section: "Change",
    usage: ["delete KIND NAME…|KIND/NAME… [flags]", "delete KIND -l SELECTOR|--all [flags]", "delete -f FILE [flags]"],
    about: `Stops pods with their grace periods and removes containers, volumes, cgroups and log links.
A pod of a manifest that a running kubelet reads is removed by removing the manifest. While no
kubelet runs, pods are removed without one: delete pod NAME, -f FILE, -l SELECTOR or --all.`,
    args: DELETE_ARGS,
    run: async (request, io) => (await import("../commands/delete.ts")).runDelete(request, io),
  },
  {
    name: "down",
    description: "the same as delete, as with compose",
    usage: ["down --all [flags]", "down NAME… [flags]"],
    about: "Removes every pod of a root directory, or those that are named. It asks nothing.",
    args: DELETE_ARGS,
    run: async (request, io) => (await import("../commands/delete.ts")).runDelete(request, io),
  },
  {
    name: "restart",
    description: "restart a pod, or the pods of a workload",
    section: "Change",
    usage: ["restart POD… [flags]", "restart KIND/NAME… [flags]"],
    about: `Restarts all containers of a pod, in a new sandbox. Gives the pods of a Deployment,
StatefulSet or DaemonSet successors, by its update strategy.`,
    args: { ...TARGET_ARGS, all: toggle("every object of the kind"), ...SELECTION_ARGS, ...CHANGE_SCOPE_ARGS },
    run: async (request, io) => (await import("../commands/restart.ts")).runRestart(request, io),
  },
  {
    name: "updates",
    description: "list, start or roll back updates of images",
    section: "Change",
    usage: ["updates [NAME…] [flags]", "updates --now [NAME…] [--wait]", "updates --undo NAME…"],
    about: `Lists the images of pods with the annotation kubelet-ts.io/image-update: which digest is pinned, which is
new, held or on trial, and which failed. A name is that of a pod or a workload: web, shop/web, deployment/web.`,
    args: {
      name: word("object"),
      now: toggle("ask the registries and update now, outside schedule and window too"),
      undo: toggle("go back to the previous image; the present one is not tried again"),
      wait: toggle("wait for the end of what is under way; exit code 1 if an update failed"),
      timeout: text("duration", "of --wait, default 15m"),
      output: choice(["wide", "json"], "with digests, or as JSON", "o"),
      ...NAMESPACE_ARG,
    },
    run: async (request, io) => (await import("../commands/updates.ts")).runUpdates(request, io),
  },
  {
    name: "wait",
    description: "wait for a condition of objects",
    section: "Change",
    usage: ["wait KIND/NAME…|-f FILE --for=CONDITION [flags]", "wait KIND -l SELECTOR|--all --for=CONDITION [flags]"],
    about: `Exits with 0 as soon as every object is as wanted, with 1 when the time has elapsed, with 3 when the
last edit of a pod was rolled back (kubelet-ts.io/rollback).`,
    args: {
      ...TARGET_ARGS,
      for: {
        type: "string",
        valueHint: "condition=Ready|delete|create",
        description: "also jsonpath={.status.phase}=Running",
      },
      timeout: text("duration", "default 30s; 0s checks once"),
      ...FILENAME_ARG,
      all: toggle("every object of the kind"),
      ...SELECTION_ARGS,
      ...CHANGE_SCOPE_ARGS,
    },
    run: async (request, io) => (await import("../commands/wait.ts")).runWait(request, io),
  },
  {
    name: "diff",
    description: "show what an edit of a manifest changes and restarts",
    section: "Change",
    usage: ["diff -f FILE|DIR|URL|- [flags]"],
    about: `Compares manifests with what the kubelet wanted last and with what runs: the lines that differ,
and which containers start, restart or stop. Exit codes: 0 no difference, 1 a difference, 2 an error.`,
    wordsHint: "; give manifests with -f",
    args: FILENAME_ARG,
    failureCode: 2,
    run: async (request, io) => (await import("../commands/diff.ts")).runDiff(request, io),
  },
];

const STREAM_ARGS = {
  stdin: toggle("pass standard input", "i"),
  tty: toggle("with a terminal", "t"),
} satisfies ArgsDef;

/** Commands that reach into containers. */
export const INSIDE_COMMANDS: readonly SubCommand[] = [
  {
    name: "exec",
    description: "run a command in a container",
    section: "Inside",
    usage: ["exec POD|KIND/NAME [-c CONTAINER] [-it] -- COMMAND [ARG…]"],
    about: "Runs a command in a container and exits with its exit code. Works while no kubelet runs.",
    stopsAtCommand: true,
    args: { ...POD_ARG, command: word(), ...CONTAINER_ARG, ...STREAM_ARGS, ...NAMESPACE_ARG },
    run: async (request, io) => (await import("../commands/exec.ts")).runExec(request, io),
  },
  {
    name: "attach",
    description: "hold the streams of a container's own process",
    section: "Inside",
    usage: ["attach POD|KIND/NAME [-c CONTAINER] [-i]"],
    about: "Shows what the container's own process writes; with -i it reads what is typed. It continues afterwards.",
    args: { ...POD_ARG, ...CONTAINER_ARG, ...STREAM_ARGS, ...NAMESPACE_ARG },
    run: async (request, io) => (await import("../commands/exec.ts")).runAttach(request, io),
  },
  {
    name: "cp",
    description: "copy files into and out of containers",
    section: "Inside",
    usage: ["cp POD:PATH LOCAL [flags]", "cp LOCAL POD:PATH [flags]"],
    about: "Copies a file or a directory with tar, which the image must have. NAMESPACE/POD:PATH names a namespace.",
    args: { from: word("pod-path"), to: word("pod-path"), ...CONTAINER_ARG, ...NAMESPACE_ARG },
    run: async (request, io) => (await import("../commands/cp.ts")).runCopy(request, io),
  },
  {
    name: "port-forward",
    description: "forward local ports to a pod",
    section: "Inside",
    usage: ["port-forward POD|KIND/NAME [LOCAL:]REMOTE… [flags]"],
    about: `Forwards until it is interrupted, also to programs that listen on the pod's loopback alone. With a
Service REMOTE is a port of the Service. :REMOTE takes any free local port.`,
    args: {
      ...POD_ARG,
      ports: word(),
      address: text("address", "listen here (default: 127.0.0.1); several with commas"),
      ...NAMESPACE_ARG,
    },
    run: async (request, io) => (await import("../commands/port-forward.ts")).runPortForward(request, io),
  },
];
