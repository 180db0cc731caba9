import { messageOf } from "../base/text/error-message.ts";
import { PodStepError } from "../plan/waiting-reasons.ts";
import { DockerError, DockerUnreachableError } from "./engine/docker-error.ts";

/** Upstream's words, as they are in a waiting container's state. */
type ImageErrorReason =
  | "ErrImagePull"
  | "ImagePullBackOff"
  | "ErrImageNeverPull"
  | "InvalidImageName"
  | "ImageInspectError"
  | "RegistryUnavailable";

/** `unknown` no such image, `denied` wrong or no credentials, `tls` no trust, `stalled` no progress. */
type RegistryProblem = "unknown" | "denied" | "unreachable" | "tls" | "stalled" | "other";

/** An image is not available now. `reason` and `message` are for the container's status. */
export class ImageError extends PodStepError {
  declare readonly reason: ImageErrorReason;
  readonly image: string;
  /** Only where a registry was asked. */
  readonly problem: RegistryProblem | undefined;

  constructor(
    reason: ImageErrorReason,
    image: string,
    message: string,
    options: { retryAfterMs?: number | undefined; problem?: RegistryProblem | undefined; cause?: unknown } = {},
  ) {
    super(reason, message, options);
    this.image = image;
    this.problem = options.problem;
  }
}

/** The engine reports a registry's problem as text only: matched here alone, for hints; no decision depends on it. */
export function registryProblem(daemonMessage: string): Exclude<RegistryProblem, "stalled"> {
  const text = daemonMessage.toLowerCase();
  if (/x509:|tls:|certificate|gave http response to https client/.test(text)) return "tls";
  // Docker Hub says "denied" for what does not exist too: both words come, and denied covers both.
  if (/unauthorized|denied|no basic auth credentials|authentication required|forbidden/.test(text)) return "denied";
  if (/manifest unknown|name unknown|not found|no matching manifest|does not exist/.test(text)) return "unknown";
  if (/dial tcp|no such host|connection refused|i\/o timeout|timeout|unreachable|eof|connection reset/.test(text)) {
    return "unreachable";
  }
  return "other";
}

/** Suggested fix in a few words; "" when the message suffices. */
export function registryHint(problem: RegistryProblem): string {
  switch (problem) {
    case "unknown":
      return "check the name and the tag";
    case "denied":
      return "check the name, and the credentials in config.json or imagePullSecrets";
    case "unreachable":
      return "check the registry's address and the network; the image can also be loaded from a directory (--images-dir)";
    case "tls":
      return "add the registry's CA to /etc/docker/certs.d, or list it in insecure-registries of /etc/docker/daemon.json";
    case "stalled":
      return "the network to the registry is too slow or broken; see --image-pull-progress-deadline";
    case "other":
      return "";
  }
}

/** dockershim's prefix of the engine's messages; scripts and alerts match it. */
const RUNTIME_ERROR_PREFIX = "rpc error: code = Unknown desc = ";

/** An engine's error in the kubelet's format. */
export const engineText = (error: DockerError) =>
  `${RUNTIME_ERROR_PREFIX}Error response from daemon: ${error.daemonMessage}`;

interface PullFailure {
  reason: "ErrImagePull" | "RegistryUnavailable";
  /** For the container's status. */
  message: string;
  /** For the event. */
  detail: string;
  problem: RegistryProblem;
}

/** Pure. */
export function toPullFailure(image: string, error: unknown): PullFailure {
  const causes = error instanceof AggregateError ? [...new Set(error.errors.map(textOf))] : [textOf(error)];
  const detail = causes.length === 1 ? (causes[0] ?? "") : `[${causes.join(", ")}]`;
  const last: unknown = error instanceof AggregateError ? error.errors.at(-1) : error;
  const problem =
    last instanceof DockerError
      ? registryProblem(last.daemonMessage)
      : last instanceof DockerUnreachableError && last.kind === "timeout"
        ? "stalled"
        : "other";
  // Source: dockershim `filterHTTPError`. A refused connection is no such case: the engine reports it as its own 500.
  if (last instanceof DockerError && [502, 503, 504].includes(last.status)) {
    const message = `image pull failed for ${image} because the registry is unavailable.`;
    return { reason: "RegistryUnavailable", message, detail, problem: "unreachable" };
  }
  return { reason: "ErrImagePull", message: detail, detail, problem };
}

function textOf(error: unknown): string {
  if (error instanceof DockerError) return engineText(error);
  return messageOf(error);
}
