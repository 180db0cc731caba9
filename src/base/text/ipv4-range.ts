/** A range of IPv4 addresses, as `10.96.0.0/16` writes it. */
export interface Ipv4Range {
  /** Lowest address, as a number. */
  first: number;
  size: number;
  text: string;
}

/** @returns undefined for everything else, also for an address that is not the lowest of its range */
export function parseIpv4Range(text: string): Ipv4Range | undefined {
  const range = rangeOfAddress(text);
  return range?.text === text ? range : undefined;
}

/** The range in which an address lies: `172.17.0.1/16` is in `172.17.0.0/16`; undefined for another text. */
export function rangeOfAddress(text: string): Ipv4Range | undefined {
  const [, address = "", length = ""] = /^([\d.]+)\/(\d{1,2})$/.exec(text) ?? [];
  const number = ipv4ToNumber(address);
  if (number === undefined || Number(length) > 32) return undefined;
  const size = 2 ** (32 - Number(length));
  const first = number - (number % size);
  return { first, size, text: `${numberToIpv4(first)}/${Number(length)}` };
}

export const isOverlapping = (a: Ipv4Range, b: Ipv4Range): boolean =>
  a.first < b.first + b.size && b.first < a.first + a.size;

export function isInRange(address: string, { first, size }: Ipv4Range): boolean {
  const number = ipv4ToNumber(address);
  return number !== undefined && number >= first && number < first + size;
}

/** @returns undefined for every other text, also for numbers with leading zeros, which some programs read as octal */
export function ipv4ToNumber(address: string): number | undefined {
  const parts = address.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) {
    return undefined;
  }
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

export const numberToIpv4 = (number: number): string =>
  [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
