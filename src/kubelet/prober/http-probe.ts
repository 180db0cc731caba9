import type { HTTPGetAction } from "../../base/api/probe.ts";
import { PROBE_OUTPUT_LIMIT_BYTES, type ProbeOutcome, type ProbeTarget } from "../../base/model/prober.ts";
import { HttpGetError, type HttpLocation, httpGet, toRequestTarget } from "./http-get.ts";
import { resolvePort } from "./resolve-port.ts";

/** Location of an httpGet handler. Throws PortError. */
export function toHttpLocation(action: HTTPGetAction, target: Pick<ProbeTarget, "podIp" | "ports">): HttpLocation {
  return {
    scheme: action.scheme === "HTTPS" ? "https" : "http",
    host: action.host || target.podIp,
    port: resolvePort(action.port, target.ports),
    target: toRequestTarget(action.path),
  };
}

/**
 * One attempt: 200–299 is success, a redirect that leaves the host a warning, everything else a failure; a status
 * without its body does not count (unknown), as upstream. Rejects only with the reason of an abort.
 */
export async function probeHttp(
  action: HTTPGetAction,
  target: ProbeTarget,
  userAgent: string,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  try {
    const { status, body } = await httpGet(toHttpLocation(action, target), {
      headers: action.httpHeaders ?? [],
      userAgent,
      bodyLimitBytes: PROBE_OUTPUT_LIMIT_BYTES,
      signal,
    });
    if (status >= 200 && status < 300) return { result: "success", output: body };
    if (status >= 300 && status < 400) {
      return { result: "warning", output: `Probe terminated redirects, Response body: ${body}` };
    }
    return { result: "failure", output: `HTTP probe failed with statuscode: ${status}` };
  } catch (error) {
    if (!(error instanceof HttpGetError)) throw error;
    const saysNothing = error.kind === "own-fault" || error.kind === "body";
    return { result: saysNothing ? "unknown" : "failure", output: error.message };
  }
}
