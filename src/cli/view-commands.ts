import { FINDING_FLAGS, SCOPE_FLAGS, SELECTOR_FLAG, type ViewCommand, type ViewFlag } from "./view-flags.ts";

const PODS = ["pod", "po"];
const NODES = ["node", "no"];
const NO_HEADERS: ViewFlag = { name: "no-headers", description: "Leave out the line of column names." };

export const GET: ViewCommand = {
  name: "get",
  usage: ["get pods [name…] [flags]", "get node [flags]", "get events [flags]"],
  about: `Shows what the running kubelet says, in the look of kubectl. A name is the pod's, with
or without the node's name at its end. Without -n or -A, pods of all namespaces are
shown, and a column tells which as soon as one is not in "default": scripts should give
one of the two flags, or -o.`,
  objects: { pods: PODS, nodes: NODES, events: ["event", "ev"] },
  flags: [
    {
      name: "output",
      short: "o",
      value: "wide|json|yaml|name",
      choices: ["wide", "json", "yaml", "name"],
      description: "More columns, whole objects, or names only.",
    },
    { name: "watch", short: "w", description: "Go on, and show what changes." },
    { name: "watch-only", description: "Show changes alone, not what there is." },
    NO_HEADERS,
    SELECTOR_FLAG,
    { name: "show-labels", description: "A last column with all labels." },
    { name: "label-columns", short: "L", value: "key,…", description: "A column for each of these labels." },
    ...SCOPE_FLAGS,
    ...FINDING_FLAGS,
  ],
};

export const DESCRIBE: ViewCommand = {
  name: "describe",
  usage: ["describe pod [name…] [flags]", "describe node [flags]"],
  about: `Shows pods in the layout of kubectl describe; without a name all of them; or the
node, with what its pods ask for. Values of
environment variables are shown only if the kubelet runs with --read-only-full, and
never those that come from Secrets.`,
  objects: { pods: PODS, nodes: NODES },
  flags: [SELECTOR_FLAG, ...SCOPE_FLAGS, ...FINDING_FLAGS],
};

export const LOGS: ViewCommand = {
  name: "logs",
  usage: ["logs pod [container] [flags]"],
  about: `Prints the logs of a container, of the pod's first one unless told otherwise. They come
from the Docker engine, so they can be read while no kubelet runs, also those of pods
that --runonce started.`,
  flags: [
    { name: "container", short: "c", value: "name", description: "Which container, also an init container." },
    { name: "all-containers", description: "All of them, init containers first; each line can be told by --prefix." },
    { name: "follow", short: "f", description: "Go on until the container ends." },
    { name: "previous", short: "p", description: "Of the container before this one, which crashed or was replaced." },
    { name: "tail", value: "lines", description: "Only so many lines, the last ones. Default: all." },
    { name: "since", value: "duration", description: "Only what is younger: 30s, 5m, 2h." },
    { name: "since-time", value: "time", description: "Only what was written after this time (RFC 3339)." },
    { name: "timestamps", description: "Begin each line with its time." },
    { name: "limit-bytes", value: "bytes", description: "Stop after so many bytes." },
    { name: "prefix", description: "Begin each line with [pod/name/container]." },
    {
      name: "stream",
      value: "All|Stdout|Stderr",
      choices: ["All", "Stdout", "Stderr"],
      description: "Only one of the two streams. Default: All.",
    },
    {
      name: "docker-endpoint",
      value: "URL",
      description: "Where the engine listens. Default: where the kubelet's does, else DOCKER_HOST or the usual socket.",
    },
    { name: "namespace", short: "n", value: "name", description: "Namespace of the pod. Default: any." },
    ...FINDING_FLAGS,
  ],
};

export const TOP: ViewCommand = {
  name: "top",
  usage: ["top pods [name…] [flags]", "top node [flags]"],
  about: `Shows CPU in thousandths of a core, averaged over the last ten seconds or more, and
memory as the working set: what the kernel cannot easily take back.`,
  objects: { pods: PODS, nodes: NODES },
  flags: [
    { name: "containers", description: "Each container of the pods." },
    {
      name: "sort-by",
      value: "cpu|memory",
      choices: ["cpu", "memory"],
      description: "The greediest first. Default: by name.",
    },
    { name: "sum", description: "Add a line with the sum over the pods shown." },
    { name: "show-capacity", description: "Shares of all the node has, not of what pods may have." },
    NO_HEADERS,
    SELECTOR_FLAG,
    ...SCOPE_FLAGS,
    ...FINDING_FLAGS,
  ],
};

/** All commands that look at a running kubelet. */
export const VIEW_COMMANDS: readonly ViewCommand[] = [GET, DESCRIBE, LOGS, TOP];
