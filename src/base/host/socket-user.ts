import { readTextIfExists, SYSTEM_FILE_BYTES } from "../files/bounded-read.ts";

const ESTABLISHED = "01";

/**
 * Users of the connections from one TCP port to another, in the text of `/proc/net/tcp` or `tcp6`. Closed connections are
 * left out: the kernel shows them as root's.
 */
export function parseSocketUsers(table: string, fromPort: number, toPort: number): number[] {
  const [from, to] = [fromPort, toPort].map((port) => `:${port.toString(16).toUpperCase().padStart(4, "0")}`);
  return table.split("\n").flatMap((line) => {
    const [, local = "", remote = "", state, , , , user] = line.trim().split(/\s+/);
    return state === ESTABLISHED && local.endsWith(from!) && remote.endsWith(to!) ? [Number(user)] : [];
  });
}

/**
 * The user whose process holds the client's end of a TCP connection of this machine.
 * @param proc for tests
 * @returns undefined when the client is on another machine, or connections of several users have these ports
 */
export function findSocketUser(clientPort: number, serverPort: number, proc = "/proc"): number | undefined {
  const users = ["tcp", "tcp6"].flatMap((name) =>
    parseSocketUsers(readTextIfExists(`${proc}/net/${name}`, SYSTEM_FILE_BYTES) ?? "", clientPort, serverPort),
  );
  return new Set(users).size === 1 ? users[0] : undefined;
}
