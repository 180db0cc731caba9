import type { SubCommand } from "../sub-command.ts";
import {
  CONTAINER_ARG,
  choice,
  EVENTS,
  HEADERS_ARG,
  NAMESPACE_ARG,
  NODES,
  POD_ARG,
  PODS,
  SCOPE_ARGS,
  SELECTOR_ARG,
  text,
  toggle,
  word,
} from "./shared-args.ts";

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
    run: async (request, io) => (await import("../commands/get.ts")).runGet(request, io),
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
    run: async (request, io) => (await import("../commands/describe.ts")).runDescribe(request, io),
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
    run: async (request, io) => (await import("../commands/logs.ts")).runLogs(request, io),
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
    run: async (request, io) => (await import("../commands/top.ts")).runTop(request, io),
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
    run: async (request, io) => (await import("../commands/explain.ts")).runExplain(request, io),
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
    run: async (request, io) => (await import("../commands/events.ts")).runEvents(request, io),
  },
];
