import * as v from "valibot";
import { DockerError, DockerProtocolError, DockerUnreachableError } from "./docker-error.ts";
import type { CallOptions } from "./docker-request.ts";
import { endpointText } from "./endpoint.ts";
import { VersionSchema } from "./system-schema.ts";
import type { DockerTransport } from "./transport.ts";

/** The newest API whose shapes are known here (Docker 29.0). Newer engines support it too. */
const MAX_API_VERSION = "1.52";

/** Docker 17.09: sandboxes need `IpcMode: shareable`, which came with it. */
const MIN_API_VERSION = "1.32";

export interface Negotiation {
  /** Version of all later calls: the lower of our maximum and the engine's. */
  apiVersion: string;
  /** Highest version that the engine supports. */
  engineApiVersion: string;
  /** e.g. `20.10.24`. */
  serverVersion: string;
  /** As Go names it: amd64, arm64. */
  architecture: string;
  /** Podman answers as Docker does, with differences. */
  flavour: "docker" | "podman";
}

/** Negative, 0 or positive; `1.9` is less than `1.41`. */
export function compareApiVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
}

/** The answer is `OK`. Unversioned, so it works with any engine. */
export const PING = { method: "GET", path: "/_ping", maxResponseBytes: 4096 } as const;
const MAX_VERSION_BYTES = 1024 * 1024;

/**
 * Asks the engine for its versions and selects the newest common one.
 * @throws DockerUnreachableError `not-docker`, `too-old`, `too-new`, and the errors of a call
 */
export async function negotiate(transport: DockerTransport, options: CallOptions): Promise<Negotiation> {
  const where = endpointText(transport.endpoint);
  const operation = "GET /_ping";
  const fail = (kind: DockerUnreachableError["kind"], message: string, cause?: unknown) =>
    new DockerUnreachableError(kind, operation, message, { cause });
  const notDocker = (cause?: unknown) =>
    fail(
      "not-docker",
      `What listens at ${where} is no Docker engine: it does not answer /_ping as Docker does${cause instanceof DockerError ? ` (${cause.status}: ${cause.daemonMessage.slice(0, 200)})` : ""}`,
      cause,
    );

  let apiHeader: string | undefined;
  try {
    const ping = await transport.send({ timeoutMs: 10_000, ...options, ...PING });
    if (ping.text.trim() !== "OK") throw notDocker();
    apiHeader = ping.header("api-version");
  } catch (error) {
    if (error instanceof DockerProtocolError) throw notDocker(error);
    // A 500 comes from an engine that is still starting; any other status from something else.
    throw error instanceof DockerError && error.status < 500 ? notDocker(error) : error;
  }
  const answer = await transport.send({
    timeoutMs: 10_000,
    ...options,
    method: "GET",
    path: "/version",
    maxResponseBytes: MAX_VERSION_BYTES,
  });
  const version = v.safeParse(VersionSchema, parseJson(answer.text));
  const engineApiVersion = apiHeader ?? (version.success ? version.output.ApiVersion : "");
  if (!version.success || !/^\d+\.\d+$/.test(engineApiVersion)) throw notDocker();

  const engine = `Docker ${version.output.Version} at ${where}`;
  if (compareApiVersions(engineApiVersion, MIN_API_VERSION) < 0) {
    throw fail(
      "too-old",
      `${engine} is too old: it supports API ${engineApiVersion}, at least ${MIN_API_VERSION} (Docker 17.09) is needed. Upgrade Docker`,
    );
  }
  const lowest = version.output.MinAPIVersion;
  if (lowest !== "" && compareApiVersions(lowest, MAX_API_VERSION) > 0) {
    throw fail(
      "too-new",
      `${engine} is too new: it supports no API below ${lowest}, this kubelet-ts none above ${MAX_API_VERSION}. Upgrade kubelet-ts`,
    );
  }
  return {
    apiVersion: compareApiVersions(engineApiVersion, MAX_API_VERSION) < 0 ? engineApiVersion : MAX_API_VERSION,
    engineApiVersion,
    serverVersion: version.output.Version,
    architecture: version.output.Arch,
    flavour: version.output.Components.some((one) => /podman/i.test(one.Name)) ? "podman" : "docker",
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
