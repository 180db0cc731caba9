import { createDeflate, constants as zlib } from "node:zlib";
import { CONTROL, encodeControl, lengthFirst, toDictionary, uint32 } from "../../src/server/spdy.ts";

/** Opens streams of one connection: the frames, whose headers are compressed as one. */
export class SpdyClient {
  readonly #deflate = createDeflate({ dictionary: toDictionary(), flush: zlib.Z_SYNC_FLUSH });

  async open(id: number, headers: Record<string, string>): Promise<Buffer> {
    const parts = Object.entries(headers).flatMap(([name, value]) => [lengthFirst(name), lengthFirst(value)]);
    const block = Buffer.concat([uint32(parts.length / 2), ...parts]);
    const made: Buffer[] = [];
    const collect = (part: Buffer) => made.push(part);
    this.#deflate.on("data", collect);
    await new Promise<void>((done) => {
      this.#deflate.write(block, () => this.#deflate.flush(zlib.Z_SYNC_FLUSH, () => done()));
    });
    this.#deflate.off("data", collect);
    return openFrame(id, Buffer.concat(made));
  }
}

/** @param block compressed headers */
export const openFrame = (id: number, block: Uint8Array): Buffer =>
  encodeControl(CONTROL.synStream, 0, Buffer.concat([uint32(id), Buffer.alloc(6), block]));
