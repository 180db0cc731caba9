import { readlinkSync } from "node:fs";
import { namesIfReadable, readTextIfExists, SYSTEM_FILE_BYTES } from "../files/bounded-read.ts";

const LISTEN = "0A";

/** Inodes of the sockets that listen on a TCP port, in the text of `/proc/net/tcp` or `tcp6`. */
export function parseListeners(table: string, port: number): string[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
    return state === LISTEN && local.endsWith(`:${hexPort}`) && inode !== undefined ? [inode] : [];
  });
}

/** The process that listens on a TCP port: `nginx (pid 812)`; undefined when it is not visible (root sees all). */
export function findPortHolder(port: number, proc = "/proc"): string | undefined {
  const sockets = new Set(listenersOf(port, proc).map((inode) => `socket:[${inode}]`));
  if (sockets.size === 0) return undefined;
  for (const pid of namesIfReadable(proc).filter((name) => /^\d+$/.test(name))) {
    if (!namesIfReadable(`${proc}/${pid}/fd`).some((fd) => sockets.has(readLink(`${proc}/${pid}/fd/${fd}`)))) continue;
    const name = readTextIfExists(`${proc}/${pid}/comm`, 4096)?.trim() ?? "a process";
    return `${name} (pid ${pid})`;
  }
  return undefined;
}

/** Whether a process listens on a TCP port, on any address. */
export const hasListener = (port: number): boolean => listenersOf(port, "/proc").length > 0;

/** States of sockets that take what comes to their port: a listening one, and one of UDP without a peer. */
const BOUND: Readonly<Record<string, string>> = { TCP: LISTEN, UDP: "07" };

/** Whether a process has a port of this machine. @param protocol TCP or UDP; sockets of others are not seen */
export function hasSocket(protocol: string, port: number, proc = "/proc"): boolean {
  const name = protocol.toLowerCase();
  const end = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return [name, `${name}6`].some((file) =>
    (readTextIfExists(`${proc}/net/${file}`, SYSTEM_FILE_BYTES) ?? "").split("\n").some((line) => {
      const [, local = "", , state] = line.trim().split(/\s+/);
      return state === BOUND[protocol] && local.endsWith(end);
    }),
  );
}

const listenersOf = (port: number, proc: string): string[] =>
  ["tcp", "tcp6"].flatMap((name) =>
    parseListeners(readTextIfExists(`${proc}/net/${name}`, SYSTEM_FILE_BYTES) ?? "", port),
  );

/** The processes that listen on TCP ports, as far as they are visible. */
export function findPortHolders(ports: readonly number[]): Map<number, string> {
  const found = ports.map((port) => [port, findPortHolder(port)] as const);
  return new Map(found.flatMap(([port, holder]) => (holder === undefined ? [] : [[port, holder] as const])));
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

const ESTABLISHED = "01";

/** Users of connections between two TCP ports, in `/proc/net/tcp` or `tcp6`; those of closed ones are not known. */
export function parseSocketUsers(table: string, fromPort: number, toPort: number): number[] {
  const [from, to] = [fromPort, toPort].map((port) => `:${port.toString(16).toUpperCase().padStart(4, "0")}`);
  return table.split("\n").flatMap((line) => {
    const [, local = "", remote = "", state, , , , user] = line.trim().split(/\s+/);
    return state === ESTABLISHED && local.endsWith(from!) && remote.endsWith(to!) ? [Number(user)] : [];
  });
}

/** The user of the client's end of a TCP connection; undefined when it is on another machine or ambiguous. */
export function findSocketUser(clientPort: number, serverPort: number, proc = "/proc"): number | undefined {
  const users = ["tcp", "tcp6"].flatMap((name) =>
    parseSocketUsers(readTextIfExists(`${proc}/net/${name}`, SYSTEM_FILE_BYTES) ?? "", clientPort, serverPort),
  );
  return new Set(users).size === 1 ? users[0] : undefined;
}
