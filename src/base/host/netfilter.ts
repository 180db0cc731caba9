import { bytesToIp, type IpFamily } from "../text/ip-range.ts";
import { openDatagramSocket } from "./datagram-socket.ts";

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const NETLINK_NETFILTER = 12;
const NLM_F_REQUEST = 1;

/** Length of `struct nlmsghdr`, and of it with `struct nfgenmsg`. */
export const HEADER_BYTES = 16;
export const MESSAGE_BYTES = 20;

/**
 * A socket to the part of the kernel that has its rules and its table of connections.
 * @throws Error where Bun may not make code executable
 */
export const openNetfilterSocket = () =>
  openDatagramSocket(SOCK_RAW, NETLINK_NETFILTER, Buffer.from([AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));

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

/** Numbers of families of addresses. */
const AF = { IPv4: 2, IPv6: 10 } as const;
const IPPROTO_UDP = 17;

const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const NLM_F_DUMP = 0x300;
const CONNTRACK_GET = 0x101;
const CONNTRACK_DELETE = 0x102;
/** Attributes of an entry, and of the addresses in it. */
const CTA = { original: 1, reply: 2, id: 12, zone: 18 } as const;
const TUPLE = { ip: 1, protocol: 2 } as const;
const IPV4 = { source: 1, destination: 2 } as const;
const IPV6 = { source: 3, destination: 4 } as const;
const PROTOCOL = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
/** Flag of the type of an attribute that holds others. */
const NESTED = 0x8000;

/** Other work comes in between. */
const SLICE_MS = 10;

/** An entry of the kernel's table of connections: the address a client uses, and the server that it reaches. Both are `ip:port`. */
export interface UdpFlow {
  to: string;
  server: string;
}

/**
 * Removes entries of UDP from the kernel's table of connections: a client that keeps its port keeps its entry, and
 * rules are not asked again, as long as it sends. Source: kube-proxy's `conntrack.CleanStaleEntries`; nfnetlink_conntrack.h.
 * @returns how many were removed
 * @throws Error without the rights, or where Bun may not make code executable
 */
export async function removeUdpFlows(family: IpFamily, isStale: (flow: UdpFlow) => boolean): Promise<number> {
  using socket = await openNetfilterSocket();
  const send = (message: Buffer) => {
    if (!socket.send(message)) throw new Error("the kernel's table of connections takes no requests");
  };
  send(toNetfilterMessage(CONNTRACK_GET, NLM_F_DUMP, AF[family]));
  const stale: Buffer[] = [];
  let sliceEndMs = performance.now() + SLICE_MS;
  const endSlice = async () => {
    if (performance.now() < sliceEndMs) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    sliceEndMs = performance.now() + SLICE_MS;
  };
  for (let isDone = false; !isDone; await endSlice()) {
    const part = socket.receive();
    if (part.length === 0) throw new Error("the kernel's table of connections cannot be read");
    isDone = parseUdpFlows(part, (flow, removal) => {
      if (isStale(flow)) stale.push(removal());
    });
  }
  for (const removal of stale) {
    // The kernel's response is not read: an entry that has ended meanwhile is gone as well.
    send(removal);
    await endSlice();
  }
  return stale.length;
}

/**
 * Reads a part of the kernel's table. Pure.
 * @param visit gets each entry of UDP, and what makes the message that removes it
 * @returns whether this was the end @throws Error when the kernel refuses
 */
export function parseUdpFlows(part: Buffer, visit: (flow: UdpFlow, removal: () => Buffer) => void): boolean {
  for (let at = 0; at + HEADER_BYTES <= part.length; ) {
    const length = part.readUInt32LE(at);
    const type = part.readUInt16LE(at + 4);
    if (type === NLMSG_DONE) return true;
    if (type === NLMSG_ERROR) throw new Error(`netlink: errno ${-part.readInt32LE(at + HEADER_BYTES)}`);
    if (length < MESSAGE_BYTES || at + length > part.length) throw new Error("netlink: a message is cut off");
    const family = part.readUInt8(at + HEADER_BYTES);
    const entry = attributesOf(part.subarray(at + MESSAGE_BYTES, at + length));
    at += align(length);
    const original = tupleOf(entry.get(CTA.original));
    const reply = tupleOf(entry.get(CTA.reply));
    if (original === undefined || reply === undefined) continue;
    const removal = () => toRemoval(family, entry);
    visit({ to: original.destination, server: reply.source }, removal);
  }
  return false;
}

/** Source and destination as `ip:port`; undefined for what is not UDP. */
function tupleOf(tuple: Buffer | undefined) {
  if (tuple === undefined) return undefined;
  const parts = attributesOf(tuple);
  const [ip, protocol] = [parts.get(TUPLE.ip), parts.get(TUPLE.protocol)].map((part) => part && attributesOf(part));
  const { source: sourceKey, destination: destinationKey } = ip?.has(IPV4.source) ? IPV4 : IPV6;
  const [source, destination] = [ip?.get(sourceKey), ip?.get(destinationKey)];
  const [from, to] = [protocol?.get(PROTOCOL.sourcePort), protocol?.get(PROTOCOL.destinationPort)];
  if (protocol?.get(PROTOCOL.number)?.[0] !== IPPROTO_UDP || !isAddress(source) || !isAddress(destination)) return;
  if (from?.length !== 2 || to?.length !== 2) return;
  const text = (address: Buffer, port: Buffer) => `${bytesToIp(address)}:${port.readUInt16BE()}`;
  return { source: text(source, from), destination: text(destination, to) };
}

const isAddress = (bytes: Buffer | undefined): bytes is Buffer => bytes?.length === 4 || bytes?.length === 16;

function toRemoval(family: number, entry: ReadonlyMap<number, Buffer>): Buffer {
  const attributes = [CTA.original, CTA.id, CTA.zone].flatMap((key) => {
    const value = entry.get(key);
    if (value === undefined) return [];
    const attribute = Buffer.alloc(align(4 + value.length));
    attribute.writeUInt16LE(4 + value.length, 0);
    attribute.writeUInt16LE(key === CTA.original ? key | NESTED : key, 2);
    value.copy(attribute, 4);
    return [attribute];
  });
  return toNetfilterMessage(CONNTRACK_DELETE, 0, family, attributes);
}
