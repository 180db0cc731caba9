import type { ArgsDef } from "citty";
import type { SubCommand } from "../sub-command.ts";
import { CONTAINER_ARG, NAMESPACE_ARG, POD_ARG, SCOPE_ARGS, SELECTOR_ARG } from "./shared-args.ts";

const FILENAME_ARG = {
  filename: {
    type: "string",
    alias: "f",
    valueHint: "file",
    description: "file, directory, URL or -; may be repeated",
  },
  recursive: { type: "boolean", alias: "R", description: "with -f: also the directories below" },
} satisfies ArgsDef;

const SUBMIT_ARGS = {
  ...FILENAME_ARG,
  namespace: { type: "string", alias: "n", valueHint: "namespace", description: "for objects that name none" },
  "dry-run": { type: "enum", options: ["none", "client", "server"], description: "check, and change nothing" },
  validate: {
    type: "enum",
    options: ["strict", "warn", "ignore", "true", "false"],
    description: "treatment of unknown fields (default: strict)",
  },
  output: { type: "enum", alias: "o", options: ["name", "json", "yaml"], description: "print the objects" },
} satisfies ArgsDef;

/** `pod web`, `pod/web`, `deploy,svc -l app=web`. */
const TARGET_ARGS = {
  kind: { type: "positional", required: false, valueHint: "kind" },
  name: { type: "positional", required: false, valueHint: "name" },
} satisfies ArgsDef;

const SELECTION_ARGS = {
  ...SELECTOR_ARG,
  "field-selector": { type: "string", valueHint: "field=value,…", description: "only objects with these fields" },
} satisfies ArgsDef;

/** Objects are named in the namespace "default" unless another one is given. */
const CHANGE_SCOPE_ARGS = {
  namespace: { ...SCOPE_ARGS.namespace, description: "of the objects (default: default)" },
  "all-namespaces": { ...SCOPE_ARGS["all-namespaces"], description: "with --all or -l: in all namespaces" },
} satisfies ArgsDef;

const DELETE_ARGS = {
  ...TARGET_ARGS,
  ...FILENAME_ARG,
  all: { type: "boolean", description: "every object of the kind; without a kubelet, every pod" },
  ...SELECTION_ARGS,
  "grace-period": { type: "string", valueHint: "seconds", description: "in place of the pods' own" },
  now: { type: "boolean", description: "a grace period of one second" },
  force: { type: "boolean", description: "kill at once" },
  cascade: {
    type: "enum",
    options: ["background", "foreground", "orphan", "true", "false"],
    description: "how the pods of a workload are deleted (default: background)",
  },
  wait: { type: "boolean", description: "wait until they are gone (default; --wait=false does not)" },
  timeout: { type: "string", valueHint: "duration", description: "of the wait (default: none)" },
  "ignore-not-found": { type: "boolean", description: "what is gone already is no error" },
  "dry-run": { type: "enum", options: ["none", "client", "server"], description: "check, and delete nothing" },
  output: { type: "enum", alias: "o", options: ["name"], description: "print names only" },
  ...CHANGE_SCOPE_ARGS,
} satisfies ArgsDef;

/** Commands that change what runs. */
export const CHANGE_COMMANDS: readonly SubCommand[] = [
  {
    name: "apply",
    description: "create or change objects from manifests",
    section: "Change",
    usage: ["apply -f FILE|DIR|URL|- [flags]"],
    about: `Submits objects to the running kubelet by server-side apply; it keeps them under
<root-dir>/manifests. Objects that come from a manifest file are changed in that file.`,
    args: {
      ...SUBMIT_ARGS,
      "server-side": { type: "boolean", description: "accepted; every apply is server-side" },
      "force-conflicts": { type: "boolean", description: "accepted; the manifest always wins" },
    },
    run: async (request, io) => (await import("../commands/apply.ts")).runApply(request, io),
  },
  {
    name: "create",
    description: "create objects from manifests",
    section: "Change",
    usage: ["create -f FILE|DIR|URL|- [flags]"],
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
    args: {
      ...TARGET_ARGS,
      all: { type: "boolean", description: "every object of the kind" },
      ...SELECTION_ARGS,
      ...CHANGE_SCOPE_ARGS,
    },
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
      name: { type: "positional", required: false, valueHint: "object" },
      now: { type: "boolean", description: "ask the registries and update now, outside schedule and window too" },
      undo: { type: "boolean", description: "go back to the previous image; the present one is not tried again" },
      wait: { type: "boolean", description: "wait for the end of what is under way; exit code 1 if an update failed" },
      timeout: { type: "string", valueHint: "duration", description: "of --wait, default 15m" },
      output: { type: "enum", alias: "o", options: ["wide", "json"], description: "with digests, or as JSON" },
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
      timeout: { type: "string", valueHint: "duration", description: "default 30s; 0s checks once" },
      ...FILENAME_ARG,
      all: { type: "boolean", description: "every object of the kind" },
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
    args: FILENAME_ARG,
    failureCode: 2,
    run: async (request, io) => (await import("../commands/diff.ts")).runDiff(request, io),
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
    usage: ["exec POD|KIND/NAME [-c CONTAINER] [-it] -- COMMAND [ARG…]"],
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
    args: {
      from: { type: "positional", required: false, valueHint: "place" },
      to: { type: "positional", required: false, valueHint: "place" },
      ...CONTAINER_ARG,
      ...NAMESPACE_ARG,
    },
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
      ports: { type: "positional", required: false },
      address: {
        type: "string",
        valueHint: "address",
        description: "listen here (default: 127.0.0.1); several with commas",
      },
      ...NAMESPACE_ARG,
    },
    run: async (request, io) => (await import("../commands/port-forward.ts")).runPortForward(request, io),
  },
];
