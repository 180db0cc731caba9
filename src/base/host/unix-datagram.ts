import { libcPath } from "./flock.ts";

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_NOSIGNAL = 0x4000;
const MSG_DONTWAIT = 0x40;
/** Room for the path in `sockaddr_un`. */
const MAX_PATH_BYTES = 107;

/** A socket that sends datagrams to one address; Bun has none for Unix sockets, so the C library sends them. */
export interface UnixDatagramSender {
  /** Never waits. @returns whether the kernel took all of it */
  send(message: Uint8Array): boolean;
  close(): void;
}

/** @param address path, or `@name` @throws Error for one too long, and where Bun may not make code executable */
export async function openUnixDatagram(address: string): Promise<UnixDatagramSender> {
  const path = Buffer.from(address.replace(/^@/, "\0"));
  if (path.length > MAX_PATH_BYTES) throw new UnixDatagramError(`${address} is longer than ${MAX_PATH_BYTES} bytes`);
  const { dlopen, FFIType } = await import("bun:ffi");
  const { i32, u32, u64, i64, ptr } = FFIType;
  const { symbols, close } = dlopen(libcPath(), {
    socket: { args: [i32, i32, i32], returns: i32 },
    sendto: { args: [i32, ptr, u64, i32, ptr, u32], returns: i64 },
    close: { args: [i32], returns: i32 },
  });
  const descriptor = symbols.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  if (descriptor < 0) {
    close();
    throw new UnixDatagramError("socket(AF_UNIX, SOCK_DGRAM) failed");
  }
  // struct sockaddr_un: the family in the machine's byte order (little-endian on every target), then the path.
  const target = Buffer.concat([Buffer.from([AF_UNIX, 0]), path, Buffer.from([0])]);
  const targetLength = 2 + path.length + (path[0] === 0 ? 0 : 1);
  return {
    send: (message) => {
      const flags = MSG_NOSIGNAL | MSG_DONTWAIT;
      const sent = symbols.sendto(descriptor, message, message.length, flags, target, targetLength);
      return Number(sent) === message.length;
    },
    close: () => {
      symbols.close(descriptor);
      close();
    },
  };
}

/** The address or the kernel is the reason, not a missing bun:ffi. */
export class UnixDatagramError extends Error {}
