import { isIP } from "node:net";

/**
 * Whether a server that listens on the loopback serves a request for this host. A page whose name was made to resolve to
 * the loopback (DNS rebinding) asks for its own name: only addresses, `localhost` and the node's name are accepted.
 * @param host value of the Host header; null when there is none, which no browser sends
 */
export function isLocalHost(host: string | null, nodeName: string): boolean {
  if (host === null || host === "") return true;
  const name = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/
    .exec(host)
    ?.slice(1)
    .find((part) => part !== undefined);
  if (name === undefined) return false;
  const lower = name.toLowerCase().replace(/\.$/, "");
  return isIP(name) !== 0 || lower === "localhost" || lower.endsWith(".localhost") || lower === nodeName.toLowerCase();
}

/** Whether connections to this address come from this machine only. */
export function isLoopback(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address) || address === "::1" || address === "localhost";
}

/** The host and port by which a client of this machine reaches a listener on `address`, which may be all addresses. */
export function toLocalHost(address: string, port: number): string {
  const host = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
