import { describe, expect, test } from "bun:test";
import type { CoreEvent, CoreEventList } from "../../src/base/api/event.ts";
import { routeReadOnly } from "../../src/server/read-only-routes.ts";
import { layTree } from "../stats/lay-tree.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { aRequest, aServerWorld } from "./a-context.ts";

const tree = layTree("cgroup-v2", tempDirs()());

const anEvent = (name: string, over: Partial<CoreEvent> = {}, namespace = "default"): CoreEvent => ({
  apiVersion: "v1",
  kind: "Event",
  metadata: {
    name: `${name}.1`,
    namespace,
    uid: `${name}.1`,
    resourceVersion: "1",
    creationTimestamp: "2026-11-21T06:40:00Z",
  },
  involvedObject: { kind: "Pod", namespace, name, uid: `u-${name}`, apiVersion: "v1" },
  reason: "Started",
  message: "Started container app",
  source: { component: "kubelet", host: "node1" },
  firstTimestamp: "2026-11-21T06:40:00Z",
  lastTimestamp: "2026-11-21T06:40:00Z",
  count: 1,
  type: "Normal",
  eventTime: null,
  reportingComponent: "kubelet",
  reportingInstance: "node1",
  ...over,
});

const EVENTS = [
  anEvent("a"),
  anEvent("b", { type: "Warning", reason: "BackOff" }),
  anEvent("a", { reason: "Pulled" }, "kube-system"),
];

async function ask(target: string, headers: Record<string, string> = {}) {
  const { context, view } = aServerWorld(tree);
  view.happened = EVENTS;
  return await routeReadOnly(aRequest(target, { headers }), context);
}

const named = (body: unknown) =>
  (JSON.parse(String(body)) as CoreEventList).items.map(({ metadata, reason }) => `${metadata.namespace}/${reason}`);

describe("/api/v1/events", () => {
  test("is an EventList in the order of the view", async () => {
    const { status, headers, body } = await ask("/api/v1/events");
    expect(status).toBe(200);
    expect(headers["Content-Type"]).toBe("application/json");
    const list = JSON.parse(String(body)) as CoreEventList;
    expect(list).toEqual({ kind: "EventList", apiVersion: "v1", metadata: { resourceVersion: "3" }, items: EVENTS });
  });

  test.each([
    ["/api/v1/namespaces/kube-system/events", ["kube-system/Pulled"]],
    ["/api/v1/namespaces/nowhere/events", []],
    ["/api/v1/events?fieldSelector=involvedObject.name%3Da", ["default/Started", "kube-system/Pulled"]],
    ["/api/v1/events?fieldSelector=involvedObject.name=a,involvedObject.namespace==default", ["default/Started"]],
    ["/api/v1/events?fieldSelector=type!=Normal", ["default/BackOff"]],
    [
      "/api/v1/events?fieldSelector=involvedObject.fieldPath=",
      ["default/Started", "default/BackOff", "kube-system/Pulled"],
    ],
  ])("%s", async (path, want) => {
    expect(named((await ask(path)).body)).toEqual(want);
  });

  test.each([
    ["/api/v1/events?fieldSelector=spec.nodeName=x", "spec.nodeName"],
    ["/api/v1/events?fieldSelector=__proto__=x", "__proto__"],
    ["/api/v1/events?fieldSelector=type", "'type'"],
  ])("%s is refused with the reason", async (path, message) => {
    const { status, body } = await ask(path);
    expect(status).toBe(400);
    expect(String(body)).toContain(message);
  });

  test("an unchanged list is 304", async () => {
    const { headers } = await ask("/api/v1/events");
    const again = await ask("/api/v1/events", { "If-None-Match": headers.ETag! });
    expect([again.status, again.body]).toEqual([304, ""]);
    const other = await ask("/api/v1/events?fieldSelector=type=Warning", { "If-None-Match": headers.ETag! });
    expect(other.status).toBe(200);
  });

  test.each(["/api", "/api/v1", "/api/v1/pods", "/api/v1/namespaces/default"])("%s is 404", async (path) => {
    expect((await ask(path)).status).toBe(404);
  });
});
