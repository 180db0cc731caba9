import type { ArgsDef } from "citty";

/** Names of kinds the first argument can be. */
export const PODS = ["pod", "po"];
export const NODES = ["node", "no"];
export const EVENTS = ["event", "ev"];

export const NAMESPACE_ARG = {
  namespace: { type: "string", alias: "n", valueHint: "namespace", description: "namespace of the pod (default: any)" },
} satisfies ArgsDef;

export const SCOPE_ARGS = {
  namespace: { type: "string", alias: "n", valueHint: "namespace", description: "only this namespace (default: all)" },
  "all-namespaces": { type: "boolean", alias: "A", description: "all namespaces, with a column for them" },
} satisfies ArgsDef;

export const SELECTOR_ARG = {
  selector: { type: "string", alias: "l", valueHint: "key=value,…", description: "only objects with these labels" },
} satisfies ArgsDef;

export const HEADERS_ARG = {
  headers: { type: "boolean", default: true, negativeDescription: "leave out the line of column names" },
} satisfies ArgsDef;

export const CONTAINER_ARG = {
  container: {
    type: "string",
    alias: "c",
    valueHint: "container",
    description: "which container (default: the first one)",
  },
} satisfies ArgsDef;

/** Positional arguments are declared for completion; each command checks their number itself. */
export const POD_ARG = {
  pod: { type: "positional", required: false, valueHint: "pod", description: "name, with or without the node's" },
} satisfies ArgsDef;
