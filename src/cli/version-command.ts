import { defineCommand } from "citty";
import { buildInfo, versionLine } from "./version.ts";

/** `kubelet-ts version [-o json]`. */
export const versionCommand = defineCommand({
  meta: { name: "version", description: "print the version" },
  args: { output: { type: "string", alias: "o", description: "text or json", default: "text" } },
  run: ({ args }) => {
    process.stdout.write(args.output === "json" ? `${JSON.stringify(buildInfo)}\n` : `${versionLine()}\n`);
  },
});
