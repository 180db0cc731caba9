import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestNode } from "../../test/support/test-node.ts";
import type { Attack, Figure } from "./attack.ts";

type Answer = (url: URL, node: TestNode) => Response | undefined;

const SECONDS = 25;
const PODS = "/api/v1/pods";
const isWatch = (url: URL) => url.searchParams.has("watch");
const listOf = (items: readonly unknown[], resourceVersion = "1") => ({ metadata: { resourceVersion }, items });
const lines = (...events: unknown[]) => new Response(events.map((event) => `${JSON.stringify(event)}\n`).join(""));

const endless = (head: string, chunk: string) => {
  let next = head;
  const pull = async (controller: ReadableStreamDefaultController) => {
    await Bun.sleep(1);
    controller.enqueue(Buffer.from(next));
    next = chunk;
  };
  return new Response(new ReadableStream({ pull }));
};

/** A pod that fits no machine. */
const aPod = (index: number, node: TestNode) => ({
  metadata: { name: `p${index}`, namespace: "default", uid: `u-${index}`, resourceVersion: String(index + 2) },
  spec: {
    nodeName: node.name,
    containers: [{ name: "app", image: "busybox:test", resources: { requests: { cpu: "1000" } } }],
  },
  status: { phase: "Pending" },
});

async function slowestHealthz({ healthzPort }: TestNode): Promise<Figure> {
  const endMs = performance.now() + SECONDS * 1_000;
  let slowest = 0;
  while (performance.now() < endMs) {
    const startMs = performance.now();
    const signal = AbortSignal.timeout(10_000);
    await fetch(`http://127.0.0.1:${healthzPort}/healthz`, { signal }).catch(() => {});
    slowest = Math.max(slowest, performance.now() - startMs);
    await Bun.sleep(100);
  }
  return { what: "slowest answer of /healthz", unit: "ms", value: slowest, atMost: 1_000 };
}

/** An attack of an API server that first answers well, with no objects. @param answer undefined: it answers well */
function hostile(name: string, about: string, answer: Answer): Attack {
  let isHostile = false;
  let server: ReturnType<typeof Bun.serve> | undefined;
  const watches = new Set<ReadableStreamDefaultController>();
  const answerWell = async (request: Request, url: URL, node: TestNode) => {
    if (isWatch(url)) {
      const start = (controller: ReadableStreamDefaultController) => {
        controller.enqueue("\n");
        watches.add(controller);
      };
      return new Response(new ReadableStream({ start }));
    }
    const body = request.method === "GET" ? undefined : ((await request.json()) as { status: object });
    const index = /\/pods\/p(\d+)\/status$/.exec(url.pathname)?.[1];
    if (index !== undefined && body) {
      const pod = { ...aPod(Number(index), node), status: body.status };
      pod.metadata.resourceVersion = String(Number(pod.metadata.resourceVersion) + 1_000_000);
      for (const watch of watches) watch.enqueue(`${JSON.stringify({ type: "MODIFIED", object: pod })}\n`);
      return Response.json(pod);
    }
    if (body) return Response.json(body);
    if (url.pathname.split("/").length <= 4) return Response.json(listOf([]));
    return Response.json({ kind: "Status", code: 404, reason: "NotFound" }, { status: 404 });
  };
  return {
    name,
    about,
    maxGrowthMegabytes: 64,
    flags: (node) => {
      isHostile = false;
      server = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        idleTimeout: 0,
        fetch: (request) => {
          const url = new URL(request.url);
          const own = isHostile && request.method === "GET" ? answer(url, node) : undefined;
          return own ?? answerWell(request, url, node);
        },
      });
      const file = join(node.directory, "kubeconfig");
      const cluster = { server: `http://127.0.0.1:${server.port}` };
      const config = {
        "current-context": "a",
        clusters: [{ name: "a", cluster }],
        users: [{ name: "a", user: {} }],
        contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
      };
      writeFileSync(file, JSON.stringify(config));
      return [`--kubeconfig=${file}`];
    },
    run: async ({ node }) => {
      isHostile = true;
      for (const watch of watches) watch.close();
      watches.clear();
      const figure = await slowestHealthz(node);
      void server?.stop(true);
      return [figure];
    },
  };
}

const gone = () => lines({ type: "ERROR", object: { code: 410, reason: "Expired" } });
let bytes: Uint8Array<ArrayBuffer> | undefined;
function bomb(): Response {
  bytes ??= Bun.gzipSync(new Uint8Array(1e9));
  return new Response(bytes, { headers: { "Content-Encoding": "gzip" } });
}
let manyPods: string | undefined;
const BAD = [
  null,
  5,
  [],
  {},
  { metadata: { name: "x", namespace: "default", uid: "q" } },
  { metadata: { name: "../x", namespace: {}, uid: 7 }, spec: { containers: "x" } },
  {
    metadata: { name: "y", namespace: "default", uid: "q" },
    spec: { containers: [null] },
    status: { conditions: [0] },
  },
];

/** Attacks by the API server of a cluster. */
export const clusterAttacks: readonly Attack[] = [
  hostile("api-gzip", "lists of 1 GB of zeros, compressed", (url) => (isWatch(url) ? gone() : bomb())),
  hostile("api-objects", "objects of lists and events that are none", (url) =>
    isWatch(url) ? lines(...BAD, ...BAD.map((object) => ({ type: "ADDED", object }))) : Response.json(listOf(BAD)),
  ),
  hostile("api-endless-lists", "lists without end", (url) =>
    isWatch(url) ? gone() : endless('{"metadata":{},"items":[', "{},".repeat(20_000)),
  ),
  hostile("api-many-pods", "100,000 pods of this node, none of which fits", (url, node) => {
    if (isWatch(url) && url.pathname === PODS && url.searchParams.get("resourceVersion") === "1") return gone();
    if (isWatch(url) || url.pathname !== PODS) return undefined;
    manyPods ??= JSON.stringify(
      listOf(
        Array.from({ length: 100_000 }, (_, index) => aPod(index, node)),
        "2",
      ),
    );
    return new Response(manyPods);
  }),
];
