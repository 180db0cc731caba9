import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import type { ApiPod } from "../../../src/cluster/pods/api-pod-source.ts";
import { StatusReporter } from "../../../src/cluster/pods/status-reporter.ts";
import { aPod } from "../../support/builders.ts";
import { FakeApi } from "../../support/cluster/fake-api.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

const PATH = "/api/v1/namespaces/default/pods/web";

const RUNNING = { phase: "Running", podIP: "10.0.0.1", conditions: [] } as const;

/** A pod that runs here, and the API server that has it. */
function aWorld() {
  const clock = new FakeClock();
  const api = new FakeApi(clock);
  const pod = { ...aPod({}, { name: "web", namespace: "default", uid: "uid-web" }), status: RUNNING } as unknown as Pod;
  const stored = {
    metadata: { name: "web", namespace: "default", uid: "uid-web", resourceVersion: "1" },
    spec: {},
    status: { phase: "Pending" },
  } as unknown as ApiPod & { metadata: { resourceVersion: string } };
  const next = (status: object) => {
    Object.assign(stored, {
      metadata: { ...stored.metadata, resourceVersion: `${Number(stored.metadata.resourceVersion) + 1}` },
      status: { ...stored.status, ...status },
    });
    return structuredClone(stored);
  };
  const terminating = () =>
    ({ ...stored, metadata: { ...stored.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }) as ApiPod;
  const gone = { isGone: false };
  const stores = { written: Promise.resolve() };
  api.set(`${PATH}/status`, ({ body }) => next((body as { status: object }).status));
  api.set(PATH, () => ({}));
  const reporter = new StatusReporter({
    client: api,
    clock,
    logger: new RecordingLogger(),
    kubelet: { pods: () => [pod], hasStatus: () => true, isGone: () => gone.isGone, flush: () => stores.written },
    apiPodOf: () => stored,
  });
  return { clock, api, reporter, stored, next, terminating, gone, stores };
}

test("a pod that was replaced by another one of its name is reported on its own", async () => {
  const { clock, api, reporter, stored } = aWorld();
  reporter.setPods([{ ...structuredClone(stored), metadata: { ...stored.metadata, uid: "uid-before" } }]);
  await clock.advance(0);
  expect(api.requests).toEqual([]);
  reporter.setPods([structuredClone(stored)]);
  await clock.advance(0);
  expect(api.requests).toHaveLength(1);
  expect(reporter.endOf("uid-before")).toBeUndefined();
});

test("a status is reported once, and once more when another client has changed it", async () => {
  const { clock, api, reporter, stored, next } = aWorld();
  reporter.setPods([structuredClone(stored)]);
  await clock.advance(0);
  expect(api.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([`PATCH ${PATH}/status`]);
  reporter.setPods([structuredClone(stored)]);
  await clock.advance(60_000);
  expect(api.requests).toHaveLength(1);
  reporter.setPods([next({ phase: "Pending" })]);
  await clock.advance(0);
  expect(api.requests).toHaveLength(2);
  expect(stored.status?.phase).toBe("Running");
});

test("a status that an earlier process reported is reported again when another client has changed it", async () => {
  const earlier = aWorld();
  earlier.reporter.setPods([structuredClone(earlier.stored)]);
  await earlier.clock.advance(0);
  const { clock, api, reporter, stored, next } = aWorld();
  reporter.setPods([next(earlier.stored.status!)]);
  await clock.advance(0);
  expect(api.requests).toEqual([]);
  reporter.setPods([next({ phase: "Pending" })]);
  await clock.advance(0);
  expect(api.requests).toHaveLength(1);
  expect(stored.status?.phase).toBe("Running");
});

test("a second kubelet with the name of this node leads to one status in ten seconds, not to a storm", async () => {
  const { clock, api, reporter, stored, next } = aWorld();
  reporter.setPods([structuredClone(stored)]);
  await clock.advance(0);
  const before = api.requests.length;
  for (let passed = 0; passed < 60; passed++) {
    reporter.setPods([next({ podIP: "10.0.0.2" })]);
    await clock.advance(1_000);
  }
  expect(api.requests.length - before).toBeWithin(5, 8);
  reporter.stop();
  expect(clock.pendingTimers).toBe(0);
});

test("a terminating pod is removed when nothing of it is left here, and never with another UID", async () => {
  const { clock, api, reporter, terminating, gone } = aWorld();
  reporter.setPods([terminating()]);
  await clock.advance(0);
  expect(api.requests.some(({ method }) => method === "DELETE")).toBe(false);
  gone.isGone = true;
  reporter.podsChanged();
  await clock.advance(0);
  const removal = api.requests.find(({ method }) => method === "DELETE");
  expect(removal?.body).toEqual({ gracePeriodSeconds: 0, preconditions: { uid: "uid-web" } });
});

test("a terminating pod is removed only when no checkpoint on disk has it", async () => {
  const { clock, api, reporter, terminating, gone, stores } = aWorld();
  const { promise, resolve } = Promise.withResolvers<void>();
  stores.written = promise;
  gone.isGone = true;
  reporter.setPods([terminating()]);
  await clock.advance(0);
  expect(api.requests.map(({ method }) => method)).not.toContain("DELETE");
  resolve();
  await clock.advance(0);
  expect(api.requests.map(({ method }) => method)).toContain("DELETE");
});
