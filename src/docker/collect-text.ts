import { DockerProtocolError } from "./docker-error.ts";

/** The text of a stream. Leaving the loop early closes the connection. @throws DockerProtocolError beyond `maxBytes` */
export async function collectText(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
  operation: string,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new DockerProtocolError(operation, `more than ${maxBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
