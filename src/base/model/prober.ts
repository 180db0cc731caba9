import type { ContainerPort, Probe } from "../api/container.ts";
import type { ContainerId } from "./pod-snapshot.ts";

/** Limit of what is kept of a response body or of a command's output. Source: upstream's `maxRespBodyLength`, `maxReadLength`. */
export const PROBE_OUTPUT_LIMIT_BYTES = 10 * 1024;

/** Which question a probe answers. */
export type ProbeKind = "readiness" | "liveness" | "startup";

/** Result of a probe once its thresholds are met. */
export type ProbeResult = "success" | "failure";

/** `warning` counts as success (a redirect to another host). `unknown`: it could not be made, and does not count. */
export interface ProbeOutcome {
  result: "success" | "warning" | "failure" | "unknown";
  /** For events: body, command output or error. At most 10 KiB. */
  output: string;
  /** Our time limit ended the attempt: a stall of our own event loop may be the cause. */
  isTimeout?: boolean;
}

/** The container an attempt is aimed at. */
export interface ProbeTarget {
  containerId: ContainerId;
  /** Address that httpGet, tcpSocket and grpc connect to unless they name a host; the node's IP with hostNetwork; "" = not known. */
  podIp: string;
  /** `ports` of the container, for ports given by name. */
  ports: readonly ContainerPort[];
  /** Command of an exec probe with `$(VAR)` replaced; messages show it as the manifest has it. Absent = nothing to replace. */
  execCommand?: readonly string[];
}

/** Makes one attempt of one probe from the host side. */
export interface Prober {
  /** Ends after `probe.timeoutSeconds` at the latest, at once when `signal` aborts. Never rejects. */
  attempt(probe: Probe, target: ProbeTarget, signal: AbortSignal): Promise<ProbeOutcome>;
}

/** Last probe results of one container, so that a restart of the kubelet does not change its readiness. */
export interface StoredProbeResults {
  /** Start of the container's process: results of an earlier start do not count. Milliseconds since 1970. */
  startedAtMs: number;
  readiness?: ProbeResult;
  liveness?: ProbeResult;
  startup?: ProbeResult;
}
