import type { ContainerPort } from "../../base/api/container.ts";

/** A port that is not a number 1-65535, or a name that no port of the container has. */
export class PortError extends Error {
  override name = "PortError";
}

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
