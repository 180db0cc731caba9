import { beforeEach, expect, test } from "bun:test";
import { FailedMounts, MOUNT_TIMEOUT_MS } from "../../../src/kubelet/volumes/volume-manager.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingRecorder } from "../../support/recording-logger.ts";

const pod = aPod({
  volumes: [
    { name: "a", emptyDir: {} },
    { name: "b", hostPath: { path: "/b", type: "" } },
    { name: "unused", emptyDir: {} },
  ],
  containers: [
    aContainer({
      volumeMounts: [
        { name: "a", mountPath: "/a" },
        { name: "b", mountPath: "/b" },
      ],
    }),
  ],
});

let clock: FakeClock;
let recorder: RecordingRecorder;
let mounts: FailedMounts;

beforeEach(() => {
  clock = new FakeClock();
  recorder = new RecordingRecorder();
  mounts = new FailedMounts({ clock, recorder });
});

const EVENT =
  "web-node1 FailedMount Unable to attach or mount volumes: unmounted volumes=[b], unattached volumes=[a b]: timed out waiting for the condition";

test("2 min 3 s after the first failure it is reported, and again as long as it continues", async () => {
  mounts.failed(pod, ["a", "b"]);
  await clock.advance(MOUNT_TIMEOUT_MS - 1);
  mounts.failed(pod, ["b"]);
  expect(recorder.events).toEqual([]);
  await clock.advance(1);
  expect(recorder.events).toEqual([EVENT]);
  await clock.advance(MOUNT_TIMEOUT_MS);
  expect(recorder.events).toEqual([EVENT, EVENT]);
});

test("a pod that has its volumes, or is gone, is left alone", async () => {
  mounts.failed(pod, ["b"]);
  mounts.settled(pod.metadata.uid!);
  expect(clock.pendingTimers).toBe(0);
  await clock.advance(2 * MOUNT_TIMEOUT_MS);
  expect(recorder.events).toEqual([]);
});
