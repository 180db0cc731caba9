import { readTextIfExists, SYSTEM_FILE_BYTES } from "../files/bounded-read.ts";

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
