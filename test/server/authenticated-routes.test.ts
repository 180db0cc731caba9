import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { AuthenticatedContext } from "../../src/server/authenticated-routes.ts";
import type { AccessRules, ShownCertificate } from "../../src/server/client-identity.ts";
import type { ListenerResponse } from "../../src/server/request-handler.ts";
import recordedContainers from "../fixtures/oracle/http/authenticated-containers.json";
import recordedRequests from "../fixtures/oracle/http/authenticated-get.json";
import recordedVariants from "../fixtures/oracle/http/authenticated-variants.json";
import { layTree } from "../stats/lay-tree.ts";
import { aContainer, aPod } from "../support/builders.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { type Asking, anAuthenticatedWorld, expectRecorded, type RecordedResponse } from "./a-context.ts";

const tree = layTree("cgroup-v2", tempDirs()());

const alice: ShownCertificate = {
  isVerified: true,
  commonName: "alice",
  organizations: [],
  notAfter: new Date("2027-01-01T00:00:00Z"),
};
const knownOnly: AccessRules = {
  trustsCertificates: true,
  anonymousAuth: false,
  authorizationMode: "AlwaysAllow",
  trustsTokens: false,
  delegated: undefined,
};

const status = (name: string, rest: object) => ({ name, lastState: {}, ...rest });

/** `web-node1` with `log`, which runs, `new`, which waits, `again`, which was started twice, and `done`. */
function webPod(): Pod {
  const names = ["log", "new", "again", "done", "unseen"];
  const pod = aPod({ containers: names.map((name) => aContainer({ name, env: [{ name: "A", value: "shown" }] })) });
  const statuses = [
    status("log", { state: { running: {} }, containerID: "docker://id-log" }),
    status("new", { state: { waiting: { reason: "ErrImagePull" } } }),
    status("again", {
      state: { waiting: { reason: "CrashLoopBackOff" } },
      lastState: { terminated: { exitCode: 1, containerID: "docker://id-again-0" } },
      containerID: "docker://id-again-0",
    }),
    status("done", { state: { terminated: { exitCode: 0, containerID: "docker://id-done" } } }),
  ];
  return { ...pod, status: { phase: "Running", podIP: "192.0.2.9", containerStatuses: statuses } } as unknown as Pod;
}

function aWorld(changes: Partial<AuthenticatedContext> = {}) {
  const world = anAuthenticatedWorld(tree, changes);
  world.view.show(webPod());
  return world;
}

async function textOf(answer: ListenerResponse): Promise<string> {
  if ("run" in answer || "takeOver" in answer) throw new Error("an upgrade");
  if (!("chunks" in answer)) return Buffer.from(answer.body as string).toString();
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.chunks) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString();
}

const statusOf = (answer: ListenerResponse) => ("run" in answer || "takeOver" in answer ? 101 : answer.status);

async function compare(answer: ListenerResponse, want: RecordedResponse) {
  if ("run" in answer || "takeOver" in answer) throw new Error("an upgrade");
  await expectRecorded(answer, () => textOf(answer), want);
}

describe("as recorded from kubelet 1.20", () => {
  /** A request that lacks the upgrade is the client's mistake: 400, where the kubelet answers 500. */
  const withoutUpgrade = (want: RecordedResponse): RecordedResponse =>
    want.body === "Upgrade request required\n" ? { ...want, status: 400 } : want;
  // The machine's log directory and the profiler's flags are not served here.
  const OTHERWISE = /^\/(logs\/|debug\/flags)/;
  test.each((recordedRequests as RecordedResponse[]).filter(({ path }) => !OTHERWISE.test(path)))(
    "GET $path is $status",
    async (want) => {
      await compare(await aWorld().ask(want.path), withoutUpgrade(want));
    },
  );

  test.each((recordedContainers as RecordedResponse[]).filter(({ path }) => !OTHERWISE.test(path)))(
    "$method $path is $status",
    async (want) => {
      const path = want.path.replace("<pod-uid:web-node1>", "u".repeat(32));
      await compare(await aWorld().ask(path, { method: want.method }), withoutUpgrade(want));
    },
  );

  // The last two were asked of other ports.
  test.each((recordedVariants["anonymous-auth=false"].requests as RecordedResponse[]).slice(0, 5))(
    "GET $path without a certificate is $status",
    async (want) => {
      await compare(await aWorld({ rules: knownOnly }).ask(want.path), want);
    },
  );

  test.each(recordedVariants["enable-debugging-handlers=false"].requests as RecordedResponse[])(
    "$method $path without debugging handlers is $status",
    async (want) => {
      await compare(await aWorld({ debuggingHandlers: false }).ask(want.path, { method: want.method }), want);
    },
  );
});

describe("which client is served", () => {
  const run = "/run/default/web-node1/log?cmd=id";
  const log = "/containerLogs/default/web-node1/log";
  const from = (Origin: string, more: Record<string, string> = {}) => ({
    method: "POST",
    shown: alice,
    headers: { Host: "node1:10250", Origin, ...more },
  });
  const passedOn = { "X-Forwarded-For": "192.0.2.8" };
  const stranger = { ...alice, isVerified: false };

  const anonymous = { anonymousAuth: true };

  test.each<[who: string, path: string, asking: Asking, status: number, rules?: Partial<AccessRules>]>([
    ...["/healthz", "/pods", "/metrics", "/configz", log].map(
      (path) => ["a client with a certificate", path, { shown: alice }, 200] as [string, string, Asking, number],
    ),
    ...["/healthz/ping", "/stats/summary", "//pods", "/api/v1/events", "/runningpods", log].map(
      (path) => ["an unknown client", path, {}, 401] as [string, string, Asking, number],
    ),
    ["an unknown client", "/exec/default/web-node1/log?command=ls&output=1", { upgrade: "websocket" }, 401],
    ["an unknown client", "/portForward/default/web-node1?port=1", { upgrade: "websocket" }, 401],
    ["an unknown client", run, { method: "POST" }, 401],
    // A browser sends the certificate of its user with the requests of any page.
    ["a page of another site", run, from("https://evil.example"), 403],
    ["a page without an origin", run, from("null"), 403],
    ["a page of this server", run, from("https://node1:10250"), 200],
    ["an API server for a page", run, from("https://dashboard.example", passedOn), 200],
    ["an impostor for a page", run, { ...from("https://dashboard.example", passedOn), shown: stranger }, 401],
    ["an unknown API server for a page", run, from("https://dashboard.example", passedOn), 200, anonymous],
    ["an unknown client by a page", run, from("https://dashboard.example"), 403, anonymous],
    ["one that AlwaysDeny refuses", run, { method: "POST", shown: alice }, 403, { authorizationMode: "AlwaysDeny" }],
  ])("%s asks for %s", async (_, path, asking, want, rules = {}) => {
    const { ask, containers } = aWorld({ rules: { ...knownOnly, ...rules } });
    expect(statusOf(await ask(path, asking))).toBe(want);
    if (want !== 200) expect(containers.asked).toEqual([]);
  });
});

test("a log query is refused, not answered with a directory", async () => {
  expect(statusOf(await aWorld().ask("/logs/?query=docker"))).toBe(400);
});

test("pods are shown in full", async () => {
  expect(await textOf(await aWorld().ask("/pods"))).toContain('"env":[{"name":"A","value":"shown"}]');
});

describe("/containerLogs", () => {
  const logs = "/containerLogs/default/web-node1";

  test.each([
    { which: "one that runs", path: "log", want: "logs id-log" },
    { which: "one that ended", path: "done", want: "logs id-done" },
    { which: "one that waits to be started again", path: "again", want: "logs id-again-0" },
    { which: "the one before", path: "again?previous=true", want: "logs id-again-0" },
  ])("of $which", async ({ path, want }) => {
    const { ask, containers } = aWorld();
    expect(await textOf(await ask(`${logs}/${path}`))).toBe("one\ntwo\n");
    expect(containers.asked).toEqual([want]);
  });

  test.each<[path: string, status: number, text: string]>([
    ["new", 400, 'container "new" in pod "web-node1" is waiting to start: image can\'t be pulled'],
    ["unseen", 400, 'container "unseen" in pod "web-node1" is not available'],
    ["log?previous=1", 400, 'previous terminated container "log" in pod "web-node1" not found'],
    ["log?tailLines=x", 400, ""],
    ["log?follow=maybe", 400, ""],
    ["log?sinceTime=yesterday", 400, ""],
    ["log?tailLines=-1", 422, ""],
    ["log?limitBytes=0", 422, ""],
    ["log?sinceSeconds=0", 422, ""],
    ["log?sinceSeconds=5&sinceTime=2026-11-21T06:00:00Z", 422, ""],
    ["log?stream=Both", 422, ""],
  ])("%s is %d", async (path, status, text) => {
    const { ask, containers } = aWorld();
    const answer = await ask(`${logs}/${path}`);
    expect([statusOf(answer), text && (await textOf(answer))]).toEqual([status, text]);
    expect(containers.asked).toEqual([]);
  });

  test.each<[query: string, want: object]>([
    ["", {}],
    ["follow=true&timestamps=1", { follow: true, timestamps: true }],
    ["tailLines=0&limitBytes=7", { tailLines: 0, limitBytes: 7 }],
    ["tail=5", { tailLines: 5 }],
    ["tail=all", {}],
    ["stream=Stderr", { stdout: false }],
    ["stream=Stdout", { stderr: false }],
    ["sinceSeconds=60", { since: new Date("2026-11-21T06:39:00.500Z") }],
    ["sinceTime=2026-11-21T06:00:00%2B01:00", { since: new Date("2026-11-21T05:00:00Z") }],
  ])("?%s", async (query, want) => {
    const { ask, containers } = aWorld();
    expect(statusOf(await ask(`${logs}/log?${query}`))).toBe(200);
    const all = { follow: false, timestamps: false, stdout: true, stderr: true };
    expect(containers.selection).toEqual({ ...all, ...want });
  });

  test("what the engine refuses is said", async () => {
    const { ask, containers } = aWorld();
    containers.failure = new Error("configured logging driver does not support reading");
    const answer = await ask(`${logs}/log`);
    expect([statusOf(answer), await textOf(answer)]).toEqual([400, containers.failure.message]);
  });

  test.each([
    ["/flagz", "address=0.0.0.0"],
    ["/statusz", "Binary version: 0.1.0"],
  ])("%s is text for people", async (path, line) => {
    const answer = await aWorld().ask(path);
    expect([statusOf(answer), (await textOf(answer)).split("\n")]).toEqual([200, expect.arrayContaining([line])]);
  });

  test.each([
    "/containerLogs/default/web-node1",
    "/containerLogs/default/web-node1/log/x",
    "/containerLogs/default//log/",
    "/containerLogs/other/web-node1/log",
  ])("%s leads to no log", async (path) => expect([301, 404]).toContain(statusOf(await aWorld().ask(path))));

  test("a uid in the path may be that of the mirror pod, except in /portForward", async () => {
    const { ask } = aWorld();
    const upgrade = { upgrade: "websocket", headers: { "Sec-WebSocket-Protocol": "v4.channel.k8s.io" } };
    const path = (root: string, rest: string) => `/${root}/default/web-node1/uid-of-the-mirror-pod${rest}`;
    expect(statusOf(await ask(path("run", "/log?cmd=id"), { method: "POST" }))).toBe(200);
    expect(statusOf(await ask(path("exec", "/log?command=ls&output=1"), upgrade))).toBe(101);
    expect(statusOf(await ask(path("attach", "/log?output=1"), upgrade))).toBe(101);
    const refused = await ask(path("portForward", "?port=80"), upgrade);
    expect([statusOf(refused), await textOf(refused)]).toEqual([404, "pod not found"]);
  });
});

describe("/exec, /attach, /portForward", () => {
  const exec = "/exec/default/web-node1/log?command=ls&output=1";
  const offered = (protocols: string) => ({ upgrade: "websocket", headers: { "Sec-WebSocket-Protocol": protocols } });

  test.each([
    { offer: "v5.channel.k8s.io", want: "v5.channel.k8s.io" },
    { offer: "v9.channel.k8s.io, v4.channel.k8s.io, v5.channel.k8s.io", want: "v4.channel.k8s.io" },
    { offer: "base64.channel.k8s.io", want: "base64.channel.k8s.io" },
    { offer: "", want: undefined },
  ])("of $offer it takes $want", async ({ offer, want }) => {
    const answer = await aWorld().ask(exec, offered(offer));
    if (!("run" in answer)) throw new Error(`answered ${statusOf(answer)}`);
    expect(answer.protocol).toBe(want as string);
  });

  const forward = "/portForward/default/web-node1";
  const v4 = offered("v4.channel.k8s.io");
  const spdyV9 = { upgrade: "spdy/3.1", headers: { "X-Stream-Protocol-Version": "v9.channel.k8s.io" } };
  const ports = Array.from({ length: 33 }, (_, index) => index + 1);

  test.each<[when: string, path: string, asking: Asking, status: number, want: RegExp]>([
    ["the protocol is unknown", exec, offered("chat"), 400, /v5\.channel\.k8s\.io/],
    ["no version of SPDY's streams is known", exec, spdyV9, 400, /v4\.channel\.k8s\.io/],
    ["no sandbox runs", forward, offered("SPDY/3.1+portforward.k8s.io"), 500, /its sandbox does not run/],
    ["another protocol is asked for", exec, { upgrade: "h2c" }, 400, /required/],
    ["no port is named", forward, v4, 400, /"port" is required/],
    ["33 ports are named", `${forward}?port=${ports}`, v4, 400, /at most 32 ports/],
    ["a port is none", `${forward}?port=80,70000`, v4, 400, /"70000" must be 1-65535/],
    ["the container ended", "/attach/default/web-node1/done?output=1", v4, 500, /container not found \("done"\)/],
    ["the method is another", exec, { method: "DELETE" }, 405, /Not Allowed/],
  ])("refused when %s", async (_, path, asking, status, want) => {
    const { ask, containers } = aWorld();
    const answer = await ask(path, asking);
    expect(statusOf(answer)).toBe(status);
    expect(await textOf(answer)).toMatch(want);
    expect(containers.asked).toEqual([]);
  });

  test.each([
    { path: exec, version: "v4.channel.k8s.io, v3.channel.k8s.io" },
    { path: "/attach/default/web-node1/log?output=1", version: "v2.channel.k8s.io" },
  ])("$path over SPDY", async ({ path, version }) => {
    const headers = { "X-Stream-Protocol-Version": version };
    const answer = await aWorld().ask(path, { method: "POST", upgrade: "spdy/3.1", headers });
    expect("takeOver" in answer).toBe(true);
  });

  test("who reaches into a pod is noted, the command is not", async () => {
    const noted: unknown[] = [];
    const logger = { ...new RecordingLogger(), info: (...line: unknown[]) => void noted.push(line) };
    const { ask } = aWorld({ rules: knownOnly, logger });
    await ask("/run/default/web-node1/log?cmd=login+secret", { method: "POST", shown: alice });
    expect(noted).toEqual([
      ["A client reaches into a pod", { request: "run", user: "alice", pod: "default/web-node1", container: "log" }],
    ]);
  });
});
