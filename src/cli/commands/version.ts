import { buildInfo, versionLine } from "../../daemon/version.ts";
import type { CommandIo, CommandRequest } from "../sub-command.ts";

/** `kubelet-ts version [-o text|json]`. Returns the exit code. */
export function runVersion({ value }: CommandRequest, io: CommandIo): number {
  io.stdout(value("output") === "json" ? `${JSON.stringify(buildInfo)}\n` : `${versionLine()}\n`);
  return 0;
}
