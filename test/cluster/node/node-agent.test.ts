import { afterEach, expect, test } from "bun:test";
import type { Condition } from "../../../src/base/api/meta.ts";
import { ApiStatusError } from "../../../src/cluster/client/api-error.ts";
import type { ApiNode } from "../../../src/cluster/node/node-agent.ts";
import { NodeAgent } from "../../../src/cluster/node/node-agent.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { registrationSettings } from "./registration-settings.ts";

const LONG_AGO = "2026-01-01T00:00:00Z";
const NODES = "/api/v1/nodes";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n";
const condition = (type: string, status: string, lastTransitionTime: string): Condition => ({
  type,
  status,
  lastTransitionTime,
  lastHeartbeatTime: lastTransitionTime,
  reason: "r",
  message: "m",
});
const withReady = (status: string, since: string): ApiNode => ({
  metadata: { name: "n", uid: "u" },
  spec: {},
  status: { conditions: [condition("DiskPressure", "False", since), condition("Ready", status, since)] },
});

let stop = new AbortController();
afterEach(() => {
  stop.abort();
  stop = new AbortController();
});

/** An agent that starts again for a Node that is Ready, and whose list is never answered. */
function restarted({ registerNode = false } = {}) {
  const clock = new FakeClock();
  const api = new FakeApi(clock);
  const heartbeats = new FakeApi(clock);
  const now = () => `${clock.now().toISOString().slice(0, 19)}Z`;
  const patches: { status: { conditions: Condition[] } }[] = [];
  const events: string[] = [];
  const logger = new RecordingLogger();
  let isReady = false;
  api.set(NODES, () => new Promise(() => {}));
  api.set(`${NODES}/n`, withReady("True", LONG_AGO));
  heartbeats.set(LEASE, { spec: {} });
  heartbeats.set(`${NODES}/n/status`, ({ body }) => {
    patches.push(body as (typeof patches)[number]);
    return { ...withReady(isReady ? "True" : "False", now()) };
  });
  const agent = new NodeAgent({
    client: Object.assign(api, { resetWatches: () => {} }) as never,
    heartbeats,
    clock,
    logger,
    nodeName: "n",
    settings: {
      ...registrationSettings(),
      registerNode,
      nodeStatusUpdateFrequencyMs: 10_000,
      nodeStatusReportFrequencyMs: 300_000,
      nodeLeaseDurationSeconds: 40,
    },
    node: {
      readNode: async () => {
        const node = withReady(isReady ? "True" : "False", now());
        return {
          ...node,
          status: { ...node.status, config: { active: { configMap: { kubeletConfigKey: "/etc/k.yaml" } } } },
        };
      },
    },
    recorder: { record: (_, { reason }) => void events.push(reason) },
  });
  void agent.run(stop.signal);
  const becomeReady = () => {
    isReady = true;
    agent.statusChanged();
  };
  return { clock, agent, api, logger, heartbeats, patches, events, becomeReady };
}

test("a restart does not make a Ready node NotReady while the engine is still being asked", async () => {
  const { clock, patches, events, becomeReady } = restarted();
  await clock.advance(500);
  expect(patches).toEqual([]);
  becomeReady();
  await clock.advance(100);
  const times = patches[0]!.status.conditions.map(({ type, status, lastTransitionTime }) => [
    type,
    status,
    lastTransitionTime,
  ]);
  expect(times).toEqual([
    ["DiskPressure", "False", LONG_AGO],
    ["Ready", "True", LONG_AGO],
  ]);
  expect(events).toEqual(["Starting", "NodeHasNoDiskPressure"]);
});

test("a node that does not become Ready after a restart is reported as such", async () => {
  const { clock, patches } = restarted();
  await clock.advance(6_000);
  // API servers refuse a status.config that names a file.
  expect(patches.map(({ status }) => Object.keys(status))).toEqual([["conditions"]]);
  expect(patches.map(({ status }) => status.conditions.at(-1)!.status)).toEqual(["False"]);
});

test("a change is reported once, although the watch has not shown it yet", async () => {
  const { clock, agent, patches, events, becomeReady } = restarted();
  await clock.advance(6_000);
  for (const change of [() => agent.statusChanged(), becomeReady, () => agent.statusChanged()]) {
    change();
    await clock.advance(100);
  }
  expect(events).toEqual(["Starting", "NodeHasNoDiskPressure", "NodeNotReady", "NodeReady"]);
  expect(patches).toHaveLength(2);
});

test("a list from before our report, which a cache of the API server may give, makes no second NodeReady", async () => {
  const { clock, agent, api, heartbeats, patches, events, becomeReady } = restarted();
  const list = Promise.withResolvers<object>();
  api.set(NODES, ({ path }) => (path.includes("watch") ? new Promise(() => {}) : list.promise));
  const at = (resourceVersion: string, status: string) => {
    const node = withReady(status, LONG_AGO);
    return { ...node, metadata: { ...node.metadata, resourceVersion } };
  };
  heartbeats.set(`${NODES}/n/status`, ({ body }) => {
    patches.push(body as (typeof patches)[number]);
    return at("8", "True");
  });
  api.set(`${NODES}/n`, at("5", "False"));
  becomeReady();
  await clock.advance(100);
  expect(events).toContain("NodeReady");
  list.resolve({ metadata: { resourceVersion: "6" }, items: [at("6", "False")] });
  await clock.advance(100);
  agent.statusChanged();
  await clock.advance(100);
  expect(events.filter((reason) => reason === "NodeReady")).toHaveLength(1);
});

test("the Lease and the status do not wait behind other requests", async () => {
  const { clock, heartbeats } = restarted();
  await clock.advance(6_000);
  expect(new Set(heartbeats.requests.map(({ path }) => path))).toEqual(new Set([LEASE, `${NODES}/n/status`]));
});

test("a Node that may not be created as it is says why, not that it does not exist", async () => {
  const { clock, api, logger } = restarted({ registerNode: true });
  const refusal = "is not allowed to set the following labels: node-restriction.kubernetes.io/x";
  api.set(NODES, () => {
    throw new ApiStatusError(403, "Forbidden", refusal);
  });
  api.set(`${NODES}/n`, () => {
    throw new ApiStatusError(404, "NotFound", "not found");
  });
  await clock.advance(1_000);
  expect(logger.lines.join()).toContain(refusal);
});

test("the configuration files of this machine are not in the Node of the API, which knows ConfigMaps only", async () => {
  const { clock, api } = restarted({ registerNode: true });
  const made: ApiNode[] = [];
  api.set(NODES, ({ body, method }) => {
    if (method !== "POST") return new Promise(() => {});
    made.push(body as ApiNode);
    return body as object;
  });
  await clock.advance(1_000);
  expect(made.map(({ status }) => Object.keys(status ?? {}))).toEqual([["conditions"]]);
});
