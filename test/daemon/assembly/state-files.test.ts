import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { buildRegistry } from "../../../src/apiserver/kinds/served-kinds.ts";
import { ManifestDirectory } from "../../../src/apiserver/storage/manifest-directory.ts";
import { replaceFile } from "../../../src/base/files/whole-file.ts";
import { SystemClock } from "../../../src/base/host/system-clock.ts";
import { STATE_FILES } from "../../../src/daemon/assembly/state-files.ts";
import { CheckpointStore } from "../../../src/sources/checkpoint-store.ts";
import { READ_OPTIONS } from "../../apiserver/support.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";

const status = { phase: "Succeeded", conditions: [], qosClass: "BestEffort" };

test.each([
  ["oom-killed", ["a"], [1]],
  ["pods", [{ uid: "u", name: "web", namespace: "default" }], [{ uid: "u" }]],
  [
    "evictions",
    [["u", { reason: "Evicted", message: "", revision: "r", since: "2026-01-01T00:00:00.000Z" }]],
    [["u", { reason: "Evicted", message: "", revision: "r", since: "yesterday" }]],
  ],
  [
    "conditions",
    [["u", [{ type: "Ready", status: "True", lastProbeTime: null, lastTransitionTime: "2026-01-01T00:00:00Z" }]]],
    [["u", [{ type: "Ready", status: 1 }]]],
  ],
  [
    "completions",
    { u: { runRevision: "r", end: { phase: "Succeeded" }, status } },
    { u: { runRevision: "r", end: { phase: "Running" }, status } },
  ],
  ["images-used", { id: { names: ["busybox"], unusedMs: 0 } }, { id: { names: "busybox", unusedMs: 0 } }],
  ["probes", [["id", { startedAtMs: 1, liveness: "success" }]], [["id", { startedAtMs: 1, liveness: 1 }]]],
  [
    "workloads",
    {
      records: { w: { uid: "u", createdAt: "2026-01-01T00:00:00Z", generation: 1, revisions: {}, pods: [] } },
      claims: {},
      claimRecords: {},
      volumes: {},
    },
    {
      records: { w: { uid: "u", createdAt: "2026-01-01T00:00:00Z", generation: 1, revisions: {}, pods: [null] } },
      claims: {},
      claimRecords: {},
      volumes: {},
    },
  ],
] as const)("%s takes what is written and refuses another shape", (name, good, bad) => {
  expect(v.is(STATE_FILES[name].schema, good)).toBe(true);
  expect(v.is(STATE_FILES[name].schema, bad)).toBe(false);
  expect(v.is(STATE_FILES[name].schema, null)).toBe(false);
});

/** A root directory that 0.1.0 wrote (59ff9a7d): a pod, two Deployments, a Job, a CronJob and a Service. */
const EARLIER = join(import.meta.dir, "../../fixtures/earlier-state");

test.each(readdirSync(join(EARLIER, "state")).filter((name) => name.endsWith("-upb.json")))(
  "an earlier %s is read whole",
  (file) => {
    const { version, data } = JSON.parse(readFileSync(join(EARLIER, "state", file), "utf8"));
    expect(version).toBe(1);
    expect(v.parse(STATE_FILES[file.replace("-upb.json", "") as keyof typeof STATE_FILES].schema, data)).toEqual(data);
  },
);

test("earlier checkpoints and submitted objects are read", () => {
  const logger = new RecordingLogger();
  const dir = join(EARLIER, "checkpoints");
  const checkpoints = new CheckpointStore({ dir, nodeName: "upb", clock: new SystemClock(), logger, replaceFile });
  const objects = checkpoints.loadOthers(new Set()).flatMap(({ checkpoint }) => [...checkpoint.texts.values()].flat());
  expect(objects).not.toBeEmpty();
  const directory = new ManifestDirectory({
    rootDir: EARLIER,
    registry: buildRegistry(),
    readOptions: READ_OPTIONS,
    logger,
  });
  const { files, unreadable } = directory.read();
  expect(unreadable).toEqual([]);
  expect(
    files.map(({ object }) => `${object.kind} ${object.metadata.name} ${object.metadata.managedFields?.length}`),
  ).toEqual(["ConfigMap up-cm 1", "Deployment up-api 1"]);
  expect(logger.lines).toEqual([]);
});
