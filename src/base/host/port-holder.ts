import { readlinkSync } from "node:fs";
import { namesIfReadable, readTextIfExists, SYSTEM_FILE_BYTES } from "../files/whole-file.ts";
import { unlessFailed } from "../text/error-message.ts";

/** A socket in a table of the kernel. */
interface SocketEntry {
  localPort: number;
  remotePort: number;
  /** `0A` listens, `01` is connected, `07` is a UDP socket without a peer. */
  state: string;
  /** Wrong for connections that are closed: these are shown as root's. */
  user: number;
  inode: string;
}

const portOf = (address: string): number => Number.parseInt(address.split(":")[1] ?? "", 16);

/** Sockets of both IP versions. @param protocol `tcp` or `udp`; there is no table of others */
const socketsOf = (protocol: string, proc: string): SocketEntry[] =>
  [protocol, `${protocol}6`]
    .flatMap((name) => (readTextIfExists(`${proc}/net/${name}`, SYSTEM_FILE_BYTES) ?? "").split("\n"))
    .flatMap((line) => {
      const [, local = "", remote = "", state = "", , , , user, , inode] = line.trim().split(/\s+/);
      const ports = { localPort: portOf(local), remotePort: portOf(remote) };
      return inode === undefined ? [] : { ...ports, state, user: Number(user), inode };
    });

/** States of sockets that take what comes to their port. */
const BOUND: Readonly<Record<string, string>> = { tcp: "0A", udp: "07" };
const ESTABLISHED = "01";

const boundTo = (port: number, protocol: string, proc: string): SocketEntry[] =>
  socketsOf(protocol, proc).filter(({ localPort, state }) => localPort === port && state === BOUND[protocol]);

/** The process that has a port: `nginx (pid 812)`; undefined when it is not visible (root sees all). */
export function findPortHolder(port: number, proc = "/proc", protocol = "tcp"): string | undefined {
  const inodes = boundTo(port, protocol, proc).map(({ inode }) => inode);
  const holder = findSocketHolder(inodes, proc);
  return holder && `${holder.name} (pid ${holder.pid})`;
}

/** The process that has one of these sockets open, and its effective user; undefined when it is not visible. */
export function findSocketHolder(
  inodes: readonly string[],
  proc = "/proc",
): { pid: string; name: string; user: number } | undefined {
  const sockets = new Set(inodes.map((inode) => `socket:[${inode}]`));
  if (sockets.size === 0) return undefined;
  for (const pid of namesIfReadable(proc).filter((name) => /^\d+$/.test(name))) {
    if (!namesIfReadable(`${proc}/${pid}/fd`).some((fd) => sockets.has(readLink(`${proc}/${pid}/fd/${fd}`)))) continue;
    const status = readTextIfExists(`${proc}/${pid}/status`, SYSTEM_FILE_BYTES) ?? "";
    const [, name = "a process"] = /^Name:\t(.*)$/m.exec(status) ?? [];
    return { pid, name, user: Number(/^Uid:\t\d+\t(\d+)/m.exec(status)?.[1] ?? Number.NaN) };
  }
  return undefined;
}

/** Whether a process has a port of this machine, on any address. @param protocol TCP or UDP; sockets of others are not seen */
export const hasSocket = (protocol: string, port: number): boolean =>
  boundTo(port, protocol.toLowerCase(), "/proc").length > 0;

/** The program that has a port of this machine; undefined for a free one. @param protocol see {@link hasSocket} */
export const programOnPort = (protocol: string, port: number): string | undefined =>
  hasSocket(protocol, port) ? (findPortHolder(port, "/proc", protocol.toLowerCase()) ?? "another program") : undefined;

/** The processes that listen on TCP ports, as far as they are visible. */
export function findPortHolders(ports: readonly number[]): Map<number, string> {
  const found = ports.map((port) => [port, findPortHolder(port)] as const);
  return new Map(found.flatMap(([port, holder]) => (holder === undefined ? [] : [[port, holder] as const])));
}

const readLink = (path: string): string => unlessFailed(() => readlinkSync(path)) ?? "";

/** The user of the client's end of a TCP connection; undefined when it is on another machine or ambiguous. */
export function findSocketUser(clientPort: number, serverPort: number, proc = "/proc"): number | undefined {
  const users = socketsOf("tcp", proc)
    .filter((it) => it.state === ESTABLISHED && it.localPort === clientPort && it.remotePort === serverPort)
    .map(({ user }) => user);
  return new Set(users).size === 1 ? users[0] : undefined;
}
