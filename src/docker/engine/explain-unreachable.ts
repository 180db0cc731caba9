import { messageOf } from "../../base/text/error-message.ts";
import { DockerUnreachableError, type UnreachableKind } from "./docker-error.ts";
import { type DockerEndpoint, endpointText } from "./endpoint.ts";

/**
 * Why a call got no answer, and what to do about it. Pure.
 * @param error thrown by fetch or node:http
 * @param expiredMs the deadline, if it passed
 */
export function explainUnreachable(
  error: unknown,
  operation: string,
  endpoint: DockerEndpoint,
  expiredMs: number | undefined,
): DockerUnreachableError {
  const where = endpointText(endpoint);
  const unreachable = (kind: UnreachableKind, message: string) =>
    new DockerUnreachableError(kind, operation, message, { cause: error });
  if (expiredMs !== undefined) {
    return unreachable("timeout", `Docker ${operation} at ${where} did not answer within ${expiredMs / 1000} s`);
  }
  const code = (error as { code?: unknown } | undefined)?.code;
  switch (code) {
    case "ENOENT":
      return unreachable(
        "no-socket",
        `No Docker engine at ${where}: there is no such socket. Install and start Docker, or say where it listens with --docker-endpoint or DOCKER_HOST`,
      );
    case "EACCES":
    case "EPERM":
      return unreachable(
        "no-permission",
        `No permission to use the Docker engine at ${where}: run as root, or as a member of the group that owns the socket (usually "docker")`,
      );
    case "ECONNREFUSED":
    case "ConnectionRefused":
      return unreachable(
        "refused",
        endpoint.kind === "unix"
          ? `No process listens at ${where}: the socket exists, but no Docker engine answers. Is dockerd running?`
          : `No process listens at ${where}. Is dockerd running there, with that TCP port?`,
      );
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "FailedToOpenSocket":
      return unreachable("refused", `The Docker engine at ${where} cannot be reached (${String(code)})`);
    case "ECONNRESET":
    case "EPIPE":
    case "ConnectionClosed":
    case "ERR_STREAM_PREMATURE_CLOSE":
      return unreachable(
        "connection-lost",
        `The Docker engine at ${where} closed the connection during ${operation}; it may be restarting`,
      );
    default: {
      if (typeof code === "string" && /CERT|TLS|SELF_SIGNED|VERIFY/.test(code)) {
        return unreachable(
          "not-trusted",
          `The certificate of the Docker engine at ${where} is not trusted (${code}): check DOCKER_CERT_PATH/ca.pem and the name in DOCKER_HOST`,
        );
      }
      const why = messageOf(error);
      return unreachable("not-docker", `The server at ${where} is not a Docker engine: ${why}`);
    }
  }
}
