import type { TCPSocketAction } from "../../base/api/probe.ts";
import type { ProbeOutcome, ProbeTarget } from "../../base/model/prober.ts";
import { DialError, dial } from "./dial.ts";
import { resolvePort } from "./resolve-port.ts";

/** One attempt: success when the port accepts. Throws PortError, or rejects with the reason of an abort. */
export async function probeTcp(
  action: TCPSocketAction,
  target: ProbeTarget,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  const port = resolvePort(action.port, target.ports);
  try {
    const socket = await dial(action.host || target.podIp, port, signal);
    socket.destroy();
    return { result: "success", output: "" };
  } catch (error) {
    if (!(error instanceof DialError)) throw error;
    return { result: error.isOwnFault ? "unknown" : "failure", output: error.message };
  }
}
