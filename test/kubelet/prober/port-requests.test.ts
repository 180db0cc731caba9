import { describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import type { HTTPGetAction } from "../../../src/base/api/container.ts";
import type { ProbeOutcome } from "../../../src/base/model/prober.ts";
import { HostProber } from "../../../src/kubelet/prober/host-prober.ts";
import {
  followLocation,
  formatUrl,
  type HttpLocation,
  toRequestTarget,
} from "../../../src/kubelet/prober/port-requests.ts";
import { aProbe } from "../../support/builders.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { TestCertificates } from "../../support/test-certificates.ts";
import { freePorts, httpServers, rawServers } from "../../support/test-servers.ts";

const tempDir = tempDirs();
const httpServer = httpServers();
const rawServer = rawServers();
const clock = new FakeClock();
const noExec = { run: () => Promise.reject(new Error("no exec here")) };
const prober = new HostProber({ exec: noExec, clock, version: "1.20" });

function probe(
  httpGet: Partial<HTTPGetAction> & { port: number | string },
  options: { signal?: AbortSignal; podIp?: string } = {},
): Promise<ProbeOutcome> {
  return prober.attempt(
    aProbe({ httpGet: { path: "/", scheme: "HTTP", ...httpGet } }),
    {
      containerId: "c1",
      podIp: options.podIp ?? "127.0.0.1",
      ports: [{ name: "web", containerPort: 1, protocol: "TCP" }],
    },
    options.signal ?? new AbortController().signal,
  );
}

const serve = (fetch: (request: Request) => Response, tls?: { cert: string; key: string }): number =>
  httpServer(fetch, tls && { tls }).port!;

/** `Get "URL": what`, as Go says it. */
const failed = (url: string, what: string) => ({ result: "failure" as const, output: `Get "${url}": ${what}` });

describe("results", () => {
  test.each([
    { status: 200, want: { result: "success", output: "body" } },
    { status: 299, want: { result: "success", output: "body" } },
    { status: 304, want: { result: "warning", output: "Probe terminated redirects, Response body: " } },
    { status: 399, want: { result: "warning", output: "Probe terminated redirects, Response body: body" } },
    { status: 400, want: { result: "failure", output: "HTTP probe failed with statuscode: 400" } },
    { status: 404, want: { result: "failure", output: "HTTP probe failed with statuscode: 404" } },
    { status: 500, want: { result: "failure", output: "HTTP probe failed with statuscode: 500" } },
  ] as const)("status $status", async ({ status, want }) => {
    const port = serve(() => new Response(status === 304 ? null : "body", { status }));
    expect(await probe({ port })).toEqual(want);
  });

  test("of a long or endless body 10 KiB are read", async () => {
    const endless = await rawServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const more = (): void => {
        while (!socket.destroyed && socket.write("x".repeat(4096)));
      };
      socket.on("drain", more);
      more();
    });
    const outcome = await probe({ port: endless.port });
    expect(outcome.result).toBe("success");
    expect(outcome.output.length).toBe(10_240);
  });
});

const ok = (output: string) => ({ result: "success", output });
const refused = (detail: string) => ({ result: "failure", output: expect.stringContaining(`/": ${detail}`) });
const broken = (detail: string) => refused(`net/http: HTTP/1.x transport connection broken: ${detail}`);
const unread = (output: string) => ({ result: "unknown", output });
test.each([
  { when: "a length", text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloJUNK", want: ok("hello") },
  {
    when: "chunks",
    text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n",
    want: ok("hello!"),
  },
  { when: "no length", text: "HTTP/1.0 200 OK\r\n\r\nhello", want: ok("hello") },
  { when: "no body by status", text: "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", want: ok("") },
  {
    when: "five interim responses",
    text: `${"HTTP/1.1 100 C\r\n\r\n".repeat(5)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`,
    want: ok("ok"),
  },
  { when: "bare line feeds", text: "HTTP/1.0 200 OK\nContent-Length: 2\n\nok", want: ok("ok") },
  { when: "no reason phrase", text: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", want: ok("ok") },
  { when: "binary", text: "\x15\x03\x01", want: broken("malformed HTTP response") },
  { when: "a bad status", text: "HTTP/1.1 2xx OK\r\n\r\n", want: broken('malformed HTTP response "HTTP/1.1 2') },
  { when: "a bad header", text: "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", want: broken("malformed MIME header") },
  { when: "a bad length", text: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", want: broken("bad Content-Length") },
  {
    when: "endless headers",
    text: `HTTP/1.1 200 OK\r\n${"name: value\r\n".repeat(20_000)}`,
    want: broken("server response"),
  },
  { when: "half a head", text: "HTTP/1.1 200 OK\r\nA", want: refused("unexpected EOF") },
  { when: "half a body", text: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", want: unread("unexpected EOF") },
  {
    when: "a bad chunk",
    text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    want: { result: "unknown", output: expect.stringContaining("malformed chunked encoding") },
  },
])("responses, in pieces: $when", async ({ text, want }) => {
  for (const pieces of [1, 3]) {
    const server = await rawServer(async (socket) => {
      const size = Math.ceil(text.length / pieces);
      for (let at = 0; at < text.length && !socket.destroyed; at += size) {
        await new Promise((written) => socket.write(text.slice(at, at + size), "latin1", written));
        await settle();
      }
      socket.end();
    });
    expect(await probe({ port: server.port })).toEqual(want as ProbeOutcome);
  }
});

describe("the request", () => {
  test("has our user agent and closes the connection", async () => {
    const server = await rawServer((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    await probe({ port: server.port, path: "/healthz?full=1" });
    expect(await server.request).toBe(
      `GET /healthz?full=1 HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nUser-Agent: kube-probe/1.20\r\n` +
        "Accept: */*\r\nConnection: close\r\n\r\n",
    );
  });

  test("carries the manifest's headers; Host, User-Agent and Accept give way, empty ones are not sent", async () => {
    const server = await rawServer((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    const httpHeaders = [
      { name: "X-A", value: "b" },
      { name: "X-A", value: "grün" },
      { name: "Host", value: "shop.example" },
      { name: "user-agent", value: "" },
      { name: "Accept", value: "text/plain" },
      { name: "Content-Length", value: "100" },
    ];
    await probe({ port: server.port, httpHeaders });
    expect((await server.request).split("\r\n")).toEqual([
      "GET / HTTP/1.1",
      "Host: shop.example",
      "X-A: b",
      "X-A: grün",
      "Accept: text/plain",
      "Connection: close",
      "",
      "",
    ]);
  });

  test("a header that would smuggle another is refused", async () => {
    const [port = 0] = freePorts(1);
    const evil = await probe({ port, httpHeaders: [{ name: "X", value: "a\r\nY: b" }] });
    expect(evil).toEqual(failed(`http://127.0.0.1:${port}/`, 'net/http: invalid header field value for "X"'));
  });

  test("goes to the host, scheme and named port of the manifest", async () => {
    // Probes do not verify certificates.
    const { cert, key } = new TestCertificates(tempDir()).serverNamed("probe.test");
    const port = serve((request) => new Response(new URL(request.url).protocol), { cert, key });
    expect(await probe({ port, scheme: "HTTPS", host: "localhost" }, { podIp: "192.0.2.1" })).toEqual({
      result: "success",
      output: "https:",
    });
    expect((await probe({ port: "web" })).output).toStartWith('Get "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: ');
  });

  test("ignores proxy variables", async () => {
    const port = serve(() => new Response("direct"));
    const before = process.env.http_proxy;
    process.env.http_proxy = "http://127.0.0.1:1";
    try {
      expect((await probe({ port })).output).toBe("direct");
    } finally {
      if (before === undefined) delete process.env.http_proxy;
      else process.env.http_proxy = before;
    }
  });
});

describe("redirects", () => {
  test("on the same host are followed, also to another port", async () => {
    const end = serve((request) => new Response(`end ${new URL(request.url).pathname}`));
    const start = serve(() => Response.redirect(`http://127.0.0.1:${end}/final`));
    expect(await probe({ port: start })).toEqual({ result: "success", output: "end /final" });
  });

  test("keep the virtual host while they are relative", async () => {
    const port = serve((request) => {
      if (new URL(request.url).pathname === "/")
        return new Response(null, { status: 307, headers: { location: "/in" } });
      return new Response(request.headers.get("host"));
    });
    const outcome = await probe({ port, httpHeaders: [{ name: "Host", value: "shop.example" }] });
    expect(outcome).toEqual({ result: "success", output: "shop.example" });
  });

  test.each([
    { location: "http://elsewhere.invalid/", when: "to another host" },
    { location: undefined, when: "without a Location" },
  ])("$when end the probe with a warning", async ({ location }) => {
    const port = serve(() => new Response("gone away", { status: 302, ...(location && { headers: { location } }) }));
    expect(await probe({ port })).toEqual({
      result: "warning",
      output: "Probe terminated redirects, Response body: gone away",
    });
  });

  test("stop after ten", async () => {
    let requests = 0;
    const port = serve(() => {
      requests++;
      return new Response(null, { status: 302, headers: { location: `/${requests}` } });
    });
    expect(await probe({ port })).toEqual(failed(`http://127.0.0.1:${port}/10`, "stopped after 10 redirects"));
    expect(requests).toBe(10);
  });
});

describe("no response", () => {
  test("connection refused", async () => {
    const [port = 0] = freePorts(1);
    expect(await probe({ port, path: "/x" })).toEqual(
      failed(`http://127.0.0.1:${port}/x`, `dial tcp 127.0.0.1:${port}: connect: connection refused`),
    );
  });

  test("unknown host", async () => {
    const { result, output } = await probe({ port: 80, host: "nowhere.invalid" });
    expect(result).toBe("failure");
    expect(output).toStartWith('Get "http://nowhere.invalid:80/": dial tcp: lookup nowhere.invalid: ');
  });

  test.each([
    { when: "closed without a word", respond: (socket: Socket) => socket.end(), want: /": EOF$/ },
    { when: "reset", respond: (socket: Socket) => socket.resetAndDestroy(), want: /connection reset by peer$|EOF$/ },
    {
      when: "not HTTP",
      respond: (socket: Socket) => socket.write("SSH-2.0-OpenSSH_9.6\r\n"),
      want: /transport connection broken: malformed HTTP response "SSH-2.0-OpenSSH_9.6/,
    },
  ])("$when", async ({ respond, want }) => {
    const server = await rawServer(respond);
    expect(await probe({ port: server.port })).toEqual({ result: "failure", output: expect.stringMatching(want) });
  });

  test("interim responses without end", async () => {
    const server = await rawServer((socket) => {
      const flood = () => void (!socket.destroyed && socket.write("HTTP/1.1 100 C\r\n\r\n".repeat(1000), flood));
      flood();
    });
    expect(await probe({ port: server.port })).toEqual(
      failed(`http://127.0.0.1:${server.port}/`, "net/http: too many 1xx informational responses"),
    );
  });

  test("plain HTTP where HTTPS was asked for", async () => {
    const port = serve(() => new Response("plain"));
    expect(await probe({ port, scheme: "HTTPS" })).toEqual(
      failed(`https://127.0.0.1:${port}/`, "http: server gave HTTP response to HTTPS client"),
    );
  });

  test.each([
    { when: "no such named port", port: "nope", podIp: "127.0.0.1", output: 'port "nope" not found' },
    { when: "no pod IP", port: 80, podIp: "", output: "the pod has no IP address" },
  ])("$when says nothing about the container", async ({ port, podIp, output }) => {
    expect(await probe({ port }, { podIp })).toEqual({ result: "unknown", output });
  });
});

describe("too slow", () => {
  test("no answer within the timeout", async () => {
    const server = await rawServer(() => {});
    const outcome = probe({ port: server.port });
    await server.request;
    await clock.advance(1000);
    expect(await outcome).toEqual({
      result: "failure",
      output:
        `Get "http://127.0.0.1:${server.port}/": context deadline exceeded` +
        " (Client.Timeout exceeded while awaiting headers)",
      isTimeout: true,
    });
  });

  test("headers that trickle", async () => {
    const { promise: sent, resolve } = Promise.withResolvers<void>();
    const server = await rawServer((socket) => socket.write("HTTP/1.1 200 OK\r\nX-Slow", () => resolve()));
    const outcome = probe({ port: server.port });
    await sent;
    await clock.advance(1000);
    expect((await outcome).output).toEndWith("(Client.Timeout exceeded while awaiting headers)");
  });

  test("a body that never ends says nothing, as upstream has it", async () => {
    const server = await rawServer((socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"));
    const outcome = probe({ port: server.port });
    await server.request;
    // Bytes written on loopback are read within a turn or two of the event loop.
    for (let turn = 0; turn < 10; turn++) await settle();
    await clock.advance(1000);
    expect(await outcome).toEqual({
      result: "unknown",
      output: "context deadline exceeded (Client.Timeout exceeded while reading body)",
    });
  });

  test("a TLS handshake without an answer", async () => {
    const server = await rawServer(() => {});
    const outcome = probe({ port: server.port, scheme: "HTTPS" });
    await server.request;
    await clock.advance(1000);
    expect((await outcome).result).toBe("failure");
  });

  test("a stopped probe ends at once and leaves no timer", async () => {
    const server = await rawServer(() => {});
    const stop = new AbortController();
    const outcome = probe({ port: server.port }, { signal: stop.signal });
    await server.request;
    stop.abort(new Error("stopped"));
    expect(await outcome).toEqual({ result: "unknown", output: "stopped" });
    expect(clock.pendingTimers).toBe(0);
  });
});

test.each([
  { when: "a plain path", path: "/healthz", want: "/healthz" },
  { when: "nothing", path: "", want: "/" },
  { when: "a path without its slash", path: "healthz", want: "/healthz" },
  { when: "a query", path: "/x?a=1&b=2", want: "/x?a=1&b=2" },
  { when: "a query alone", path: "?a=1", want: "/?a=1" },
  { when: "a fragment", path: "/x?a=1#part", want: "/x?a=1" },
  { when: "escapes", path: "/a%20b", want: "/a%20b" },
  { when: "a broken escape", path: "/100%?x", want: "/100%25%3Fx" },
  { when: "blanks and umlauts", path: "/grün weiß", want: "/gr%C3%BCn%20wei%C3%9F" },
  { when: "dots that a browser would resolve", path: "/a/../b/./c", want: "/a/../b/./c" },
  { when: "line breaks", path: "/x HTTP/1.1\r\nX-Evil: 1", want: "/x%20HTTP/1.1%0D%0AX-Evil:%201" },
  { when: "an authority", path: "http://elsewhere/x", want: "/x" },
  { when: "an authority without scheme", path: "//elsewhere/x", want: "/x" },
  { when: "three slashes", path: "///x", want: "///x" },
  { when: "a blank in the query", path: "/x?q=a b", want: "/x?q=a%20b" },
])("request target of $when", ({ path, want }) => {
  expect(toRequestTarget(path)).toBe(want);
});

const HERE: HttpLocation = { scheme: "http", host: "10.0.0.1", port: 80, target: "/a/b" };

test("a URL always names its port", () => {
  expect(formatUrl(HERE)).toBe("http://10.0.0.1:80/a/b");
  expect(formatUrl({ scheme: "https", host: "fd00::1", port: 8443, target: "/" })).toBe("https://[fd00::1]:8443/");
});

test.each([
  { header: "/login", want: "http://10.0.0.1:80/login" },
  { header: "c?d=1", want: "http://10.0.0.1:80/a/c?d=1" },
  { header: "https://10.0.0.1/x", want: "https://10.0.0.1:443/x" },
  { header: "//10.0.0.2:8080/x", want: "http://10.0.0.2:8080/x" },
  { header: "http://[fd00::1]:81/", want: "http://[fd00::1]:81/" },
])("Location $header leads to $want", ({ header, want }) => {
  expect(formatUrl(followLocation(HERE, header)!)).toBe(want);
});

test.each(["ftp://10.0.0.1/", "http://", "http://a b/"])("Location %s leads nowhere", (header) => {
  expect(followLocation(HERE, header)).toBeUndefined();
});
