/**
 * ASN.1 DER, as much of it as a certificate needs. Source: ITU-T X.690.
 *
 * The self-signed certificate of the authenticated port is written with this and not with `@peculiar/x509`, because that
 * library costs 22 MB of resident memory once it is loaded, and every kubelet with that port would load it.
 */

/** One element: its tag, the length of what it holds, what it holds. */
function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...lengthOctets(content.length)]), content]);
}

function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length];
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return [0x80 | octets.length, ...octets];
}

export const sequence = (...elements: readonly Uint8Array[]) => der(0x30, ...elements);
export const setOf = (element: Uint8Array) => der(0x31, element);
export const octetString = (content: Uint8Array) => der(0x04, content);
export const utf8String = (text: string) => der(0x0c, Buffer.from(text));
export const trueValue = () => der(0x01, Buffer.from([0xff]));

/** Whole bytes: no bits are left over. */
export const bitString = (content: Uint8Array) => der(0x03, Buffer.from([0]), content);

/** `[number]` around an element (constructed) or in place of its tag (primitive). */
export const contextTag = (number: number, content: Uint8Array, primitive = false) =>
  der((primitive ? 0x80 : 0xa0) | number, content);

/** @param bytes big endian, not negative; leading zeros are dropped, and one is put before a set highest bit. */
export function integer(bytes: Uint8Array): Buffer {
  const start = bytes.findIndex((byte) => byte !== 0);
  const magnitude = start < 0 ? Buffer.from([0]) : Buffer.from(bytes.subarray(start));
  return (magnitude[0] ?? 0) & 0x80 ? der(0x02, Buffer.from([0]), magnitude) : der(0x02, magnitude);
}

/** @param dotted e.g. `1.2.840.10045.4.3.2` */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...arcs] = dotted.split(".").map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...arcs.flatMap(base128)]));
}

function base128(arc: number): number[] {
  const digits = [arc % 128];
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift(0x80 | (rest % 128));
  return digits;
}

/** UTCTime up to 2049, GeneralizedTime from 2050, as RFC 5280 wants it; whole seconds. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`;
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}
