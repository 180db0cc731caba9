/** Frames of WebSocket messages. Source: RFC 6455. */

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface Frame {
  /** `continuation` never: messages come whole. */
  opcode: number;
  payload: Buffer;
}

/** What the other end sent is no WebSocket; `code` is what it is told when the connection closes. */
export class WebSocketProtocolError extends Error {
  override readonly name = "WebSocketProtocolError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const CLOSE = { normal: 1000, protocolError: 1002, tooBig: 1009, internalError: 1011 } as const;

/** Longest message taken; kubectl's are up to 32 KiB. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const MAX_CONTROL_BYTES = 125;

/** Puts together what a client sends, split anywhere. */
export class FrameReader {
  #pending: Buffer = Buffer.alloc(0);
  #message: { opcode: number; parts: Buffer[]; bytes: number } | undefined;

  /**
   * @returns messages and control frames that are complete now
   * @throws WebSocketProtocolError
   */
  push(chunk: Uint8Array): Frame[] {
    this.#pending = this.#pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#pending, chunk]);
    const frames: Frame[] = [];
    for (let read = readFrame(this.#pending); read; read = readFrame(this.#pending)) {
      this.#pending = this.#pending.subarray(read.length);
      const frame = this.#take(read);
      if (frame) frames.push(frame);
    }
    return frames;
  }

  #take({ opcode, isFinal, payload }: RawFrame): Frame | undefined {
    if (opcode >= OPCODE.close) return { opcode, payload };
    if (opcode === OPCODE.continuation) {
      if (!this.#message) throw new WebSocketProtocolError(CLOSE.protocolError, "a continuation of nothing");
    } else {
      if (this.#message) throw new WebSocketProtocolError(CLOSE.protocolError, "a message within a message");
      this.#message = { opcode, parts: [], bytes: 0 };
    }
    const message = this.#message;
    message.parts.push(payload);
    message.bytes += payload.length;
    if (message.bytes > MAX_MESSAGE_BYTES) throw tooBig();
    if (!isFinal) return undefined;
    this.#message = undefined;
    return { opcode: message.opcode, payload: message.parts.length === 1 ? payload : Buffer.concat(message.parts) };
  }
}

interface RawFrame {
  opcode: number;
  isFinal: boolean;
  payload: Buffer;
  /** With its header. */
  length: number;
}

/** undefined: more bytes are needed. */
function readFrame(bytes: Buffer): RawFrame | undefined {
  const [first, second] = bytes;
  if (first === undefined || second === undefined) return undefined;
  const opcode = first & 0x0f;
  const isFinal = (first & 0x80) !== 0;
  if ((first & 0x70) !== 0) throw new WebSocketProtocolError(CLOSE.protocolError, "reserved bits are set");
  if (opcode > OPCODE.pong || (opcode > OPCODE.binary && opcode < OPCODE.close)) {
    throw new WebSocketProtocolError(CLOSE.protocolError, `unknown opcode ${opcode}`);
  }
  if ((second & 0x80) === 0) throw new WebSocketProtocolError(CLOSE.protocolError, "a client's frame is not masked");
  const short = second & 0x7f;
  if (opcode >= OPCODE.close && (short > MAX_CONTROL_BYTES || !isFinal)) {
    throw new WebSocketProtocolError(CLOSE.protocolError, "a control frame is split or too long");
  }
  const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
  const start = 2 + lengthBytes + 4;
  if (bytes.length < 2 + lengthBytes) return undefined;
  const size = lengthBytes === 8 ? Number(bytes.readBigUInt64BE(2)) : lengthBytes === 2 ? bytes.readUInt16BE(2) : short;
  if (size > MAX_MESSAGE_BYTES) throw tooBig();
  if (bytes.length < start + size) return undefined;
  const mask = bytes.subarray(start - 4, start);
  const payload = Buffer.from(bytes.subarray(start, start + size));
  for (let at = 0; at < payload.length; at++) payload[at]! ^= mask[at & 3]!;
  return { opcode, isFinal, payload, length: start + size };
}

const tooBig = () => new WebSocketProtocolError(CLOSE.tooBig, `a message of more than ${MAX_MESSAGE_BYTES} bytes`);

/** One whole frame as a server sends it: final, not masked. */
export function encodeFrame(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload;
  const header = Buffer.alloc(length < 126 ? 2 : length < 0x1_0000 ? 4 : 10);
  header[0] = 0x80 | opcode;
  if (length < 126) header[1] = length;
  else if (length < 0x1_0000) {
    header[1] = 126;
    header.writeUInt16BE(length, 2);
  } else {
    header[1] = 127;
    header.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([header, payload]);
}

export function encodeClose(code: number): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return encodeFrame(OPCODE.close, payload);
}
