import net from "node:net";
import type { ContainerPort } from "../../base/api/container.ts";
import { unlessAborted } from "../../base/concurrency/unless-aborted.ts";

/** The attempt's own time limit passed. */
export class DeadlineError extends Error {
  constructor() {
    super("context deadline exceeded");
  }
}

/** No connection. The message is worded as Go words it: `dial tcp 10.0.0.1:80: connect: connection refused`. */
export class DialError extends Error {
  constructor(
    message: string,
    /** True when this process lacks a resource (descriptors, memory, ports): the attempt does not count. */
    readonly isOwnFault: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const TEXT_OF_CODE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset by peer",
  ECONNABORTED: "software caused connection abort",
  EHOSTUNREACH: "no route to host",
  ENETUNREACH: "network is unreachable",
  ETIMEDOUT: "connection timed out",
  EADDRNOTAVAIL: "cannot assign requested address",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EINVAL: "invalid argument",
  EPIPE: "broken pipe",
  EMFILE: "too many open files",
  ENFILE: "too many open files in system",
  ENOBUFS: "no buffer space available",
  ENOMEM: "cannot allocate memory",
};

const OWN_FAULTS: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL"]);

/** The errno's text as the C library and Go have it; the error's own message when it has no known code. */
export function errnoText(error: Error): string {
  return TEXT_OF_CODE[(error as NodeJS.ErrnoException).code ?? ""] ?? error.message;
}

function toDialError(error: Error, host: string, port: number): DialError {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code === "ENOTFOUND" || code.startsWith("EAI_") || code.startsWith("DNS_")) {
    const detail = code === "ENOTFOUND" || code === "DNS_ENOTFOUND" ? "no such host" : "server misbehaving";
    return new DialError(`dial tcp: lookup ${host}: ${detail}`, false, { cause: error });
  }
  const call = code === "EMFILE" || code === "ENFILE" || code === "ENOBUFS" || code === "ENOMEM" ? "socket" : "connect";
  const message = `dial tcp ${joinHostPort(host, port)}: ${call}: ${errnoText(error)}`;
  return new DialError(message, OWN_FAULTS.has(code), { cause: error });
}

/**
 * Opens a TCP connection. Rejects with {@link DialError}, with a DialError `…: i/o timeout` when the signal's reason is
 * a {@link DeadlineError}, else with that reason. The caller owns the socket from then on.
 */
export async function dial(host: string, port: number, signal: AbortSignal): Promise<net.Socket> {
  const socket = net.connect({ host, port });
  const { promise: connected, resolve, reject } = Promise.withResolvers<void>();
  socket.on("connect", resolve);
  // Stays: a late error of an abandoned socket must not end the process.
  socket.on("error", reject);
  try {
    await unlessAborted(connected, signal);
    return socket;
  } catch (error) {
    socket.destroy();
    if (!signal.aborted) throw toDialError(error as Error, host, port);
    if (!(signal.reason instanceof DeadlineError)) throw signal.reason;
    throw new DialError(`dial tcp ${joinHostPort(host, port)}: i/o timeout`, false, { cause: signal.reason });
  }
}

/** A port that is not a number 1-65535, or a name that no port of the container has. */
export class PortError extends Error {}

/**
 * The number behind a probe's `port`: a number, a number as text, or the name of one of the container's ports.
 * Throws {@link PortError}. Source: upstream's `probe.ResolveContainerPort`.
 */
export function resolvePort(port: number | string, ports: readonly ContainerPort[]): number {
  let number: number;
  if (typeof port === "number") number = port;
  else if (/^[+-]?\d+$/.test(port)) number = Number(port);
  else {
    const named = ports.find((candidate) => candidate.name === port);
    if (!named) throw new PortError(`port ${JSON.stringify(port)} not found`);
    number = named.containerPort;
  }
  if (!Number.isInteger(number) || number < 1 || number > 65535) throw new PortError(`invalid port number: ${number}`);
  return number;
}

/** `host:port`, an IPv6 address in brackets. */
export function joinHostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
