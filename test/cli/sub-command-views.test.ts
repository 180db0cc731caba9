import { afterAll, describe, expect, test } from "bun:test";
import { BrokenPipeError } from "../../src/base/host/write-all.ts";
import { findCommand } from "../../src/cli/command-line.ts";
import { runGet } from "../../src/cli/commands/get.ts";
import { type CommandIo, type CommandRequest, runSubCommand } from "../../src/cli/sub-command.ts";
import { capturedIo } from "./captured-io.ts";
import { ago, has, NOW, running, shown } from "./print/pods.ts";

const PODS = [
  shown({ ready: true, metadata: { labels: { app: "web" } } }),
  shown({ name: "db-node1", namespace: "prod" }),
];
/** A little less than the cores, a little more than the memory. */
const uses = (milliCores: number, mebibytes: number) => ({
  cpu: { time: ago(1), usageNanoCores: milliCores * 1e6 - 600_000 },
  memory: { time: ago(1), workingSetBytes: mebibytes * 2 ** 20 + 600_000 },
});

/** The answers of a kubelet. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  "/pods": { kind: "PodList", apiVersion: "v1", metadata: {}, items: PODS },
  "/api/v1/events": {
    kind: "EventList",
    items: [
      {
        metadata: { name: "e1", namespace: "default", uid: "e1", resourceVersion: "1" },
        involvedObject: { kind: "Pod", name: "web-node1", namespace: "default", uid: PODS[0]!.metadata.uid },
        reason: "Started",
        message: "Started container app",
        source: { component: "kubelet", host: "node1" },
        firstTimestamp: ago(90),
        lastTimestamp: ago(9),
        count: 4,
        type: "Normal",
      },
    ],
  },
  "/node": {
    kind: "Node",
    metadata: { name: "node1" },
    spec: {},
    status: {
      allocatable: { cpu: "2", memory: "1Gi" },
      capacity: { cpu: "4", memory: "2Gi" },
      conditions: [{ type: "Ready", status: "True" }],
      nodeInfo: { kubeletVersion: "v0.1.0" },
    },
  },
  "/stats/summary": {
    node: { nodeName: "node1", ...uses(500, 500) },
    pods: PODS.map(({ metadata: { name, namespace, uid } }, i) => ({
      podRef: { name, namespace, uid },
      ...uses(i + 1, 2 - i),
      containers: [{ name: "app", ...uses(i + 1, 2 - i) }],
    })),
  },
};

/** The same pods, the first of which no configured source describes. */
const [WEB] = PODS;
const NOT_LIVE = { type: "ManifestLive", status: "False", reason: "Unclaimed" };
const MESSAGE = 'its source /gone is not configured; run "x"';
const TYPES: Readonly<Record<string, object>> = { Infeasible: { type: "PodResizePending", status: "True" } };
const notLive = (reason: string) => ({
  ...WEB!,
  status: {
    ...WEB!.status,
    conditions: [...(WEB!.status?.conditions ?? []), { ...NOT_LIVE, ...TYPES[reason], reason, message: MESSAGE }],
  },
});
/** Answers by path; another path is 404. */
function serve(answers: Readonly<Record<string, unknown>>) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const answer = answers[new URL(url).pathname];
      return answer ? Response.json(answer) : new Response("404: Page Not Found", { status: 404 });
    },
  });
  afterAll(() => server.stop(true));
  return server;
}

const server = serve(ANSWERS);
const notLiveServers = Object.fromEntries(
  ["Unclaimed", "EditPending", "Infeasible", "InvalidManifest"].map((reason) => [
    reason,
    serve({ "/pods": { items: [notLive(reason), PODS[1]] } }),
  ]),
);
/** Nothing was measured yet. */
const newServer = serve({
  ...ANSWERS,
  "/stats/summary": { node: { nodeName: "node1" }, pods: [{ podRef: { ...WEB!.metadata }, cpu: { time: ago(0) } }] },
});

async function run(line: string, port: number | undefined = server.port) {
  const [name = "", ...argv] = line.split(" ");
  const io = capturedIo(() => NOW);
  const code = await runSubCommand(findCommand(name)!, [...argv, `--server=${port}`], io);
  return { code, out: io.out, err: io.err };
}

test.each([
  ["Unclaimed", `pod "web-node1" is unclaimed: ${MESSAGE}\n`],
  ["EditPending", `pod "web-node1": ${MESSAGE}\n`],
  [
    "Infeasible",
    `pod "web-node1": its new resources are not possible: ${MESSAGE}. Fix: write requests that the node has: kubelet-ts describe node shows its capacity\n`,
  ],
  ["InvalidManifest", ""],
])(
  "a pod whose newest manifest is not in force, %s, is named below the table, and not in output for programs",
  async (reason, note) => {
    const { port } = notLiveServers[reason]!;
    const { out, err } = await run("get pods", port);
    expect(out).toContain("web-node1");
    expect(err).toBe(note);
    expect((await run("get pods -o name", port)).err).toBe("");
  },
);

test.each(["get pods", "get pods web-node1", "explain web-node1"])(
  "%s of a kubelet whose engine does not answer",
  async (line) => {
    const why = "No Docker engine at unix:///x.sock";
    const { port } = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) =>
        new URL(url).pathname === "/healthz"
          ? new Response(`[+]ping ok\n[-]syncloop failed: ${why}\nhealthz check failed`, { status: 500 })
          : Response.json({ items: url.endsWith("events") ? [] : [WEB] }),
    });
    const err = `pods may not be as shown: ${why}\n`;
    expect(await run(line, port)).toMatchObject({ out: expect.stringContaining("web-node1"), err });
  },
);

test("a pod that was Ready until an edit has a line with the way back", async () => {
  const waiting = { waiting: { reason: "CrashLoopBackOff" } };
  const conditions = [{ type: "Ready", status: "False", lastTransitionTime: ago(60) } as const];
  const pod = shown({ mains: [has("app", waiting)], status: { conditions: [...conditions] } });
  const [event] = (ANSWERS["/api/v1/events"] as { items: { lastTimestamp: string }[] }).items;
  const edit = { ...event, message: "Container app definition changed, will be restarted", lastTimestamp: ago(61) };
  const { port } = serve({ "/pods": { items: [pod] }, "/api/v1/events": { items: [edit] } });
  const way = "undo the edit to go back; kubelet-ts explain pod web-node1 says why";
  expect((await run("get pods", port)).err).toBe(`pod "web-node1" was Ready until its edit of ${ago(61)}: ${way}\n`);
});

/** Command lines, each with what it prints below it. */
const PRINTED = `
$ get pods
NAMESPACE   NAME        READY   STATUS    RESTARTS   AGE
default     web-node1   1/1     Running   0          5m32s
prod        db-node1    1/1     Running   0          5m32s
$ get pods -n prod
NAME       READY   STATUS    RESTARTS   AGE
db-node1   1/1     Running   0          5m32s
$ get po web -n default -A
NAMESPACE   NAME        READY   STATUS    RESTARTS   AGE
default     web-node1   1/1     Running   0          5m32s
$ get pods web -o wide
NAME        READY   STATUS    RESTARTS   AGE     IP           NODE    NOMINATED NODE   READINESS GATES
web-node1   1/1     Running   0          5m32s   172.17.0.2   node1   <none>           <none>
$ get pods db web --no-headers -o name
pod/db-node1
pod/web-node1
$ get pod/db -o name
pod/db-node1
$ get pods -l app=web -o name
pod/web-node1
$ get node --no-headers
node1   Ready   <none>   <unknown>   v0.1.0
$ get events
LAST SEEN          TYPE     REASON    OBJECT          MESSAGE
9s (x4 over 90s)   Normal   Started   pod/web-node1   Started container app
$ top pods
NAMESPACE   NAME        CPU(cores)   MEMORY(bytes)
default     web-node1   1m           2Mi
prod        db-node1    2m           1Mi
$ top pod db --containers --no-headers -n prod
db-node1   app   2m    1Mi
$ top pods --sort-by=cpu --sum --no-headers
prod      db-node1    2m    1Mi
default   web-node1   1m    2Mi
                      2m    4Mi
$ top pods --sort-by=memory --no-headers -n default
web-node1   1m    2Mi
$ top pods --sort-by=memory --no-headers --containers
default   web-node1   app   1m    2Mi
prod      db-node1    app   2m    1Mi
$ top node --no-headers
node1   500m   25%   500Mi   48%
$ top node --no-headers --show-capacity
node1   500m   12%   500Mi   24%
`;

describe("what is printed", () => {
  test.each(PRINTED.split("\n$ ").slice(1))("%s", async (part) => {
    const [line = "", ...out] = part.trimEnd().split("\n");
    expect(await run(line)).toEqual({ code: 0, out: `${out.join("\n")}\n`, err: "" });
  });

  test("describe shows the events of its pod only", async () => {
    const { out } = await run("describe pod web");
    expect(out).toContain("Started  9s (x4 over 90s)  kubelet  Started container app");
    expect((await run("describe pod db")).out).toMatch(/^Events: +<none>$/m);
    expect((await run("describe pods")).out.match(/^Name: /gm)).toHaveLength(2);
  });

  test("describe node", async () => {
    const { code, out } = await run("describe node");
    expect(code).toBe(0);
    expect(out).toMatch(/^Name: +node1$/m);
    expect(out).toMatch(/^Events: +<none>$/m);
  });

  test("usage that is not measured yet is unknown", async () => {
    expect((await run("top pods --no-headers", newServer.port)).out).toBe("web-node1   <unknown>   <unknown>\n");
    const unknown = Array<string>(4).fill("<unknown>").join("   ");
    expect((await run("top node --no-headers", newServer.port)).out).toBe(`node1   ${unknown}\n`);
  });

  test("help", async () => {
    expect(await run("get --help")).toMatchObject({ code: 0, out: expect.stringContaining("kubelet-ts get") });
  });
});

describe("exit codes", () => {
  test.each([
    ["get pods absent", 1, 'pod "absent" not found'],
    ["get node other", 1, 'node "other" not found; there are node1'],
    ["describe pod absent", 1, 'pod "absent" not found'],
    ["logs absent", 1, 'pod "absent" not found'],
    ["logs web -c x", 1, 'container "x" is not in pod "web-node1"'],
    ["logs web -p", 1, "no previous one"],
    ["top pods absent", 1, 'pod "absent" not found'],
    ["get", 2, "pods, nodes, events"],
    ["get pods node/x", 2, "--server"],
    ["get pods -o jsno", 2, "did you mean json?"],
    ["get pods -l ==", 2, "--selector"],
    ["describe node other", 1, 'this one is "node1"'],
    ["top node other", 1, 'this one is "node1"'],
    ["get pods web -l app=web", 2, "names or --selector"],
    ["describe pods web -l app=web", 2, "names or --selector"],
    ["top pods web -l app=web", 2, "names or --selector"],
    ["describe events", 2, "--server"],
    ["logs", 2, "name a pod"],
    ["logs a b c", 2, '"c"'],
    ["logs web --tail=few", 2, "--tail"],
    ["logs web --tail=1 --stream=Stderr", 2, "--stream"],
    ["logs web --since=soon", 2, "--since"],
    ["logs web --since=5", 2, "write 5s"],
    ["logs web --since-time=noon", 2, "--since-time"],
    ["logs web app -c app", 2, "twice"],
    ["logs web app --all-containers", 2, "--all-containers"],
    ["logs web --docker-endpoint=ftp://x", 2, "ftp"],
    ["top pods --sort-by=disk", 2, "--sort-by"],
  ])("%s: %d", async (line, code, message) => {
    expect(await run(line)).toMatchObject({ code, err: expect.stringContaining(message) });
  });

  test("of several names one does not exist", async () => {
    const { code, out, err } = await run("get pods web absent -o name");
    expect([code, out]).toEqual([1, "pod/web-node1\n"]);
    expect(err).toContain("absent");
  });

  test("an empty list is not a failure", async () => {
    const err = "No resources found in empty namespace; they are in default, prod\n";
    const near = "No resources found in pord namespace; did you mean prod?\n";
    expect(await run("get pods -n pord")).toEqual({ code: 0, out: "", err: near });
    expect(await run("get events -n prod")).toMatchObject({
      err: "No resources found in prod namespace; they are in default\n",
    });
    expect(await run("get pods -n empty")).toEqual({ code: 0, out: "", err });
    expect(await run("get pods -l app=none")).toEqual({ code: 0, out: "", err: "No resources found\n" });
    expect(JSON.parse((await run("get pods -n empty -o json")).out)).toMatchObject({ kind: "List", items: [] });
  });

  test("no kubelet answers", async () => {
    const closed = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const { port } = closed;
    await closed.stop(true);
    const err = expect.stringContaining(`127.0.0.1:${port}: nothing listens there`);
    expect(await run("get pods", port)).toMatchObject({ code: 1, err });
  });

  test("the server is not a kubelet", async () => {
    const other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("<html>") });
    expect(await run("get pods", other.port)).toMatchObject({ code: 1, err: expect.stringContaining("JSON") });
    await other.stop(true);
  });

  test("the reader of the output has closed the pipe", async () => {
    const stdout = () => {
      throw new BrokenPipeError();
    };
    const io = { ...capturedIo(), stdout };
    expect(await runSubCommand(findCommand("get")!, ["pods", `-s${server.port}`], io)).toBe(141);
  });
});

/** Answers `/pods` by turns with each list, the last one over and over; ends the watch when it has been asked often enough. */
async function watched(lists: readonly object[][], argv: readonly string[] = []): Promise<string> {
  const stop = new AbortController();
  let asked = 0;
  const turns = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ items: lists[Math.min(asked++, lists.length - 1)] }),
  });
  const captured = capturedIo(() => NOW);
  const io: CommandIo = {
    ...captured,
    stdout: (data) => {
      captured.stdout(data);
      if (asked >= lists.length) stop.abort();
    },
  };
  const request: CommandRequest = {
    command: findCommand("get")!,
    rawArgs: [],
    values: () => [],
    positionals: ["pods"],
    value: (flag) => (flag === "server" ? String(turns.port) : undefined),
    isOn: (flag) => flag === "watch" || flag === "headers" || argv.includes(flag),
  };
  await runGet(request, io, stop.signal);
  await turns.stop(true);
  return captured.out;
}

test("a watch shows new, changed and deleted pods", async () => {
  const starting = shown({ mains: [has("app", { waiting: { reason: "ContainerCreating" } })] });
  const up = shown({ mains: [has("app", running)] });
  const other = shown({ name: "other-node1" });
  const out = await watched([[starting], [up, other], [other]]);
  expect(out.split("\n").map((line) => line.split(/ +/).slice(0, 3).join(" "))).toEqual([
    "NAME READY STATUS",
    "web-node1 0/1 ContainerCreating",
    "web-node1 1/1 Running",
    "other-node1 1/1 Running",
    "web-node1 1/1 Deleted",
    "",
  ]);
});

test("an empty list of a kubelet that has just started deletes no pod", async () => {
  const up = shown({ mains: [has("app", running)] });
  const later = shown({ mains: [has("app", { waiting: { reason: "CrashLoopBackOff" } })] });
  const out = await watched([[up], [], [], [later]]);
  expect(out).not.toContain("Deleted");
  expect(out).toContain("CrashLoopBackOff");
});
