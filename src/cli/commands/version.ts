import { buildInfo, versionLine } from "../../daemon/version.ts";
import { type CommandRequest, type TextIo, UsageError } from "../sub-command.ts";

/** `kubelet-ts version [-o text|json]`. Returns the exit code. */
export function runVersion({ positionals, value }: CommandRequest, io: TextIo): number {
  if (positionals.length > 0) throw new UsageError(`takes no arguments (found "${positionals[0]}")`);
  io.stdout(value("output") === "json" ? `${JSON.stringify(buildInfo)}\n` : `${versionLine()}\n`);
  return 0;
}
