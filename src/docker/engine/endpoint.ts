import { MAX_SOCKET_PATH_BYTES } from "../../base/host/http-fetch.ts";
import { DockerUnreachableError } from "./docker-error.ts";

/** Where an engine listens. `tls` holds paths of PEM files, as DOCKER_CERT_PATH lays them out. */
export type DockerEndpoint =
  | { kind: "unix"; path: string }
  | { kind: "tcp"; host: string; port: number; tls?: EndpointTls };

interface EndpointTls {
  caFile: string;
  certFile: string;
  keyFile: string;
  /** false: the engine's certificate is not checked (DOCKER_TLS set, DOCKER_TLS_VERIFY not). */
  verify: boolean;
}

const DEFAULT_SOCKET = "/var/run/docker.sock";

/**
 * The endpoint to use: the flag, else DOCKER_HOST, else the default socket. Accepts `unix:///path`, a bare absolute path,
 * `tcp://host:port` and `http://host:port`; with DOCKER_TLS_VERIFY or DOCKER_TLS the latter two use TLS with the files
 * of DOCKER_CERT_PATH, as the docker command does.
 * @throws DockerUnreachableError `bad-endpoint`
 */
export function parseEndpoint(
  flag: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): DockerEndpoint {
  const [text, origin] = flag
    ? [flag, "--docker-endpoint"]
    : env.DOCKER_HOST
      ? [env.DOCKER_HOST, "DOCKER_HOST"]
      : [`unix://${DEFAULT_SOCKET}`, "the default"];
  const bad = (why: string) =>
    new DockerUnreachableError("bad-endpoint", "", `Docker endpoint "${text}" (from ${origin}): ${why}`);

  if (text.startsWith("/")) return unixEndpoint(text, bad);
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  switch (scheme) {
    case "unix":
      return unixEndpoint(text.slice("unix://".length), bad);
    case "tcp":
    case "http":
    case "https":
      return tcpEndpoint(text, scheme, env, bad);
    case undefined:
      throw bad("give unix:///path/to/docker.sock or tcp://host:port");
    default:
      throw bad(`${scheme}:// is not supported, give unix:///path/to/docker.sock or tcp://host:port`);
  }
}

/** As users write it: `unix:///var/run/docker.sock`, `tcp://10.0.0.2:2375`. */
export function endpointText(endpoint: DockerEndpoint): string {
  if (endpoint.kind === "unix") return `unix://${endpoint.path}`;
  return `tcp://${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
}

function unixEndpoint(path: string, bad: (why: string) => Error): DockerEndpoint {
  if (!path.startsWith("/")) throw bad("a socket path starts with /, as in unix:///var/run/docker.sock");
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) {
    throw bad(`a socket path has at most ${MAX_SOCKET_PATH_BYTES} bytes, this one has ${Buffer.byteLength(path)}`);
  }
  return { kind: "unix", path };
}

function tcpEndpoint(
  text: string,
  scheme: string,
  env: Readonly<Record<string, string | undefined>>,
  bad: (why: string) => Error,
): DockerEndpoint {
  let url: URL;
  try {
    url = new URL(text.replace(/^[a-z]+:/i, "http:"));
  } catch {
    throw bad("give tcp://host:port");
  }
  if (url.hostname === "" || url.username !== "" || (url.pathname !== "/" && url.pathname !== "")) {
    throw bad("give only tcp://host:port");
  }
  const verify = Boolean(env.DOCKER_TLS_VERIFY);
  const tls = verify || Boolean(env.DOCKER_TLS) || scheme === "https";
  // URL drops a port that is the default of its scheme, here 80.
  const port = url.port !== "" ? Number(url.port) : /:80\/?$/.test(text) ? 80 : tls ? 2376 : 2375;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (!tls) return { kind: "tcp", host, port };
  const directory = env.DOCKER_CERT_PATH || `${env.HOME ?? ""}/.docker`;
  return {
    kind: "tcp",
    host,
    port,
    tls: {
      caFile: `${directory}/ca.pem`,
      certFile: `${directory}/cert.pem`,
      keyFile: `${directory}/key.pem`,
      verify: verify || scheme === "https",
    },
  };
}
