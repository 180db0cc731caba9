import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import type { Clock } from "../../../src/base/model/clock.ts";
import { ClusterClient } from "../../../src/cluster/client/cluster-client.ts";
import { MetadataSchema, type ObjectOfApi, Reflector } from "../../../src/cluster/client/reflector.ts";
import { cleanUps } from "../../support/clean-ups.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { httpServers } from "../../support/test-servers.ts";
import { until } from "../../support/until.ts";

const atTestEnd = cleanUps();
const httpServer = httpServers();
/** Waits before another attempt. Unit: milliseconds. */
let delays: number[] = [];

/** Time passes at once where it is waited for. */
const clock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: async (_, signal) => signal?.throwIfAborted(),
  schedule: (ms, callback) => {
    // No event comes after a watch was open for a while.
    if (ms === 2_000) return () => {};
    delays.push(ms);
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  },
};

interface Answers {
  list: (query: URLSearchParams, count: number) => Response;
  watch: (query: URLSearchParams, count: number) => Response;
  kindOf?: (object: ObjectOfApi, isKnown: boolean) => "new" | "begun" | "ended";
}

/** A reflector of a server that answers like this; the queries it was asked. */
function reflect({ list, watch, kindOf }: Answers) {
  const logger = new RecordingLogger();
  delays = [];
  const lists: URLSearchParams[] = [];
  const watches: URLSearchParams[] = [];
  const server = httpServer((request) => {
    const query = new URL(request.url).searchParams;
    const isWatch = query.get("watch") === "true";
    (isWatch ? watches : lists).push(query);
    return isWatch ? watch(query, watches.length) : list(query, lists.length);
  });
  const settings = { server: `http://127.0.0.1:${server.port}`, tls: {}, headers: {} };
  const client = new ClusterClient({
    credentials: { current: async () => settings, invalidate: () => {} },
    clock,
    rate: { perSecond: 0, burst: 0 },
    userAgent: "test",
    logger,
  });
  const errors: (string | undefined)[] = [];
  const reflector = new Reflector<ObjectOfApi>({
    client,
    clock,
    schema: v.looseObject({ metadata: MetadataSchema }),
    ...(kindOf && { kindOf }),
    path: "/api/v1/pods",
    onChange: () => {},
    onHealth: (error) => errors.push(error?.message),
    random: () => 1,
  });
  atTestEnd(() => reflector.stop());
  reflector.start();
  return { reflector, client, server, lists, watches, errors, logger };
}

const object = (name: string, resourceVersion: string) => ({ metadata: { namespace: "d", name, resourceVersion } });
const listOf = (version: string, ...items: object[]) =>
  Response.json({ metadata: { resourceVersion: version }, items });
const line = (type: string, it: object) => `${JSON.stringify({ type, object: it })}\n`;
/** A watch that says this and continues without a word. */
const open = (...lines: string[]) =>
  new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from(`${lines.join("")}\n`)) }));
const fails = (status = 500, headers = {}) => new Response("boom", { status, headers });
const gone = () => {
  const message = "too old resource version";
  return new Response(line("ERROR", { kind: "Status", code: 410, reason: "Expired", message, metadata: {} }));
};
const bookmark = () => new Response(line("BOOKMARK", object("", "9")));
const names = (reflector: Reflector<ObjectOfApi>) => reflector.list().map(({ metadata }) => metadata.name);

describe("a list and a watch", () => {
  test("objects come, change and go", async () => {
    const { reflector, watches } = reflect({
      list: () => listOf("5", object("a", "3"), object("b", "4")),
      watch: () => open(line("ADDED", object("c", "6")), line("DELETED", object("a", "7"))),
    });
    await until("the events are applied", () => names(reflector).join() === "b,c");
    expect(watches[0]?.get("resourceVersion")).toBe("5");
  });

  test("an API server that dies within a watch is named as the cause", async () => {
    const { server, client, reflector } = reflect({
      list: () => listOf("5"),
      watch: () => open(line("ADDED", object("a", "6"))),
    });
    const reasons: string[] = [];
    const { reachability } = client;
    reachability.noteFailure = (reason) => void reasons.push(reason);
    await until("the watch is open", () => names(reflector).length > 0);
    void server.stop(true);
    await until("it is reported", () => reasons.length > 0);
    expect(reasons[0]).toEndWith(": the API server closed the connection");
  });

  test("objects are kept without their managedFields", async () => {
    const managed = (name: string, version: string) => {
      const it = object(name, version);
      return { ...it, metadata: { ...it.metadata, managedFields: [{ manager: "kubelet" }] } };
    };
    const { reflector } = reflect({
      list: () => listOf("5", managed("a", "3")),
      watch: () => open(line("ADDED", managed("b", "6"))),
    });
    await until("the event is applied", () => names(reflector).join() === "a,b");
    expect(reflector.list()).toEqual([object("a", "3"), object("b", "6")]);
  });

  test.each<[what: string, bad: unknown, told: string]>([
    ["null", null, "an object without a name is left out: the whole is missing"],
    ["a number", 5, "the whole"],
    ["one without metadata", {}, "metadata is missing"],
    ["one whose name is a path", { metadata: { name: "../../x" } }, 'object "../../x" is left out: metadata.name'],
    ["one whose name is no text", { metadata: { name: ["s3cret"] } }, "metadata.name is missing or has no such value"],
  ])("%s in a list or an event is left out and told, others are taken", async (_, bad, told) => {
    const { reflector, logger, errors } = reflect({
      list: () => listOf("5", object("a", "3"), bad as object, object("b", "4")),
      watch: () => open(line("ADDED", bad as object), `${JSON.stringify(bad)}\n`, line("ADDED", object("c", "6"))),
    });
    await until("the events are applied", () => names(reflector).join() === "a,b,c");
    expect(logger.lines[0]).toContain(told);
    expect(logger.lines.join()).not.toContain("s3cret");
    expect(errors).toEqual([]);
  });

  test("a list of nothing but what cannot be read, and one that is none, fail; objects stay", async () => {
    const { reflector, errors } = reflect({
      list: (_, count) =>
        count === 1
          ? listOf("5", object("a", "3"))
          : count === 2
            ? listOf("6", ...Array(200).fill({}))
            : Response.json({}),
      watch: gone,
    });
    await until("several lists", () => errors.length > 5);
    expect(errors[1]).toContain("more than 100 objects cannot be read");
    expect(errors[2]).toContain("items");
    expect(names(reflector)).toEqual(["a"]);
  });

  test("only 110 new objects are kept; a list soon after brings the others, next to those that are known", async () => {
    const many = (count: number, name: string) => Array.from({ length: count }, (_, at) => object(`${name}${at}`, "3"));
    const { reflector, lists, watches } = reflect({
      list: (_, count) => listOf("5", ...(count > 1 ? many(9, "later") : []), ...many(count > 1 ? 111 : 110, "n")),
      watch: (_, count) => open(...(count === 1 ? [line("ADDED", object("n110", "6"))] : [])),
      kindOf: (_, isKnown) => (isKnown ? "begun" : "new"),
    });
    await until("the second list", () => lists.length === 2 && reflector.list().length === 120);
    expect([reflector.waiting, watches[0]?.get("timeoutSeconds")]).toEqual([0, "600"]);
  });

  test.each<[what: string, first: () => Response, version: string, delays: number[]]>([
    ["that ended at once, after an event,", bookmark, "9", [800]],
    [
      "that was answered with 429, not before the time it names,",
      () => fails(429, { "Retry-After": "7" }),
      "5",
      [7_000],
    ],
    ["that a load balancer answered with 503", () => fails(503), "5", [800]],
  ])("a watch %s continues from the last version, without a list", async (_, first, version, waits) => {
    const { lists, watches } = reflect({
      list: () => listOf("5"),
      watch: (_, count) => (count === 1 ? first() : open()),
    });
    await until("it watches again", () => watches.length === 2);
    expect(watches[1]?.get("resourceVersion")).toBe(version);
    expect(delays).toEqual(waits);
    expect(lists).toHaveLength(1);
  });

  test("410 as the first event leads to a list that is not from a cache", async () => {
    const { reflector, lists, watches } = reflect({
      list: (_, count) => listOf(String(count * 10), object(`n${count}`, "1")),
      watch: (_, count) => (count === 1 ? gone() : open()),
    });
    await until("it watches again", () => watches.length === 2);
    expect(lists.map((query) => query.get("resourceVersion"))).toEqual(["0", null]);
    expect(watches[1]?.get("resourceVersion")).toBe("20");
    expect(names(reflector)).toEqual(["n2"]);
  });

  test("objects stay while the server refuses, and health is reported", async () => {
    const { reflector, watches, errors } = reflect({
      list: (_, count) => (count < 3 ? listOf("5", object("a", "3")) : fails()),
      watch: () => fails(),
    });
    await until("several attempts", () => watches.length >= 2);
    expect(names(reflector)).toEqual(["a"]);
    expect(errors[0]).toContain("answered 500");
  });

  const GROWING = [800, 1_600, 3_200, 6_400, 12_800];
  test.each<[what: string, watch: (count: number) => Response, delays: number[], lists: number]>([
    ["grow although each list between them succeeds", () => fails(), [...GROWING, 25_600, 30_000], 0],
    [
      "grow no more after an event",
      (count) => (count === 3 ? new Response(line("ADDED", object("a", "6"))) : fails()),
      [800, 1_600, 800, 1_600],
      0,
    ],
    [
      "that an absence had grown to do not follow on the 410 of a server that is back",
      (count) => (count < 6 ? fails(503) : count === 6 ? gone() : open()),
      [...GROWING, 800],
      2,
    ],
  ])("delays of watches that fail %s", async (_, watch, waits, listed) => {
    const { lists, watches } = reflect({ list: () => listOf("5"), watch: (_, count) => watch(count) });
    await until("several attempts", () => watches.length > waits.length);
    expect(delays.slice(0, waits.length)).toEqual(waits);
    if (listed > 0) expect(lists).toHaveLength(listed);
  });

  test("watches that are reset begin again from where they were", async () => {
    const { client, watches, lists, errors } = reflect({
      list: () => listOf("5"),
      watch: (_, count) => open(...(count === 1 ? [line("ADDED", object("a", "8"))] : [])),
    });
    await until("the first watch is open", () => watches.length === 1);
    client.resetWatches();
    await until("the second one is, too", () => watches.length === 2);
    expect(delays).toEqual([]);
    expect(lists).toHaveLength(1);
    expect(errors).toEqual([]);
  });
});
