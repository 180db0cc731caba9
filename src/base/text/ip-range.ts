import { isIPv4, isIPv6 } from "node:net";

export type IpFamily = "IPv4" | "IPv6";

/** A range of addresses, as `10.96.0.0/16` or `fd00:96::/112` writes it. */
export interface IpRange {
  family: IpFamily;
  /** Lowest address, as a number. */
  first: bigint;
  size: bigint;
  text: string;
}

const BITS = { IPv4: 32, IPv6: 128 } as const;

/** @returns undefined for everything else, also for an address that is not the lowest of its range */
export function parseIpRange(text: string): IpRange | undefined {
  const range = rangeOfAddress(text);
  const [address = ""] = text.split("/");
  return range?.text.startsWith(`${canonicalIp(address)}/`) ? range : undefined;
}

/** The range in which an address lies: `172.17.0.1/16` is in `172.17.0.0/16`; undefined for another text. */
export function rangeOfAddress(text: string): IpRange | undefined {
  const [, address = "", length = ""] = /^([\da-f.:]+)\/(0|[1-9]\d{0,2})$/i.exec(text) ?? [];
  const family = familyOf(address);
  if (family === undefined || Number(length) > BITS[family]) return undefined;
  const number = ipToNumber(address, family);
  const size = 1n << BigInt(BITS[family] - Number(length));
  const first = number - (number % size);
  return { family, first, size, text: `${numberToIp(first, family)}/${Number(length)}` };
}

export const isOverlapping = (a: IpRange, b: IpRange): boolean =>
  a.family === b.family && a.first < b.first + b.size && b.first < a.first + a.size;

export function isInRange(address: string, { family, first, size }: IpRange): boolean {
  if (familyOf(address) !== family) return false;
  const number = ipToNumber(address, family);
  return number >= first && number < first + size;
}

/**
 * @returns undefined for every other text, also for IPv4 numbers with leading zeros, which some programs read as octal, and
 *   for addresses with a zone
 */
export function familyOf(address: string): IpFamily | undefined {
  if (isIPv4(address)) return "IPv4";
  return isIPv6(address) && !address.includes("%") ? "IPv6" : undefined;
}

/** The text that programs print for an address: RFC 5952. undefined for another text. */
export function canonicalIp(address: string): string | undefined {
  const family = familyOf(address);
  return family === "IPv6" ? compress(address) : family && address;
}

/** An address of 4 or 16 bytes. */
export const bytesToIp = (bytes: Uint8Array): string =>
  bytes.length === 4 ? bytes.join(".") : hexToIpv6(Buffer.from(bytes).toString("hex"));

export const numberToIp = (number: bigint, family: IpFamily): string =>
  family === "IPv4"
    ? [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join(".")
    : hexToIpv6(number.toString(16).padStart(32, "0"));

function ipToNumber(address: string, family: IpFamily): bigint {
  if (family === "IPv4") return BigInt(address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0));
  const [head = "", tail = ""] = compress(address).split("::");
  const [high, low] = [head, tail].map((part) => part.split(":").filter(Boolean));
  const groups = [...high!, ...Array<string>(8 - high!.length - low!.length).fill("0"), ...low!];
  return BigInt(`0x${groups.map((group) => group.padStart(4, "0")).join("")}`);
}

/** @param digits 32 of them: also the form of /proc/net/ipv6_route */
export const hexToIpv6 = (digits: string): string => compress(digits.match(/.{4}/g)!.join(":"));

const compress = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1);
