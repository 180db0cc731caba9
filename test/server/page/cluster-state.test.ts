import { expect, test } from "bun:test";
import { toClusterState } from "../../../src/server/page/cluster-state.ts";

const NOW = Date.parse("2026-11-22T12:00:00Z");
const failure = (secondsAgo: number, reason = "ECONNREFUSED") => ({
  reason,
  since: new Date(NOW - secondsAgo * 1000),
});

test.each([
  { when: "it answers", outage: undefined, refusal: undefined, shown: null },
  { when: "one request has failed a moment ago", outage: failure(4), refusal: failure(4), shown: null },
  {
    when: "it has not answered for a minute",
    outage: failure(60),
    refusal: failure(50, "GET /api/v1/pods: ECONNREFUSED"),
    shown: { isAnswering: false, reason: "ECONNREFUSED", since: NOW - 60_000 },
  },
  {
    when: "it answers, but refuses this node",
    outage: undefined,
    refusal: failure(30, "GET /api/v1/pods answered 401: Unauthorized"),
    shown: { isAnswering: true, reason: "GET /api/v1/pods answered 401: Unauthorized", since: NOW - 30_000 },
  },
])("the API server as the page shows it when $when", ({ outage, refusal, shown }) => {
  expect(toClusterState({ server: "https://api", outage, refusal }, NOW)).toEqual({
    server: "https://api",
    failure: shown,
  });
});
