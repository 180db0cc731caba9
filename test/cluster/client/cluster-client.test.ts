import { describe, expect, test } from "bun:test";
import type { Clock } from "../../../src/base/model/clock.ts";
import { ApiStatusError, ApiUnreachableError } from "../../../src/cluster/client/api-error.ts";
import { ClusterClient } from "../../../src/cluster/client/cluster-client.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { httpServers } from "../../support/test-servers.ts";
import { until } from "../../support/until.ts";

const httpServer = httpServers();

/** A clock that notes how long it was asked to sleep, and does not. */
function impatientClock() {
  const slept: number[] = [];
  const clock: Clock = {
    now: () => new Date(0),
    monotonicMs: () => 0,
    sleep: async (ms) => void slept.push(ms),
    // Only waits that were shortened end.
    schedule: (ms, callback) => {
      if (ms <= 1_000) queueMicrotask(callback);
      return () => {};
    },
  };
  return { clock, slept };
}

function serve(
  response: (request: Request, count: number) => Response | Promise<Response>,
  rate = { perSecond: 0, burst: 0 },
) {
  const requests: Request[] = [];
  const server = httpServer((request) => {
    requests.push(request);
    return response(request, requests.length);
  });
  const { clock, slept } = impatientClock();
  const settings = {
    server: `http://127.0.0.1:${server.port}`,
    tls: {},
    headers: { Authorization: "Bearer t" },
  };
  const client = new ClusterClient({
    credentials: { current: async () => settings, invalidate: () => {} },
    clock,
    rate,
    userAgent: "kubelet-ts/test",
    logger: new RecordingLogger(),
    random: () => 0,
  });
  return { client, requests, slept, server };
}

const status = (code: number, reason: string, headers: Record<string, string> = {}) =>
  Response.json({ kind: "Status", reason, message: `it is ${reason}` }, { status: code, headers });

describe("requests to the API server", () => {
  test("JSON goes there and comes back, with the credentials", async () => {
    const { client, requests } = serve(async (request) => Response.json({ got: await request.json() }));
    const response = await client.request({
      method: "POST",
      path: "/api/v1/nodes",
      query: { a: "b c" },
      body: { x: 1 },
    });
    expect(response).toEqual({ got: { x: 1 } });
    expect(requests[0]?.url).toEndWith("/api/v1/nodes?a=b+c");
    expect(requests[0]?.headers.get("Authorization")).toBe("Bearer t");
  });

  test("a Status becomes an error with its code and reason", async () => {
    const { client } = serve(() => status(409, "Conflict"));
    const error = await client.request({ path: "/x" }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiStatusError);
    expect(error).toMatchObject({ code: 409, reason: "Conflict", message: "GET /x answered 409: it is Conflict" });
  });

  test("429 is tried again after the time it names", async () => {
    const { client, slept } = serve((_, count) =>
      count < 3 ? status(429, "TooManyRequests", { "Retry-After": "7" }) : Response.json({}),
    );
    expect(await client.request({ path: "/x" })).toEqual({});
    expect(slept).toEqual([7000, 7000]);
  });

  test("429 without a time, or with 0 seconds, has growing delays", async () => {
    const { client, slept } = serve((_, count) =>
      count < 4 ? status(429, "TooManyRequests", count === 1 ? {} : { "Retry-After": "0" }) : Response.json({}),
    );
    expect(await client.request({ path: "/x" })).toEqual({});
    expect(slept).toEqual([250, 500, 1_000]);
  });

  test("a response of the API server ends the waits for it, 502 of a load balancer does not", async () => {
    const { client } = serve((_, count) => (count < 2 ? new Response("", { status: 502 }) : Response.json({})));
    const early: boolean[] = [];
    client.reachability.schedule(30_000, (isEarly) => early.push(isEarly));
    await client.request({ path: "/x" }).catch(() => {});
    expect(early).toEqual([]);
    await client.request({ path: "/x" });
    await until("the end of the wait", () => early.length === 1);
  });

  test("500 is the caller's", async () => {
    const { client, requests } = serve(() => status(500, "InternalError"));
    expect(await client.request({ path: "/x" }).catch((error) => error.code)).toBe(500);
    expect(requests).toHaveLength(1);
  });

  test("a server that is not there is reported apart from one that refuses", async () => {
    const { client, server } = serve(() => Response.json({}));
    server.stop(true);
    expect(await client.request({ path: "/x" }).catch((error) => error)).toBeInstanceOf(ApiUnreachableError);
  });

  test.each([
    [200, "the response of %: it is compressed (Content-Encoding: gzip)"],
    [403, "GET /x answered 403: "],
  ])("a %d that is compressed unasked is not inflated", async (code, message) => {
    const bomb = Bun.gzipSync(new Uint8Array(20_000_000));
    const asked: (string | null)[] = [];
    const { client, server } = serve(({ headers }) => {
      asked.push(headers.get("Accept-Encoding"));
      return new Response(bomb, { status: code, headers: { "Content-Encoding": "gzip" } });
    });
    const error = await client.request({ path: "/x" }).catch((thrown: Error) => thrown);
    expect((error as Error).message).toContain(message.replace("%", `http://127.0.0.1:${server.port} cannot be used`));
    expect(asked).toEqual(["identity"]);
  });

  test("--kube-api-qps and --kube-api-burst", async () => {
    const { client, slept } = serve(() => Response.json({}), { perSecond: 10, burst: 2 });
    for (let count = 0; count < 4; count++) await client.request({ path: "/x" });
    expect(slept).toEqual([100, 200]);
  });
});

describe("watches", () => {
  test("each line is an event, wherever the chunks end", async () => {
    const { client } = serve(() => {
      const text = '{"type":"ADDED","object":{"n":"ü"}}\n{"type":"DELETED"}\n';
      const bytes = Buffer.from(text);
      return new Response(
        new ReadableStream({
          async start(controller) {
            for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
            controller.close();
          },
        }),
      );
    });
    const events: unknown[] = [];
    const signal = new AbortController().signal;
    await client.watch("/w", { watch: "true" }, (event) => events.push(event), { signal, silenceMs: () => 60_000 });
    expect(events).toEqual([{ type: "ADDED", object: { n: "ü" } }, { type: "DELETED" }]);
  });

  test("410 before the first event is an error with its code", async () => {
    const { client } = serve(() => status(410, "Expired"));
    const signal = new AbortController().signal;
    const watch = client.watch("/w", {}, () => {}, { signal, silenceMs: () => 60_000 });
    expect(await watch.catch((error) => error)).toMatchObject({ code: 410, reason: "Expired" });
  });

  test("a refusal without end counts by its code, also of a request", async () => {
    const { client } = serve(
      () => new Response(new ReadableStream({ pull: (c) => c.enqueue(Buffer.alloc(65_536, "x")) }), { status: 403 }),
    );
    const { signal } = new AbortController();
    const watch = client.watch("/w", {}, () => {}, { signal, silenceMs: () => 60_000 });
    expect(await watch.catch((error) => error)).toMatchObject({ code: 403 });
    expect(await client.request({ path: "/x" }).catch((error) => error)).toMatchObject({ code: 403 });
  });

  test("silence ends it", async () => {
    const { client } = serve(() => new Response(new ReadableStream({ start: (c) => c.enqueue(Buffer.from("\n")) })));
    const signal = new AbortController().signal;
    const watch = client.watch("/w", {}, () => {}, { signal, silenceMs: () => 50 });
    expect(await watch).toBe(false);
  });
});
