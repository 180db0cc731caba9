import type { ArgsDef } from "citty";

/** Arguments of `kubelet-ts validate`. */
export const VALIDATE_ARGS = {
  manifest: { type: "positional", required: false, valueHint: "file" },
  output: { type: "enum", alias: "o", options: ["text", "json"], description: "what to print (default: text)" },
  validate: {
    type: "enum",
    options: ["strict", "warn", "ignore"],
    description: "unknown fields are errors (default), warnings, or ignored",
  },
  "node-name": {
    type: "string",
    valueHint: "name",
    description: "suffix of the pods' names (default: this host's name)",
  },
  "allow-privileged": { type: "boolean", description: "whether containers may be privileged" },
  batch: {
    type: "boolean",
    description: 'read JSON lines {"id", "manifest"} or {"id", "manifest_b64"}, answer each with {"id", "results"}',
  },
} satisfies ArgsDef;
