import { loadLibc } from "./libc.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const MSG_NOSIGNAL_DONTWAIT = 0x4040;
const BUFFER_BYTES = 64 * 1024;
/** Room for the path in `sockaddr_un`. */
const MAX_PATH_BYTES = 107;

/** A socket whose messages go to one address. It never waits. */
export interface DatagramSocket extends Disposable {
  /** @returns whether the kernel took all of it */
  send(message: Uint8Array): boolean;
  /** The next message, valid until the next call; empty when there is none. */
  receive(): Buffer;
}

/** @param address `struct sockaddr` @throws Error where the kernel or the runtime offers no such socket */
export async function openDatagramSocket(type: number, protocol: number, address: Buffer): Promise<DatagramSocket> {
  const libc = await loadLibc();
  const family = address.readUInt16LE();
  const descriptor = libc.socket(family, type | SOCK_CLOEXEC, protocol);
  if (descriptor < 0) throw new Error(`a socket of family ${family} cannot be opened`);
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  return {
    send: (message) => {
      const sent = libc.sendto(descriptor, message, message.length, MSG_NOSIGNAL_DONTWAIT, address, address.length);
      return Number(sent) === message.length;
    },
    receive: () => {
      const bytes = Number(libc.recv(descriptor, buffer, buffer.length, MSG_NOSIGNAL_DONTWAIT));
      return buffer.subarray(0, Math.max(0, bytes));
    },
    [Symbol.dispose]: () => void libc.close(descriptor),
  };
}

/** A Unix socket, which Bun has for streams only. @param address path, or `@name` @throws Error for one too long */
export function openUnixDatagram(address: string): Promise<DatagramSocket> {
  const path = Buffer.from(address.startsWith("@") ? `\0${address.slice(1)}` : `${address}\0`);
  if (path.length > MAX_PATH_BYTES + 1) throw new Error(`${address} is longer than ${MAX_PATH_BYTES} bytes`);
  return openDatagramSocket(SOCK_DGRAM, 0, Buffer.concat([Buffer.from([AF_UNIX, 0]), path]));
}
