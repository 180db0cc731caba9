import type { ArgDef, ArgsDef } from "citty";

/** A flag with a value. @param alias one letter */
export const text = (valueHint: string, description: string, alias?: string): ArgDef => ({
  type: "string",
  valueHint,
  description,
  ...(alias && { alias }),
});

/** A flag whose value is one of these. */
export const choice = (options: string[], description: string, alias?: string): ArgDef => ({
  type: "enum",
  options,
  description,
  ...(alias && { alias }),
});

/** A flag without a value. */
export const toggle = (description: string, alias?: string): ArgDef => ({
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
export const PODS = ["pod", "po"];
export const NODES = ["node", "no"];
export const EVENTS = ["event", "ev"];

export const NAMESPACE_ARG = {
  namespace: text("namespace", "namespace of the pod (default: any)", "n"),
} satisfies ArgsDef;

export const SCOPE_ARGS = {
  namespace: text("namespace", "only this namespace (default: all)", "n"),
  "all-namespaces": toggle("all namespaces, with a column for them", "A"),
} satisfies ArgsDef;

export const SELECTOR_ARG = { selector: text("key=value,…", "only objects with these labels", "l") } satisfies ArgsDef;

export const HEADERS_ARG = {
  headers: { type: "boolean", default: true, negativeDescription: "leave out the line of column names" },
} satisfies ArgsDef;

export const CONTAINER_ARG = {
  container: text("container", "which container (default: the first one)", "c"),
} satisfies ArgsDef;

export const POD_ARG = { pod: word("pod") } satisfies ArgsDef;
