import type { ArgsDef } from "citty";
import type { SubCommand } from "../sub-command.ts";
import { choice, text, toggle, word } from "./shared-args.ts";

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
    run: async (request, io) => (await import("../commands/validate-command.ts")).runValidate(request, io),
  },
  {
    name: "config",
    description: "show the effective settings and their origins",
    section: "Check",
    usage: ["config [flags of the kubelet] [-o yaml|json]"],
    about: "Shows the effective configuration and where each value comes from. Nothing is started.",
    args: {},
    takesKubeletFlags: true,
    run: async ({ rawArgs }, io) => (await import("../commands/config-command.ts")).runConfig(rawArgs, io),
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
    run: async (request, io) => (await import("../commands/page.ts")).runPage(request, io),
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
    run: async ({ rawArgs }, io) => (await import("../commands/doctor.ts")).runDoctor(rawArgs, io),
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
    run: async (request, io) => (await import("../commands/install.ts")).runInstall(request, io),
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
    run: async (request, io) => (await import("../commands/bundle.ts")).runBundle(request, io),
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
    run: async (request, io) => (await import("../commands/install.ts")).runUninstall(request, io),
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
    run: async (request, io) => (await import("../commands/kubeconfig.ts")).runKubeconfig(request, io),
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
    run: async (request, io) => (await import("../commands/use.ts")).runUse(request, io),
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
    run: async (request, io) => (await import("../commands/import-command.ts")).runImport(request, io),
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
    run: async (request, io) => (await import("../commands/completion.ts")).runCompletion(request, io),
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
    run: async (request, io) => (await import("../commands/version.ts")).runVersion(request, io),
  },
];
