import { HttpResponseReader, MalformedResponseError } from "../../src/kubelet/prober/http-response-reader.ts";
import type { FuzzTarget } from "./fuzz-target.ts";

const BODY_LIMIT_BYTES = 1024;

interface Outcome {
  error?: string;
  status?: number;
  body?: string;
}

/** Feeds `bytes` in pieces of `size`. @throws anything but a MalformedResponseError */
function read(bytes: Buffer, size: number): Outcome {
  const reader = new HttpResponseReader(BODY_LIMIT_BYTES);
  try {
    for (let at = 0; at < bytes.length && !reader.isDone; at += size) reader.push(bytes.subarray(at, at + size));
    reader.end();
  } catch (error) {
    if (error instanceof MalformedResponseError) return { error: error.message };
    throw error;
  }
  return { status: reader.status, body: reader.body };
}

/** The answer of a probed container is hostile input. */
const httpResponse: FuzzTarget = {
  name: "HTTP response",
  seeds: [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\n\nto the end",
    "HTTP/1.1 100 C\r\n\r\n".repeat(2000),
    `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(5000)}`,
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(3000)}`,
    "SSH-2.0-OpenSSH_9.6\r\n",
    "",
  ],
  tokens: [
    "HTTP/1.1 ",
    "100",
    "200",
    "\r\n",
    "\n",
    "\r\n\r\n",
    ":",
    "Content-Length: ",
    "Transfer-Encoding: chunked",
    "0",
    "ffffffffffff",
    ";",
  ],
  run(input) {
    const bytes = Buffer.from(input, "latin1");
    const whole = read(bytes, Math.max(1, bytes.length));
    if (Buffer.byteLength(whole.body ?? "") > 3 * BODY_LIMIT_BYTES) throw new Error("the body exceeds its limit");
    const inPieces = read(bytes, 1 + (bytes.length % 97));
    // Messages quote what was received so far, which depends on the pieces.
    if (whole.error === undefined && JSON.stringify(inPieces) !== JSON.stringify(whole)) {
      throw new Error(`in pieces: ${JSON.stringify(inPieces)}, as a whole: ${JSON.stringify(whole)}`);
    }
  },
};

export const PROBE_TARGETS: readonly FuzzTarget[] = [httpResponse];
