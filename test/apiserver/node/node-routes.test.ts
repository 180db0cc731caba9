import { expect, test } from "bun:test";
import { nodeRoutes } from "../../../src/apiserver/node/node-routes.ts";
import { textResponse } from "../../../src/server/request-handler.ts";
import { anApiServer } from "../support.ts";

test.each([
  ["node1/proxy/logs/", 200, "/logs/"],
  ["node1/proxy/logs/syslog", 200, "/logs/syslog"],
  ["node1:10250/proxy/metrics", 200, "/metrics"],
  ["https:node1:10250/proxy/pods", 200, "/pods"],
  ["node1:22/proxy/pods", 400, 'nodes "node1:22": only port 10250, of the kubelet, is behind nodes/proxy'],
  ["node2/proxy/pods", 404, 'nodes "node2" not found'],
])("nodes/%s: %i %s", async (path, status, text) => {
  const servers = { respond: ({ path: asked }: { path: string }) => textResponse(200, asked) };
  const extras = nodeRoutes({ api: {} as never, nodeName: "node1", port: 10250, servers });
  const found = await anApiServer({ extras }).get(`/api/v1/nodes/${path}`);
  expect([found.status, found.text]).toEqual([status, expect.stringContaining(text.replaceAll('"', '\\"'))]);
});

test.each([
  ["application/json;as=Table;v=v1;g=meta.k8s.io", 406],
  ["application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 201],
])("a review has no form but its own: Accept %s: %i", async (Accept, status) => {
  const extras = nodeRoutes({ api: {} as never, nodeName: "node1", port: 10250, servers: {} as never });
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const body = { spec: { nonResourceAttributes: { path: "/", verb: "get" } } };
  expect((await anApiServer({ extras }).call({ method: "POST", path, body, headers: { Accept } })).status).toBe(status);
});
