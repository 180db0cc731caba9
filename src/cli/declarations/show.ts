import type { SubCommand } from "../sub-command.ts";
import {
  CONTAINER_ARG,
  EVENTS,
  HEADERS_ARG,
  NAMESPACE_ARG,
  NODES,
  POD_ARG,
  PODS,
  SCOPE_ARGS,
  SELECTOR_ARG,
} from "./shared-args.ts";

const KIND_ARG = { kind: { type: "positional", required: false, valueHint: "object" } } as const;
/** A kind of the local API too. */
const ANY_KIND_ARG = { kind: { type: "positional", required: false, valueHint: "kind" } } as const;
const NAME_ARG = { name: { type: "positional", required: false, valueHint: "name" } } as const;

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
      output: {
        type: "string",
        alias: "o",
        valueHint: "wide|json|yaml|name|jsonpath=",
        description: "more columns, whole objects, names, or parts",
      },
      "field-selector": { type: "string", valueHint: "field=value,…", description: "only objects with these fields" },
      "sort-by": { type: "string", valueHint: "jsonpath", description: "order by this field" },
      watch: { type: "boolean", alias: "w", description: "continue, and show what changes" },
      "watch-only": { type: "boolean", description: "show changes only" },
      "ignore-not-found": { type: "boolean", description: "what does not exist is no error" },
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
      "container-name": { type: "positional", required: false, valueHint: "container" },
      ...CONTAINER_ARG,
      "all-containers": { type: "boolean", description: "all containers, init containers first" },
      follow: { type: "boolean", alias: "f", description: "continue until the container ends" },
      previous: { type: "boolean", alias: "p", description: "of the container before this one" },
      tail: { type: "string", valueHint: "lines", description: "only the last lines" },
      since: { type: "string", valueHint: "duration", description: "only what is younger: 30s, 5m, 2h" },
      "since-time": { type: "string", valueHint: "time", description: "only what is younger (RFC 3339)" },
      timestamps: { type: "boolean", description: "begin each line with its time" },
      "limit-bytes": { type: "string", valueHint: "bytes", description: "stop after this number of bytes" },
      prefix: { type: "boolean", description: "begin each line with [pod/name/container]" },
      stream: { type: "enum", options: ["All", "Stdout", "Stderr"], description: "one of the two streams only" },
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
      containers: { type: "boolean", description: "each container of the pods" },
      "sort-by": { type: "enum", options: ["cpu", "memory"], description: "the largest first (default: by name)" },
      sum: { type: "boolean", description: "add a line with the sum over the pods shown" },
      "show-capacity": { type: "boolean", description: "shares of the node's capacity, not of its allocatable" },
      ...HEADERS_ARG,
      ...SELECTOR_ARG,
      ...SCOPE_ARGS,
    },
    run: async (request, io) => (await import("../commands/top.ts")).runTop(request, io),
  },
  {
    name: "explain",
    description: "say why a pod is not ready, and the way out",
    section: "Show",
    usage: ["explain [pod] [NAME…] [flags]", "explain KIND[.FIELD…] [--recursive]"],
    about: `Names the condition that holds a pod back, the last answers of its probes, its last exit, the
end of its log, what is missing, and what to do. Exit codes: 0 ready, 1 not. With a kind, as in
pod.spec.containers or deployment, it describes the fields of manifests instead.`,
    args: {
      ...POD_ARG,
      recursive: { type: "boolean", description: "names and types of all fields of a kind" },
      output: { type: "enum", alias: "o", options: ["text", "json"], description: "what to print (default: text)" },
      ...NAMESPACE_ARG,
    },
    run: async (request, io) => (await import("../commands/explain.ts")).runExplain(request, io),
  },
  {
    name: "events",
    description: "list what happened, the latest last",
    section: "Show",
    usage: ["events [--for KIND/NAME] [flags]"],
    about: "Lists the events of the last hour and of this run of the kubelet.",
    args: {
      for: { type: "string", valueHint: "name", description: "of this object, also after it is gone" },
      types: { type: "string", valueHint: "Normal|Warning", description: "only these types" },
      watch: { type: "boolean", alias: "w", description: "continue, and show what is new" },
      output: { type: "enum", alias: "o", options: ["json", "yaml", "name"], description: "whole objects, or names" },
      ...HEADERS_ARG,
      ...SCOPE_ARGS,
    },
    run: async (request, io) => (await import("../commands/events.ts")).runEvents(request, io),
  },
];
