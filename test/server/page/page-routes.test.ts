import { describe, expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import type { ContainerAccess, LogSelection } from "../../../src/base/model/container-access.ts";
import type { Access, NodeDetail, PodDetail } from "../../../src/page/wire.ts";
import { INLINE_SCRIPT } from "../../../src/server/page/assets.ts";
import type { PageFeed } from "../../../src/server/page/page-feed.ts";
import { PageRoutes, type PageRoutesDeps } from "../../../src/server/page/page-routes.ts";
import { createLoginToken, PageSessions } from "../../../src/server/page/page-session.ts";
import type { RouteResponse, ServerRequest } from "../../../src/server/request-handler.ts";
import { BodyTooLongError } from "../../../src/server/request-handler.ts";
import type { WebSocketConnection } from "../../../src/server/websocket.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const SECRET = Buffer.alloc(32, 1);
const HOST = "localhost:4194";
const ORIGIN = { Origin: `http://${HOST}` };

const WEB = { metadata: { uid: "u1", name: "web" }, spec: { containers: [] } } as unknown as Pod;

interface Asking extends Partial<Pick<ServerRequest, "text" | "upgrade" | "isSecure">> {
  query?: string;
  headers?: Record<string, string>;
  body?: string;
}

function world(over: Partial<PageRoutesDeps> = {}, pods: readonly Pod[] = [WEB]) {
  const clock = new FakeClock();
  const nowMs = () => clock.now().getTime();
  const sessions = new PageSessions(SECRET, nowMs);
  const session = sessions.logIn(createLoginToken(SECRET, nowMs())) ?? "";
  const done: string[] = [];
  const act = (what: string) => {
    done.push(what);
    return { ok: true, message: what };
  };
  const routes = new PageRoutes({
    clock,
    feed: {
      history: (uid: string) => ({ uid }),
      firstState: async (access: Access) => ({ access, pods: [{ why: "</script><b>" }] }),
    } as unknown as PageFeed,
    sessions,
    isLocal: true,
    details: {
      pods: () => pods,
      podDetail: async (_, privileged) => ({ privileged }) as unknown as PodDetail,
      processes: async () => [],
      nodeDetail: async () => ({}) as NodeDetail,
    },
    containers: {} as ContainerAccess,
    clientUserId: () => undefined,
    actions: {
      restart: () => act("restart"),
      delete: async () => act("delete"),
      apply: async () => ({ objects: [], problems: [] }),
      compare: async () => ({ changes: [], leftOut: 0, problems: [] }),
    },
    ...over,
  });
  const ask = async (line: string, asking: Asking = {}): Promise<RouteResponse | undefined> => {
    const { query = "", headers = {}, body = "", upgrade = "", isSecure = false, text = async () => body } = asking;
    const [method = "", path = ""] = line.split(" ");
    const all = new Headers({ Host: HOST, ...headers });
    return routes.route({
      method,
      path,
      query: new URLSearchParams(query),
      header: (name) => all.get(name),
      text,
      signal: new AbortController().signal,
      shown: undefined,
      isSecure,
      upgrade,
    } satisfies ServerRequest);
  };
  return {
    ask,
    done,
    cookie: { Cookie: `${sessions.cookieName}=${session}` },
    token: createLoginToken(SECRET, nowMs()),
  };
}

const statusOf = (answer: RouteResponse | undefined) =>
  answer === undefined ? undefined : "run" in answer ? 101 : answer.status;

const bodyOf = (answer: RouteResponse | undefined) => (answer as { body: string }).body;

test.each<[string, number | undefined, number | undefined, number | undefined]>([
  ["GET /", 200, 200, 200],
  ["HEAD /", 200, 200, 200],
  ["POST /", 405, 405, 405],
  ["DELETE /page/api/node", 405, 405, 405],
  ["GET /page", 404, 404, 403],
  ["GET /page/nothing", 404, 404, 403],
  ["GET /page/assets/nothing.js", 404, 404, 403],
  ["GET /metrics", undefined, undefined, undefined],
  ["GET /pages", undefined, undefined, undefined],
  ["GET /page/login", 405, 405, 403],
  ["GET /page/api/node", 200, 200, 403],
  ["GET /page/api/node/history", 200, 200, 403],
  ["GET /page/api/apply", 404, 404, 403],
  ["GET /page/api/pods/u1", 200, 200, 403],
  ["GET /page/api/pods/u1/history", 200, 200, 403],
  ["GET /page/api/pods/u2", 404, 404, 403],
  ["GET /page/api/pods/u1/restart", 404, 404, 403],
  ["GET /page/api/pods/u1/logs", 401, 404, 403],
  ["HEAD /page/api/pods/u1/logs", 401, 405, 403],
  ["GET /page/api/pods/u1/shell", 401, 404, 403],
  ["GET /page/api/pods/u1/processes", 401, 200, 403],
  ["POST /page/stream", 401, 405, 403],
  ["HEAD /page/stream", 405, 405, 403],
  ["GET /page/stream", 400, 400, 403],
  ["POST /page/api/node", 401, 404, 403],
  ["POST /page/api/apply", 401, 400, 403],
  ["POST /page/api/pods/u1/restart", 401, 200, 403],
  ["POST /page/api/pods/u1/delete", 401, 200, 403],
  ["POST /page/api/pods/u1/history", 401, 404, 403],
  ["POST /page/api/pods/u2/delete", 401, 404, 403],
])(
  "status of a route: without session, with session, with session from a foreign origin: %s: %p, %p, %p",
  async (line, without, withSession, foreign) => {
    const { ask, cookie, done } = world();
    expect(statusOf(await ask(line, { headers: ORIGIN }))).toBe(without);
    expect(statusOf(await ask(line, { headers: { ...cookie, Origin: "http://evil.test" } }))).toBe(foreign);
    expect(done).toEqual([]);
    expect(statusOf(await ask(line, { headers: { ...ORIGIN, ...cookie } }))).toBe(withSession);
  },
);

const site = (value: string) => ({ "Sec-Fetch-Site": value });
test.each<[Record<string, string>, number]>([
  [site("cross-site"), 403],
  // Another port of the host.
  [site("same-site"), 403],
  [site("same-origin"), 200],
  // An address that was typed.
  [site("none"), 200],
  [{}, 200],
  ...["null", "file://", "http://localhost:8080", "https://localhost:4194"].map(
    (Origin) => [{ Origin }, 403] as [Record<string, string>, number],
  ),
  [{ ...ORIGIN, ...site("same-origin") }, 200],
])("a page of another site reads nothing and holds no stream: %p: %p", async (headers, status) => {
  const { ask, cookie } = world();
  const both = { ...cookie, ...headers };
  for (const path of ["/page/api/node", "/page/api/pods/u1"]) {
    expect(statusOf(await ask(`GET ${path}`, { headers: both }))).toBe(status);
  }
  const stream = await ask("GET /page/stream", { headers: both, upgrade: "websocket" });
  expect(statusOf(stream)).toBe(status === 200 ? 101 : status);
  expect(statusOf(await ask("GET /", { headers: both }))).toBe(200);
});

test("readers without a session cannot take the streams of sessions", async () => {
  const feed = { subscribe: async () => () => {}, resume: () => {} } as unknown as PageFeed;
  const { ask, cookie } = world({ feed });
  const gone = new AbortController();
  const socket = { gone: gone.signal, send: async () => {}, close: () => {} } as unknown as WebSocketConnection;
  const open = async (headers: Record<string, string>) => {
    const response = await ask("GET /page/stream", { headers, upgrade: "websocket" });
    if (response && "run" in response) void response.run(socket);
    return statusOf(response);
  };
  const statuses = [];
  for (let count = 0; count < 40; count++) statuses.push(await open({}));
  expect([statuses[31], statuses[32]]).toEqual([101, 503]);
  expect(await open(cookie)).toBe(101);
  gone.abort();
});

test.each([
  ["GET /page/stream", 403],
  ["GET /page/assets/terminal.css", 403],
  ["GET /page/api/node", 403],
  ["POST /page/login", 403],
  // The root is that of cAdvisor.
  ["GET /", undefined],
])("on a network address without TLS the page is not served: %s", async (line, status) => {
  const { ask, cookie } = world({ isLocal: false });
  expect(statusOf(await ask(line, { headers: { ...ORIGIN, ...cookie } }))).toBe(status);
});

test.each([
  ["GET /", 200, 200],
  ["GET /page/assets/terminal.css", 200, 200],
  ["GET /page/stream", 401, 400],
  ["GET /page/api/session", 401, 200],
  ["GET /page/api/node", 401, 200],
  ["GET /page/api/pods/u1", 401, 200],
  ["POST /page/api/apply", 401, 400],
  ["POST /page/api/compare", 401, 400],
  ["GET /page/api/pods/u1/processes", 401, 200],
])("on a network address with TLS everything but the files needs a session: %s", async (line, without, withSession) => {
  const { ask, cookie } = world({ isLocal: false });
  const headers = { Origin: `https://${HOST}` };
  expect(statusOf(await ask(line, { headers, isSecure: true }))).toBe(without);
  expect(statusOf(await ask(line, { headers: { ...headers, ...cookie }, isSecure: true }))).toBe(withSession);
});

test("over TLS the origin is https, and the cookie is sent over TLS only", async () => {
  const { ask, token } = world({ isLocal: false });
  const logIn = (origin: string) =>
    ask("POST /page/login", { headers: { Origin: origin }, body: JSON.stringify({ token }), isSecure: true });
  expect(statusOf(await logIn(`http://${HOST}`))).toBe(403);
  const answer = await logIn(`https://${HOST}`);
  expect((answer as { headers: Record<string, string> }).headers["Set-Cookie"]).toMatch(/; Secure$/);
});

test("a login token is exchanged once for a session that can act", async () => {
  const { ask, token, done } = world();
  const logIn = (headers: Record<string, string>) =>
    ask("POST /page/login", { headers, body: JSON.stringify({ token }) });
  expect(statusOf(await logIn({ Origin: "http://evil.test" }))).toBe(403);
  expect(statusOf(await logIn({ "Sec-Fetch-Site": "cross-site" }))).toBe(403);
  const answer = await logIn(ORIGIN);
  const setCookie = (answer as { headers: Record<string, string> }).headers["Set-Cookie"] ?? "";
  expect(setCookie).toMatch(/; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43200$/);
  expect(statusOf(await logIn(ORIGIN))).toBe(401);
  const headers = { ...ORIGIN, Cookie: setCookie.split(";", 1)[0] ?? "" };
  expect(statusOf(await ask("POST /page/api/pods/u1/restart", { headers }))).toBe(200);
  expect(done).toEqual(["restart"]);
});

test.each(["", "no JSON", "null", "[]", '{"token": 1}'])("a login without a token is refused: %p", async (body) => {
  expect(statusOf(await world().ask("POST /page/login", { headers: ORIGIN, body }))).toBe(401);
});

describe("logs", () => {
  const asked: LogSelection[] = [];
  const running = (name: string) => ({ name, containerID: `docker://id-${name}`, state: { running: {} } });
  const logged = () =>
    world(
      {
        containers: {
          logs: async (id: string, selection: LogSelection) => {
            asked.push(selection);
            if (id === "id-broken") throw new Error("open /x-json.log: no such file");
            return (async function* () {
              yield { stream: "stdout", data: Buffer.from("one\ntwo") };
            })();
          },
        } as unknown as ContainerAccess,
      },
      [{ ...WEB, status: { containerStatuses: [running("a"), running("broken")] } } as unknown as Pod],
    );
  const read = async (query: string) => {
    const { ask, cookie } = logged();
    const answer = await ask("GET /page/api/pods/u1/logs", { query, headers: cookie });
    if (!answer || !("chunks" in answer)) return { status: statusOf(answer), text: bodyOf(answer) };
    const pieces = await Array.fromAsync(answer.chunks as AsyncIterable<string | Uint8Array>);
    return { status: answer.status, text: pieces.map((piece) => Buffer.from(piece).toString()).join("") };
  };

  test("a log that cannot be read says why, and keeps no other back", async () => {
    expect(await read("container=broken")).toEqual({
      status: 502,
      text: "The log cannot be read: open /x-json.log: no such file\n",
    });
    const { status, text } = await read("containers=a,broken,unknown");
    expect([status, text.split("\n").toSorted()]).toEqual([
      200,
      ["", "a\tone", "a\ttwo", "broken\tThe log cannot be read: open /x-json.log: no such file"],
    ]);
  });

  test("a log over a WebSocket is sent as bytes, and why there is none as a text", async () => {
    const sent: [string, string][] = [];
    const over = async (query: string) => {
      const { ask, cookie } = logged();
      const response = await ask("GET /page/api/pods/u1/logs", {
        query,
        headers: { ...ORIGIN, ...cookie },
        upgrade: "websocket",
      });
      if (!response || !("run" in response)) throw new Error("no WebSocket");
      const socket = {
        gone: new AbortController().signal,
        send: async (payload: Uint8Array, kind = "binary") => void sent.push([kind, Buffer.from(payload).toString()]),
        messages: async function* () {},
        close: () => sent.push(["close", ""]),
      };
      await response.run(socket as unknown as WebSocketConnection);
    };
    await over("container=a");
    await over("container=broken");
    expect(sent).toEqual([
      ["binary", "one\ntwo"],
      ["close", ""],
      ["text", "The log cannot be read: open /x-json.log: no such file\n"],
      ["close", ""],
    ]);
  });

  test("a log continues at a time, which is never in the future", async () => {
    const now = new FakeClock().now().getTime();
    for (const time of [now - 1500, now + 3_600_000]) {
      asked.length = 0;
      await read(`container=a&tailLines=5&since=${new Date(time).toISOString().replace("Z", "999999Z")}`);
      expect(asked[0]).toMatchObject({ since: new Date(Math.min(time, now)), tailLines: 5 });
    }
    asked.length = 0;
    await read("container=a&since=yesterday&tailLines=-3");
    expect(asked[0]).toEqual({ follow: false, timestamps: false, stdout: true, stderr: true });
  });
});

test("a WebSocket needs the page's origin and a session", async () => {
  const { ask, cookie } = world();
  const shell = (headers: Record<string, string>) =>
    ask("GET /page/api/pods/u1/shell", { headers, upgrade: "websocket" });
  expect(statusOf(await shell({ ...cookie, Origin: "http://evil.test" }))).toBe(403);
  expect(statusOf(await shell(ORIGIN))).toBe(401);
  expect(statusOf(await shell({ ...ORIGIN, ...cookie }))).toBe(404); // No container runs.
});

test("a node that takes no submissions has no actions", async () => {
  const { ask, cookie } = world({ actions: undefined });
  for (const path of ["apply", "pods/u1/restart", "pods/u1/delete"]) {
    expect(statusOf(await ask(`POST /page/api/${path}`, { headers: { ...ORIGIN, ...cookie } }))).toBe(404);
  }
});

test("secrets of a pod are for sessions: podDetail is reported", async () => {
  const { ask, cookie } = world();
  const bodyOf = async (headers: Record<string, string>) =>
    ((await ask("GET /page/api/pods/u1", { headers })) as { body: string }).body;
  expect(await bodyOf({})).toBe('{"privileged":false}');
  expect(await bodyOf(cookie)).toBe('{"privileged":true}');
});

test("a manifest may be as long as the API takes it; a longer one is not taken for an empty one", async () => {
  const { ask, cookie } = world();
  const limits: (number | undefined)[] = [];
  const text = async (maxBytes?: number) => {
    limits.push(maxBytes);
    throw new BodyTooLongError(1);
  };
  for (const path of ["/page/api/apply", "/page/login"]) {
    await expect(ask(`POST ${path}`, { headers: { ...ORIGIN, ...cookie }, text })).rejects.toThrow(/longer than/);
  }
  expect(limits).toEqual([4 * 1024 * 1024, undefined]);
});

test("the document holds the first state as data, for those who may see it", async () => {
  const { ask, cookie } = world();
  const stateOf = (body: string) => JSON.parse(/id="state">(.*?)<\/script>/.exec(body)?.[1] ?? "null");
  const access = (privileged: boolean) => ({
    access: { privileged, canAct: privileged },
    pods: [{ why: "</script><b>" }],
  });
  expect(stateOf(bodyOf(await ask("GET /")))).toEqual(access(false));
  expect(stateOf(bodyOf(await ask("GET /", { headers: cookie })))).toEqual(access(true));
  const far = world({ isLocal: false });
  expect(bodyOf(await far.ask("GET /", { isSecure: true }))).not.toContain('id="state"');
  expect(stateOf(bodyOf(await far.ask("GET /", { headers: far.cookie, isSecure: true })))).toEqual(access(true));
});

test.each(["GET /", "GET /page/assets/terminal.css", "GET /page/api/node", "GET /page/nothing"])(
  "%s has the policy that allows only scripts of the page, in no frame of another site",
  async (line) => {
    const { headers } = (await world().ask(line)) as { headers: Record<string, string> };
    const rules = (headers["Content-Security-Policy"] ?? "").split("; ");
    const none = ["default-src", "frame-ancestors", "form-action", "base-uri"].map((name) => `${name} 'none'`);
    expect(rules).toEqual(
      expect.arrayContaining([...none, `script-src 'self' ${INLINE_SCRIPT}`, "connect-src 'self'"]),
    );
    expect(headers).toMatchObject({
      "X-Content-Type-Options": "nosniff",
      "Cross-Origin-Resource-Policy": "same-origin",
    });
    expect(headers["Access-Control-Allow-Origin"]).toBeUndefined();
  },
);

test("the script that the document names is served, compressed or not, and need not be asked for again", async () => {
  const { ask } = world();
  const [script = ""] = /\/page\/assets\/main-[^"]+/.exec(bodyOf(await ask("GET /"))) ?? [];
  const plain = (await ask(`GET ${script}`)) as { headers: Record<string, string>; body: Uint8Array };
  const zipped = (await ask(`GET ${script}`, { headers: { "Accept-Encoding": "br, gzip" } })) as typeof plain;
  expect(plain.headers["Cache-Control"]).toContain("immutable");
  expect([plain.headers["Content-Encoding"], zipped.headers["Content-Encoding"]]).toEqual([undefined, "gzip"]);
  expect(Bun.gunzipSync(Uint8Array.from(zipped.body))).toEqual(Uint8Array.from(plain.body));
  const again = await ask(`GET ${script}`, { headers: { "If-None-Match": plain.headers.ETag ?? "" } });
  expect(statusOf(again)).toBe(304);
});
