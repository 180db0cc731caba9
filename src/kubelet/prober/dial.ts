import net from "node:net";
import { joinHostPort } from "./resolve-port.ts";

/** The attempt's own time limit passed. */
export class DeadlineError extends Error {
  override name = "DeadlineError";
  constructor() {
    super("context deadline exceeded");
  }
}

/** No connection. The message is worded as Go words it: `dial tcp 10.0.0.1:80: connect: connection refused`. */
export class DialError extends Error {
  override name = "DialError";
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
 * a {@link DeadlineError}, else with that reason. The caller owns the socket and its `error` events from then on.
 */
export function dial(host: string, port: number, signal: AbortSignal): Promise<net.Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<net.Socket>();
  if (signal.aborted) return Promise.reject(abortError(signal, host, port));
  const socket = net.connect({ host, port });
  const settle = (): void => {
    signal.removeEventListener("abort", onAbort);
    socket.off("connect", onConnect);
    socket.off("error", onError);
    // A late error of an abandoned socket must not end the process.
    socket.on("error", () => {});
  };
  const onConnect = (): void => {
    settle();
    resolve(socket);
  };
  const onError = (error: Error): void => {
    settle();
    socket.destroy();
    reject(toDialError(error, host, port));
  };
  const onAbort = (): void => {
    settle();
    socket.destroy();
    reject(abortError(signal, host, port));
  };
  socket.on("connect", onConnect);
  socket.on("error", onError);
  signal.addEventListener("abort", onAbort, { once: true });
  return promise;
}

function abortError(signal: AbortSignal, host: string, port: number): unknown {
  if (!(signal.reason instanceof DeadlineError)) return signal.reason;
  return new DialError(`dial tcp ${joinHostPort(host, port)}: i/o timeout`, false, { cause: signal.reason });
}
