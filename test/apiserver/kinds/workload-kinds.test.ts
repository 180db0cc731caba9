import { expect, test } from "bun:test";
import { anApiServer } from "../support.ts";

const JOBS = "/apis/batch/v1/namespaces/default/jobs";

const aJob = (labels: object = {}) => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: "once" },
  spec: {
    template: {
      metadata: { labels },
      spec: { restartPolicy: "Never", containers: [{ name: "app", image: "busybox:1.35" }] },
    },
  },
});

test("a Job is shown with its selector, which the kept object does not have", async () => {
  const { get, post, files } = anApiServer({ alsoServed: "jobs" });
  const { status, json } = await post(JOBS, aJob({ app: "x" }));
  const { uid } = json.metadata;
  expect(status).toBe(201);
  for (const shown of [json, (await get(`${JOBS}/once`)).json, (await get(JOBS)).json.items[0]]) {
    expect(shown.spec.selector).toEqual({ matchLabels: { "batch.kubernetes.io/controller-uid": uid } });
    expect(shown.spec.template.metadata.labels).toEqual({
      app: "x",
      "controller-uid": uid,
      "job-name": "once",
      "batch.kubernetes.io/controller-uid": uid,
      "batch.kubernetes.io/job-name": "once",
    });
  }
  const kept = files.get("jobs:default/once")?.spec as ReturnType<typeof aJob>["spec"] & { selector?: object };
  expect([kept.selector, kept.template.metadata.labels]).toEqual([undefined, { app: "x" }]);
});

test("a Job that a client reads and writes back is as it was", async () => {
  const { post, put, files } = anApiServer({ alsoServed: "jobs" });
  const { json } = await post(JOBS, aJob());
  const kept = files.get("jobs:default/once");
  const same = await put(`${JOBS}/once`, json);
  expect([same.status, same.json.metadata.resourceVersion]).toEqual([200, json.metadata.resourceVersion]);
  expect(files.get("jobs:default/once")).toBe(kept!);
  const body = { ...json, spec: { ...json.spec, suspend: true } };
  expect((await put(`${JOBS}/once`, body)).json.spec.suspend).toBe(true);
});

test("a Job without labels has those of its pods, for selectors and patches too, which the kept object does not have", async () => {
  const { get, post, put, patch, files } = anApiServer({ alsoServed: "jobs" });
  const { json } = await post(JOBS, aJob({ app: "x" }));
  const { labels } = json.spec.template.metadata;
  expect(json.metadata.labels).toEqual(labels);
  const selected = async () => (await get(`${JOBS}?labelSelector=job-name%3Donce`)).json.items.length;
  expect([await selected(), files.get("jobs:default/once")?.metadata.labels]).toEqual([1, undefined]);
  await put(`${JOBS}/once`, { ...json, spec: { ...json.spec, suspend: true } });
  expect(files.get("jobs:default/once")?.metadata.labels).toBeUndefined();
  await patch(`${JOBS}/once`, { metadata: { labels: { more: "y" } } });
  expect((await get(`${JOBS}/once`)).json.metadata.labels).toEqual({ ...labels, more: "y" });
  expect(await selected()).toBe(1);
});

test("the selector of another Job is refused", async () => {
  const { post } = anApiServer({ alsoServed: "jobs" });
  const job = aJob();
  const selector = { matchLabels: { "batch.kubernetes.io/controller-uid": "other" } };
  const { status, json } = await post(JOBS, { ...job, spec: { ...job.spec, selector } });
  expect([status, json.details.causes[0].field]).toEqual([422, "spec.selector"]);
});
