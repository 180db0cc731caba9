import { once } from "node:events";
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { HttpResponse, StreamedResponse } from "./http-response.ts";

/** Bytes of answers whose body is text: an answer that many clients share is encoded once. */
const encoded = new WeakMap<HttpResponse, Uint8Array>();

export function bytesOf(answer: HttpResponse): Uint8Array {
  if (typeof answer.body !== "string") return answer.body;
  let bytes = encoded.get(answer);
  if (!bytes) {
    bytes = Buffer.from(answer.body);
    encoded.set(answer, bytes);
  }
  return bytes;
}

/** Resolves when the client has taken the answer, or is gone. */
export async function sendResponse(response: ServerResponse, answer: HttpResponse, isHead: boolean): Promise<void> {
  const hasBody = answer.status !== 304;
  const body = bytesOf(answer);
  response.writeHead(answer.status, {
    ...answer.headers,
    ...(hasBody && { "Content-Length": String(body.length) }),
  });
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    if (isHead || !hasBody) response.end(resolve);
    else response.end(body, resolve);
  });
}

/** Sends chunks as they come and as the client takes them. */
export async function streamResponse(
  response: ServerResponse,
  answer: StreamedResponse,
  gone: AbortSignal,
): Promise<void> {
  response.writeHead(answer.status, answer.headers);
  response.flushHeaders();
  for await (const chunk of answer.chunks) {
    if (gone.aborted) return;
    if (!response.write(chunk)) await once(response, "drain", { signal: gone }).catch(() => {});
  }
  if (!gone.aborted) await new Promise<void>((resolve) => response.end(resolve));
}

/** A whole answer as it is sent, for connections that were upgraded. */
export function rawResponse(answer: HttpResponse): Buffer {
  const bytes = bytesOf(answer);
  const headers = { ...answer.headers, "Content-Length": String(bytes.length), Connection: "close" };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ""}\r\n${lines.join("")}\r\n`),
    bytes,
  ]);
}
