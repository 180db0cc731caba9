import type { ArgsDef } from "citty";

/** Arguments of `kubelet-ts validate`. */
export const VALIDATE_ARGS = {
  manifest: { type: "positional", required: false, valueHint: "file" },
  output: { type: "enum", alias: "o", options: ["text", "json"], description: "what to print (default: text)" },
  validate: {
    type: "enum",
    options: ["strict", "standard", "warn", "ignore"],
    description:
      "unknown fields are errors (strict, standard), warnings, or ignored; strict refuses objects without effect too (default: standard, with --batch strict)",
  },
  "node-name": {
    type: "string",
    valueHint: "name",
    description: "suffix of the pods' names (default: this host's name, or hostnameOverride of --config)",
  },
  config: { type: "string", valueHint: "file", description: "the node's KubeletConfiguration, whose rules apply" },
  "config-dir": { type: "string", valueHint: "directory", description: "the node's drop-ins (*.conf)" },
  "allow-privileged": { type: "boolean", description: "whether containers may be privileged (default: false)" },
  "allowed-unsafe-sysctls": {
    type: "string",
    valueHint: "name,…",
    description: "sysctls that pods may set beyond the safe ones",
  },
  "max-pods": { type: "string", valueHint: "int", description: "pods that may run (default: 110)" },
  "node-labels": { type: "string", valueHint: "key=value,…", description: "labels of the node, for nodeSelector" },
  batch: {
    type: "boolean",
    description: 'read JSON lines {"id", "manifest"} or {"id", "manifest_b64"}, answer each with {"id", "results"}',
  },
} satisfies ArgsDef;
