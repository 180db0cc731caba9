import type { ExecAction, Probe, TCPSocketAction } from "../../base/api/container.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { ContainerAccess } from "../../base/model/container-access.ts";
import { PROBE_OUTPUT_LIMIT_BYTES, type ProbeOutcome, type Prober, type ProbeTarget } from "../../base/model/prober.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { probeGrpc } from "./grpc-probe.ts";
import { DeadlineError, DialError, dial, probeHttp, resolvePort } from "./port-requests.ts";

interface HostProberOptions {
  exec: Pick<ContainerAccess, "run">;
  clock: Clock;
  /** e.g. `1.20`: probes send the user agent `kube-probe/<version>`, which many servers check. */
  version: string;
}

/** The engine ends an exec at its time limit; this is the extra time for one that hangs. */
const ENGINE_SLACK_MS = 5000;

/** Probes from the host side, so that images need neither a shell nor curl. Network attempts bypass fetch and proxies. */
export class HostProber implements Prober {
  readonly #options: HostProberOptions;

  constructor(options: HostProberOptions) {
    this.#options = options;
  }

  async attempt(probe: Probe, target: ProbeTarget, signal: AbortSignal): Promise<ProbeOutcome> {
    const timeoutMs = probe.timeoutSeconds * 1000;
    const deadline = new AbortController();
    const cancel = this.#options.clock.schedule(probe.exec ? timeoutMs + ENGINE_SLACK_MS : timeoutMs, () =>
      deadline.abort(new DeadlineError()),
    );
    try {
      const outcome = await this.#run(probe, target, timeoutMs, AbortSignal.any([signal, deadline.signal]));
      const isTimeout = outcome.result === "failure" && deadline.signal.aborted;
      return isTimeout ? { ...outcome, isTimeout } : outcome;
    } catch (error) {
      return { result: "unknown", output: messageOf(error) };
    } finally {
      cancel();
    }
  }

  async #run(probe: Probe, target: ProbeTarget, timeoutMs: number, signal: AbortSignal): Promise<ProbeOutcome> {
    const { exec, version } = this.#options;
    const userAgent = `kube-probe/${version}`;
    if (probe.exec) return probeExec(probe.exec, target, timeoutMs, exec, signal);
    if (target.podIp === "" && !probe.httpGet?.host && !probe.tcpSocket?.host) {
      throw new Error("the pod has no IP address");
    }
    if (probe.httpGet) return probeHttp(probe.httpGet, target, userAgent, signal);
    if (probe.tcpSocket) return probeTcp(probe.tcpSocket, target, signal);
    if (probe.grpc) return probeGrpc(probe.grpc, target, { timeoutMs, userAgent, signal });
    throw new Error("missing probe handler");
  }
}

/**
 * One attempt: the exit code decides. A command over its time is killed and fails. Rejects when the engine
 * could not run it.
 */
async function probeExec(
  action: ExecAction,
  target: ProbeTarget,
  timeoutMs: number,
  exec: Pick<ContainerAccess, "run">,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  const argv = action.command ?? [];
  const ended = await exec.run(target.containerId, target.execCommand ?? argv, {
    timeoutMs,
    maxOutputBytes: PROBE_OUTPUT_LIMIT_BYTES,
    signal,
  });
  const late = `command timed out: "${argv.join(" ")}" timed out after ${timeoutMs / 1000}s`;
  if (ended.timedOut) return { result: "failure", output: late, isTimeout: true };
  if (ended.exitCode === undefined) return { result: "unknown", output: "the engine reported no exit code" };
  if (ended.exitCode === 0) return { result: "success", output: ended.output };
  const isUnread = ended.isCut === true && ended.output === "";
  const cut = `${late}: it ended with exit code ${ended.exitCode}, and its output was not read in this time`;
  return { result: "failure", output: isUnread ? cut : ended.output };
}

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
