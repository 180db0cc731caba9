import { libcPath } from "./flock.ts";

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const NETLINK_NETFILTER = 12;
const MSG_DONTWAIT = 0x40;
const NLM_F_REQUEST = 1;
const BUFFER_BYTES = 64 * 1024;

/** Length of `struct nlmsghdr`, and of it with `struct nfgenmsg`. */
export const HEADER_BYTES = 16;
export const MESSAGE_BYTES = 20;

/** A socket to the part of the kernel that has its rules and its table of connections. */
interface NetfilterSocket extends Disposable {
  /** @returns whether the kernel took the message */
  send(message: Buffer): boolean;
  /** The next part of what the kernel responds, valid until the next call; empty when there is none. */
  receive(): Buffer;
}

const loadLibrary = async () => {
  const { dlopen, FFIType } = await import("bun:ffi");
  const { i32, u32, u64, i64, ptr } = FFIType;
  return dlopen(libcPath(), {
    socket: { args: [i32, i32, i32], returns: i32 },
    sendto: { args: [i32, ptr, u64, i32, ptr, u32], returns: i64 },
    recv: { args: [i32, ptr, u64, i32], returns: i64 },
    close: { args: [i32], returns: i32 },
  }).symbols;
};
/** Loaded once: to compile the calls takes longer than the calls. */
let library: ReturnType<typeof loadLibrary> | undefined;

/** @throws Error where Bun may not make code executable */
export async function openNetfilterSocket(): Promise<NetfilterSocket> {
  library ??= loadLibrary();
  const symbols = await library;
  const descriptor = symbols.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_NETFILTER);
  const kernel = Buffer.from([AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  const buffer = Buffer.alloc(BUFFER_BYTES);
  return {
    send: (message) =>
      Number(symbols.sendto(descriptor, message, message.length, MSG_DONTWAIT, kernel, kernel.length)) ===
      message.length,
    receive: () => {
      const bytes = Number(symbols.recv(descriptor, buffer, buffer.length, MSG_DONTWAIT));
      return buffer.subarray(0, Math.max(0, bytes));
    },
    [Symbol.dispose]: () => void symbols.close(descriptor),
  };
}

/**
 * A request. Pure.
 * @param family of addresses; 0 for none
 * @param attributes in the form of the kernel, each of a length that can be divided by four
 */
export function toNetfilterMessage(
  type: number,
  flags: number,
  family: number,
  attributes: readonly Buffer[] = [],
): Buffer {
  const message = Buffer.concat([Buffer.alloc(MESSAGE_BYTES), ...attributes]);
  message.writeUInt32LE(message.length, 0);
  message.writeUInt16LE(type, 4);
  message.writeUInt16LE(NLM_F_REQUEST | flags, 6);
  message[HEADER_BYTES] = family;
  return message;
}

/** Values by type, without the flags of the type. Pure. */
export function attributesOf(bytes: Buffer): Map<number, Buffer> {
  const attributes = new Map<number, Buffer>();
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    attributes.set(bytes.readUInt16LE(at + 2) & 0x3fff, bytes.subarray(at + 4, at + length));
    at += align(length);
  }
  return attributes;
}

export const align = (length: number) => (length + 3) & ~3;
