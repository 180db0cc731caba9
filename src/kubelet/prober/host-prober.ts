import type { Probe } from "../../base/api/probe.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { ContainerExec, ProbeOutcome, Prober, ProbeTarget } from "../../base/model/prober.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { DeadlineError } from "./dial.ts";
import { probeExec } from "./exec-probe.ts";
import { probeGrpc } from "./grpc-probe.ts";
import { probeHttp } from "./http-probe.ts";
import { probeTcp } from "./tcp-probe.ts";

interface HostProberOptions {
  exec: ContainerExec;
  clock: Clock;
  /** e.g. `1.20`: probes send the user agent `kube-probe/<version>`, which many servers check. */
  version: string;
}

/** The engine ends an exec at its time limit; this is the extra time for one that hangs. */
const ENGINE_SLACK_MS = 5000;

/** Probes from the host side, so that images need neither a shell nor curl. Network attempts bypass fetch and proxies. */
export class HostProber implements Prober {
  readonly #exec: ContainerExec;
  readonly #clock: Clock;
  readonly #userAgent: string;

  constructor({ exec, clock, version }: HostProberOptions) {
    this.#exec = exec;
    this.#clock = clock;
    this.#userAgent = `kube-probe/${version}`;
  }

  async attempt(probe: Probe, target: ProbeTarget, signal: AbortSignal): Promise<ProbeOutcome> {
    const timeoutMs = probe.timeoutSeconds * 1000;
    const deadline = new AbortController();
    const onAbort = (): void => deadline.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    const cancel = this.#clock.schedule(probe.exec ? timeoutMs + ENGINE_SLACK_MS : timeoutMs, () =>
      deadline.abort(new DeadlineError()),
    );
    try {
      return await this.#run(probe, target, timeoutMs, deadline.signal);
    } catch (error) {
      return { result: "unknown", output: messageOf(error) };
    } finally {
      cancel();
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #run(probe: Probe, target: ProbeTarget, timeoutMs: number, signal: AbortSignal): Promise<ProbeOutcome> {
    if (probe.exec) return probeExec(probe.exec, target, timeoutMs, this.#exec, signal);
    if (target.podIp === "" && !probe.httpGet?.host && !probe.tcpSocket?.host) {
      throw new Error("the pod has no IP address");
    }
    if (probe.httpGet) return probeHttp(probe.httpGet, target, this.#userAgent, signal);
    if (probe.tcpSocket) return probeTcp(probe.tcpSocket, target, signal);
    if (probe.grpc) return probeGrpc(probe.grpc, target, { timeoutMs, userAgent: this.#userAgent, signal });
    throw new Error("missing probe handler");
  }
}
