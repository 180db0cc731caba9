import type { ArgDef, ArgsDef } from "citty";
import type { SubCommand } from "./sub-command.ts";

/** A flag with a value. @param alias one letter */
export const text = (valueHint: string, description: string, alias?: string): ArgDef => ({
  type: "string",
  valueHint,
  description,
  ...(alias && { alias }),
});

/** A flag whose value is one of these. */
const choice = (options: string[], description: string, alias?: string): ArgDef => ({
  type: "enum",
  options,
  description,
  ...(alias && { alias }),
});

/** A flag without a value. */
const toggle = (description: string, alias?: string): ArgDef => ({
  type: "boolean",
  description,
  ...(alias && { alias }),
});

/** An argument. Arguments are declared for completion; each command checks their number itself. */
export const word = (valueHint?: string): ArgDef => ({
  type: "positional",
  required: false,
  ...(valueHint && { valueHint }),
});

/** Names of kinds the first argument can be. */
const PODS = ["pod", "po"];
const NODES = ["node", "no"];
const EVENTS = ["event", "ev"];

const NAMESPACE_ARG = {
  namespace: text("namespace", "namespace of the pod (default: any)", "n"),
} satisfies ArgsDef;

const SCOPE_ARGS = {
  namespace: text("namespace", "only this namespace (default: all)", "n"),
  "all-namespaces": toggle("all namespaces, with a column for them", "A"),
} satisfies ArgsDef;

const SELECTOR_ARG = { selector: text("key=value,…", "only objects with these labels", "l") } satisfies ArgsDef;

const HEADERS_ARG = {
  headers: { type: "boolean", default: true, negativeDescription: "leave out the line of column names" },
} satisfies ArgsDef;

const CONTAINER_ARG = {
  container: text("container", "which container (default: the first one)", "c"),
} satisfies ArgsDef;

const POD_ARG = { pod: word("pod") } satisfies ArgsDef;

const KIND_ARG = { kind: word("object") } as const;
/** A kind of the local API too. */
const ANY_KIND_ARG = { kind: word("kind") } as const;
const NAME_ARG = { name: word("name") } as const;

/** Commands that only read. */
export const SHOW_COMMANDS: readonly SubCommand[] = [
  {
    name: "get",
    description: "list pods, the node or events",
    section: "Show",
    usage: ["get pods|node|events|KIND|KIND,KIND|all [NAME…] [flags]", "get KIND/NAME… [flags]"],
    about: `Lists what the running kubelet reports, in the format of kubectl. Without -n or -A, pods of
all namespaces are listed; a column shows the namespace as soon as one is not "default".
Pods are listed while no kubelet runs, too; kinds beyond these three come from its local API.`,
    objects: { pods: PODS, nodes: NODES, events: EVENTS },
    args: {
      ...ANY_KIND_ARG,
      ...NAME_ARG,
      output: text("wide|json|yaml|name|jsonpath=", "more columns, whole objects, names, or parts", "o"),
      "field-selector": text("field=value,…", "only objects with these fields"),
      "sort-by": text("jsonpath", "order by this field"),
      watch: toggle("continue, and show what changes", "w"),
      "watch-only": toggle("show changes only"),
      "ignore-not-found": toggle("what does not exist is no error"),
      ...HEADERS_ARG,
      ...SELECTOR_ARG,
      ...SCOPE_ARGS,
    },
    run: async (request, io) => (await import("./commands/get.ts")).runGet(request, io),
  },
  {
    name: "describe",
    description: "show all about an object, with its events",
    section: "Show",
    usage: ["describe pod|KIND|KIND,KIND [NAME…] [flags]", "describe KIND/NAME… [flags]", "describe node [flags]"],
    about: `Shows objects, or the node with what its pods request, in the format of kubectl describe; Manifest
is the file and line an object comes from. Values of environment variables are shown only if the
kubelet runs with --read-only-full, and values of Secrets never. Pods are shown without a kubelet, too.`,
    objects: { pods: PODS, nodes: NODES },
    args: { ...ANY_KIND_ARG, ...NAME_ARG, ...SELECTOR_ARG, ...SCOPE_ARGS },
    run: async (request, io) => (await import("./commands/describe.ts")).runDescribe(request, io),
  },
  {
    name: "logs",
    description: "print what a container wrote",
    section: "Show",
    usage: ["logs POD|KIND/NAME [CONTAINER] [flags]", "logs -l SELECTOR [flags]"],
    about: `Prints the log of a container, from the Docker engine: also while no kubelet runs. Of a workload
or a Service (deployment/web) one pod is chosen; with -l the end of the log of every pod is shown.`,
    args: {
      ...POD_ARG,
      "container-name": word("container"),
      ...CONTAINER_ARG,
      "all-containers": toggle("all containers, init containers first"),
      follow: toggle("continue until the container ends", "f"),
      previous: toggle("of the container before this one", "p"),
      tail: text("lines", "only the last lines"),
      since: text("duration", "only what is younger: 30s, 5m, 2h"),
      "since-time": text("time", "only what is younger (RFC 3339)"),
      timestamps: toggle("begin each line with its time"),
      "limit-bytes": text("bytes", "stop after this number of bytes"),
      prefix: toggle("begin each line with [pod/name/container]"),
      stream: choice(["All", "Stdout", "Stderr"], "one of the two streams only"),
      ...SELECTOR_ARG,
      ...NAMESPACE_ARG,
    },
    run: async (request, io) => (await import("./commands/logs.ts")).runLogs(request, io),
  },
  {
    name: "top",
    description: "show the CPU and memory that pods or the node use",
    section: "Show",
    usage: ["top pods [name…] [flags]", "top node [flags]"],
    about: `Shows CPU in thousandths of a core, averaged over the last ten seconds or more, and
memory as the working set: what the kernel cannot easily reclaim.`,
    objects: { pods: PODS, nodes: NODES },
    args: {
      ...KIND_ARG,
      ...POD_ARG,
      containers: toggle("each container of the pods"),
      "sort-by": choice(["cpu", "memory"], "the largest first (default: by name)"),
      sum: toggle("add a line with the sum over the pods shown"),
      "show-capacity": toggle("shares of the node's capacity, not of its allocatable"),
      ...HEADERS_ARG,
      ...SELECTOR_ARG,
      ...SCOPE_ARGS,
    },
    run: async (request, io) => (await import("./commands/top.ts")).runTop(request, io),
  },
  {
    name: "explain",
    description: "say why a pod or workload is not ready, and the fix",
    section: "Show",
    usage: [
      "explain [pod] [NAME…] [flags]",
      "explain KIND/NAME… | node [flags]",
      "explain KIND[.FIELD…] [--recursive]",
    ],
    about: `Names the condition that holds a pod back, the last answers of its probes, its last exit, the
end of its log, what is missing, and what to do; of a workload, Job, claim or Service its state and
that of its pods. Exit codes: 0 ready, 1 not. With a kind alone, as in pod.spec.containers or
deployment, it describes the fields of manifests instead.`,
    args: {
      ...POD_ARG,
      recursive: toggle("names and types of all fields of a kind"),
      output: choice(["text", "json"], "what to print (default: text)", "o"),
      ...NAMESPACE_ARG,
    },
    run: async (request, io) => (await import("./commands/explain.ts")).runExplain(request, io),
  },
  {
    name: "events",
    description: "list what happened, the latest last",
    section: "Show",
    usage: ["events [--for KIND/NAME] [flags]"],
    wordsHint: "; name an object as in --for pod/web",
    about: "Lists the events of the last hour, also those of a kubelet before a restart.",
    args: {
      for: text("name", "of this object, also after it is gone"),
      types: text("Normal|Warning", "only these types"),
      watch: toggle("continue, and show what is new", "w"),
      output: choice(["json", "yaml", "name"], "whole objects, or names", "o"),
      ...HEADERS_ARG,
      ...SCOPE_ARGS,
    },
    run: async (request, io) => (await import("./commands/events.ts")).runEvents(request, io),
  },
];

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
    run: async (request, io) => (await import("./commands/apply.ts")).runApply(request, io),
  },
  {
    name: "create",
    description: "create objects from manifests",
    section: "Change",
    usage: ["create -f FILE|DIR|URL|- [flags]"],
    wordsHint: "; give manifests with -f",
    about: "Submits objects to the running kubelet. An object that exists already is an error.",
    args: SUBMIT_ARGS,
    run: async (request, io) => (await import("./commands/apply.ts")).runCreate(request, io),
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
    run: async (request, io) => (await import("./commands/delete.ts")).runDelete(request, io),
  },
  {
    name: "down",
    description: "the same as delete, as with compose",
    usage: ["down --all [flags]", "down NAME… [flags]"],
    about: "Removes every pod of a root directory, or those that are named. It asks nothing.",
    args: DELETE_ARGS,
    run: async (request, io) => (await import("./commands/delete.ts")).runDelete(request, io),
  },
  {
    name: "restart",
    description: "restart a pod, or the pods of a workload",
    section: "Change",
    usage: ["restart POD… [flags]", "restart KIND/NAME… [flags]"],
    about: `Restarts all containers of a pod, in a new sandbox. Gives the pods of a Deployment,
StatefulSet or DaemonSet successors, by its update strategy.`,
    args: { ...TARGET_ARGS, all: toggle("every object of the kind"), ...SELECTION_ARGS, ...CHANGE_SCOPE_ARGS },
    run: async (request, io) => (await import("./commands/restart.ts")).runRestart(request, io),
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
    run: async (request, io) => (await import("./commands/updates.ts")).runUpdates(request, io),
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
    run: async (request, io) => (await import("./commands/wait.ts")).runWait(request, io),
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
    run: async (request, io) => (await import("./commands/diff.ts")).runDiff(request, io),
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
    run: async (request, io) => (await import("./commands/exec.ts")).runExec(request, io),
  },
  {
    name: "attach",
    description: "hold the streams of a container's own process",
    section: "Inside",
    usage: ["attach POD|KIND/NAME [-c CONTAINER] [-i]"],
    about: "Shows what the container's own process writes; with -i it reads what is typed. It continues afterwards.",
    args: { ...POD_ARG, ...CONTAINER_ARG, ...STREAM_ARGS, ...NAMESPACE_ARG },
    run: async (request, io) => (await import("./commands/exec.ts")).runAttach(request, io),
  },
  {
    name: "cp",
    description: "copy files into and out of containers",
    section: "Inside",
    usage: ["cp POD:PATH LOCAL [flags]", "cp LOCAL POD:PATH [flags]"],
    about: "Copies a file or a directory with tar, which the image must have. NAMESPACE/POD:PATH names a namespace.",
    args: { from: word("pod-path"), to: word("pod-path"), ...CONTAINER_ARG, ...NAMESPACE_ARG },
    run: async (request, io) => (await import("./commands/cp.ts")).runCopy(request, io),
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
    run: async (request, io) => (await import("./commands/port-forward.ts")).runPortForward(request, io),
  },
];

/** Arguments of `kubelet-ts validate`. */
const VALIDATE_ARGS = {
  manifest: word("file"),
  output: choice(["text", "json"], "what to print (default: text)", "o"),
  validate: choice(
    ["strict", "standard", "warn", "ignore"],
    "unknown fields are errors (strict, standard), warnings, or ignored; strict refuses objects without effect too (default: standard, with --batch strict)",
  ),
  "node-name": text("name", "suffix of the pods' names (default: this host's name, or hostnameOverride of --config)"),
  config: text("file", "the node's KubeletConfiguration, whose rules apply"),
  "config-dir": text("directory", "the node's drop-ins (*.conf)"),
  "allow-privileged": toggle("whether containers may be privileged (default: false)"),
  "allowed-unsafe-sysctls": text("name,…", "sysctls that pods may set beyond the safe ones"),
  "ingress-ports": text("http,https", "ports of the ingress server (default: 80,443)"),
  "max-pods": text("int", "pods that may run (default: 110)"),
  "node-labels": text("key=value,…", "labels of the node, for nodeSelector"),
  batch: {
    type: "boolean",
    description: 'read JSON lines {"id", "manifest"} or {"id", "manifest_b64"}, answer each with {"id", "results"}',
  },
} satisfies ArgsDef;

/** Commands that need neither a kubelet nor an engine. */
export const SETUP_COMMANDS: readonly SubCommand[] = [
  {
    name: "validate",
    description: "check manifests: every mistake with its line",
    section: "Check",
    usage: ["validate [flags] FILE|DIR|URL|-…"],
    about: `Checks manifests by the rules of Kubernetes and of this node; needs no Docker engine.
Exit codes: 0 no errors, 2 errors (or bad usage).`,
    args: VALIDATE_ARGS,
    run: async (request, io) => (await import("./commands/validate-command.ts")).runValidate(request, io),
  },
  {
    name: "config",
    description: "show the effective settings and their origins",
    section: "Check",
    usage: ["config [flags of the kubelet] [-o yaml|json]"],
    about: "Shows the effective configuration and where each value comes from. Nothing is started.",
    args: {},
    takesKubeletFlags: true,
    run: async ({ rawArgs }, io) => (await import("./commands/config-command.ts")).runConfig(rawArgs, io),
  },
  {
    name: "page",
    description: "print a link to the web page of the node",
    section: "Show",
    usage: ["page [--open]"],
    about: `Prints a link to the web page of the running kubelet; in a terminal of a desktop it opens the browser.
The link starts a session with logs, a shell and actions. It works once, within ten minutes, in a browser on
this machine; from another machine, forward the port first: ssh -L 4194:localhost:4194 HOST. Only the user
that runs the kubelet can make a link: use sudo for the installed service.`,
    args: { open: toggle("open it in the desktop's browser (xdg-open)") },
    run: async (request, io) => (await import("./commands/page.ts")).runPage(request, io),
  },
  {
    name: "doctor",
    description: "check this machine: engine, kernel, disks, ports",
    section: "Check",
    usage: ["doctor [flags of the kubelet] [-o text|json]"],
    about: `Checks what a kubelet needs on this machine, one line each: ok, warn or FAIL, with the command
that fixes it. It changes nothing. Without flags it takes the settings of the installed service.
Exit codes: 0 no check failed, 1 one did, 2 bad usage.`,
    args: {},
    takesKubeletFlags: true,
    run: async ({ rawArgs }, io) => (await import("./commands/doctor.ts")).runDoctor(rawArgs, io),
  },
  {
    name: "install",
    description: "install this binary as a service of the machine",
    section: "Setup",
    usage: ["install [--dry-run]", "install --rollback", "install --bundle FILE", "install --destdir DIR"],
    about: `Copies itself to /usr/local/bin, creates /etc/kubernetes/manifests, a commented
/etc/kubelet-ts/config.yaml and a service (systemd or OpenRC), and starts it. Run again, it upgrades in
place: pods keep running, edited files stay, the binary before is kept for --rollback. Without root it
installs a systemd user service for a rootless engine.
Exit codes: 0 installed and ready, 1 not installed or not ready, 2 bad usage.`,
    args: {
      rollback: toggle("go back to the binary before the last upgrade"),
      "dry-run": toggle("show the steps and change nothing"),
      bundle: text("file", "verify a bundle, load its images, install its manifests"),
      "docker-endpoint": text("url", "the engine that loads the images"),
      destdir: text("directory", "write below this directory and start nothing"),
    },
    run: async (request, io) => (await import("./commands/install.ts")).runInstall(request, io),
  },
  {
    name: "bundle",
    description: "write binary, manifests and images into one file",
    section: "Setup",
    usage: ["bundle -f DIR -o site.tar"],
    about: `Writes this binary, the manifests and the images that they name to one file with checksums. A machine
without a network is set up with it: tar -xf site.tar kubelet-ts && ./kubelet-ts install --bundle site.tar`,
    wordsHint: "; give manifests with -f",
    args: {
      filename: text("file", "file or directory; may be repeated", "f"),
      output: text("file", "the bundle", "o"),
      "docker-endpoint": text("url", "the engine that has the images"),
    },
    run: async (request, io) => (await import("./commands/bundle.ts")).runBundle(request, io),
  },
  {
    name: "uninstall",
    description: "remove the service and the binary; pods keep running",
    section: "Setup",
    usage: ["uninstall [--pods] [--dry-run]"],
    about: `Stops the service and removes it and the binary. Configuration, manifests and the root
directory stay.`,
    args: {
      pods: toggle("stop the pods and remove their containers too; also those that an earlier uninstall left"),
      "dry-run": toggle("show the steps and change nothing"),
      destdir: text("directory", "remove below this directory"),
    },
    run: async (request, io) => (await import("./commands/install.ts")).runUninstall(request, io),
  },
  {
    name: "kubeconfig",
    description: "print the kubeconfig of the local API, for kubectl",
    section: "Setup",
    usage: ["kubeconfig [--merge]"],
    about: "Prints <root-dir>/admin.conf. With --merge its context is added to ~/.kube/config, or to KUBECONFIG.",
    args: {
      merge: toggle("add it to the user's kubeconfig and make it the current context"),
    },
    run: async (request, io) => (await import("./commands/kubeconfig.ts")).runKubeconfig(request, io),
  },
  {
    name: "use",
    description: "choose which of several kubelets the commands ask",
    section: "Setup",
    usage: ["use", "use NODE|ROOT-DIR", "use --none"],
    about: `Without an argument lists the kubelets of this machine. The choice is kept in
~/.config/kubelet-ts/root-dir; --root-dir and KUBELET_TS_ROOT_DIR win over it.`,
    args: {
      object: word("kubelet"),
      none: toggle("choose none"),
    },
    run: async (request, io) => (await import("./commands/use.ts")).runUse(request, io),
  },
  {
    name: "import",
    description: "write manifests for a Compose file or for containers",
    section: "Setup",
    usage: ["import compose [FILE...] > FILE", "import docker CONTAINER... > FILE"],
    about: `Prints a Pod for each service of a Compose file, or for each container, with the ConfigMaps and
Secrets they need, and names on standard error everything that cannot be carried over.
compose without FILE reads the files that docker compose would read in this directory;
docker asks the engine how the containers were started. Nothing is started or stopped.`,
    objects: { compose: ["docker-compose"], docker: ["container", "containers"] },
    args: {
      object: word("object"),
      input: word("file"),
      file: text("FILE", "a Compose file; may be repeated, later ones override", "f"),
      profile: text("names", "profiles whose services are taken, as COMPOSE_PROFILES"),
      "project-name": text("name", "prefix of volumes, name of the network (default: as docker compose)", "p"),
    },
    run: async (request, io) => (await import("./commands/import-command.ts")).runImport(request, io),
  },
  {
    name: "completion",
    description: "print a completion script for bash, zsh or fish",
    section: "Setup",
    usage: ["completion bash|zsh|fish"],
    about: `Prints a script that completes kubelet-ts in that shell: source <(kubelet-ts completion
bash), the same in zsh, kubelet-ts completion fish | source. It asks the binary for each
completion, so names come from the kubelet that the flags typed so far name.`,
    objects: { bash: [], zsh: [], fish: [] },
    args: { shell: word("object") },
    run: async (request, io) => (await import("./commands/completion.ts")).runCompletion(request, io),
  },
  {
    name: "version",
    description: "print the version",
    section: "Setup",
    usage: ["version [flags]"],
    about: "Prints the version, and the commit it was built from.",
    args: {
      output: choice(["text", "json"], "one line, or an object", "o"),
    },
    run: async (request, io) => (await import("./commands/version.ts")).runVersion(request, io),
  },
];
