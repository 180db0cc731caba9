/** Bytes that are no protobuf; the message says why. */
export class ProtobufError extends Error {}

/** The fields of a message in their order: a number of wire type 0, the bytes of every other. @throws ProtobufError */
export function* protobufFields(message: Buffer): Generator<{ number: number; value: bigint | Buffer }, void> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = message[at++];
      if (byte === undefined) throw new ProtobufError("the body ends in the middle of a number");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new ProtobufError("a number of the body is too long");
  };
  while (at < message.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    const wireType = Number(tag & 7n);
    if (wireType === 0) {
      yield { number, value: varint() };
      continue;
    }
    const length = wireType === 2 ? Number(varint()) : wireType === 1 ? 8 : wireType === 5 ? 4 : -1;
    if (length < 0 || at + length > message.length) throw new ProtobufError("the body is cut short");
    at += length;
    yield { number, value: message.subarray(at - length, at) };
  }
}

/** A field of text. */
export const protobufText = (field: number, value: string): Buffer => lengthDelimited(field, Buffer.from(value));

/** A field that is a message of these fields. */
export const protobufMessage = (field: number, fields: readonly Buffer[]): Buffer =>
  lengthDelimited(field, Buffer.concat(fields));

const lengthDelimited = (field: number, value: Buffer) =>
  Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 0x80);
  }
}
