import { describe, expect, test } from "bun:test";
import { HttpResponseReader } from "../../../src/kubelet/prober/http-response-reader.ts";

function read(text: string, options: { pieces?: number; limit?: number; end?: boolean } = {}): HttpResponseReader {
  const reader = new HttpResponseReader(options.limit ?? 10_240);
  const bytes = Buffer.from(text);
  const size = options.pieces ?? bytes.length;
  for (let at = 0; at < bytes.length && !reader.isDone; at += size) reader.push(bytes.subarray(at, at + size));
  if (options.end) reader.end();
  return reader;
}

const RESPONSES = [
  { when: "a length", text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloJUNK", status: 200, body: "hello" },
  { when: "length 0", text: "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", status: 404, body: "" },
  {
    when: "chunks",
    text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n",
    status: 200,
    body: "hello!",
  },
  { when: "no body by status", text: "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", status: 204, body: "" },
  {
    when: "an interim response first",
    text: "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    status: 200,
    body: "ok",
  },
  {
    when: "five interim responses first",
    text: `${"HTTP/1.1 100 C\r\n\r\n".repeat(5)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`,
    status: 200,
    body: "ok",
  },
  { when: "bare line feeds", text: "HTTP/1.0 200 OK\nContent-Length: 2\n\nok", status: 200, body: "ok" },
  { when: "no reason phrase", text: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok" },
];

describe.each([1, 2, 3, 7, 1000])("in pieces of %d bytes", (pieces) => {
  test.each(RESPONSES)("a response with $when", ({ text, status, body }) => {
    const reader = read(text, { pieces });
    expect(reader.isDone).toBe(true);
    expect(reader.status).toBe(status);
    expect(reader.body).toBe(body);
  });
});

test("without a length the body goes to the end of the connection", () => {
  const reader = read("HTTP/1.0 200 OK\r\n\r\nhello", { pieces: 4 });
  expect(reader.isDone).toBe(false);
  reader.end();
  expect(reader.isDone).toBe(true);
  expect(reader.body).toBe("hello");
});

test("is done at the body limit, and with a limit of 0 at the head", () => {
  const endless = read(`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(100)}`, { limit: 10, pieces: 8 });
  expect(endless.isDone).toBe(true);
  expect(endless.body).toBe("x".repeat(10));
  const head = read("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", { limit: 0 });
  expect(head.isDone).toBe(true);
});

test("the first of repeated headers counts, names in any case", () => {
  const { headers } = read("HTTP/1.1 302 Found\r\nLOCATION:  /a \r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
  expect(headers.get("location")).toBe("/a");
});

test.each([
  { when: "another protocol", text: "SSH-2.0-OpenSSH_9\r\n", message: /^malformed HTTP response "SSH-2.0/ },
  { when: "binary", text: "\x15\x03\x01", message: /^malformed HTTP response/ },
  { when: "a bad status", text: "HTTP/1.1 2xx OK\r\n\r\n", message: /^malformed HTTP response/ },
  { when: "a bad header", text: "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", message: /^malformed MIME header/ },
  { when: "a bad length", text: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", message: /^bad Content-Length/ },
  { when: "a bad chunk", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", message: /chunked/ },
  { when: "endless headers", text: `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}`, message: /headers exceeded/ },
  {
    when: "interim responses without end",
    text: "HTTP/1.1 100 C\r\n\r\n".repeat(6),
    message: /^net\/http: too many 1xx informational responses$/,
  },
  { when: "silence", text: "", end: true, message: /^EOF$/ },
  { when: "half a head", text: "HTTP/1.1 200 OK\r\nA", end: true, message: /^unexpected EOF$/ },
  {
    when: "half a body",
    text: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
    end: true,
    message: /^unexpected EOF$/,
  },
])("refuses $when", ({ text, message, end }) => {
  expect(() => read(text, { pieces: 1000, end: end ?? false })).toThrow(message);
});
