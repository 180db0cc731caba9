import { beforeEach, describe, expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import type { DesiredState } from "../../../src/base/model/desired-pod.ts";
import { ImageUpdateManager, type ImageUpdateManagerDeps } from "../../../src/kubelet/images/image-update-manager.ts";
import type { ImageUpdateRecord } from "../../../src/plan/image-updates.ts";
import { aContainer, aPod } from "../../support/builders.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { RecordingLogger, RecordingRecorder } from "../../support/recording-logger.ts";

let clock: FakeClock;
let stored: readonly ImageUpdateRecord[];
let newest: string;
let isReadyWith: (ref: string) => boolean;
let manager: ImageUpdateManager;
let desired: DesiredState;
let pulls: string[];

const pod = (annotations: Record<string, string>): Pod =>
  aPod({ containers: [aContainer({ image: "web:1" })] }, { name: "web", namespace: "default", uid: "u", annotations });

const stateOf = (...pods: Pod[]): DesiredState => ({
  pods: pods.map((one) => ({ pod: one, source: "file", origin: "test", revision: "" })),
  configMaps: new Map(),
  secrets: new Map(),
});

function create(overrides: Partial<ImageUpdateManagerDeps> = {}): ImageUpdateManager {
  return new ImageUpdateManager({
    clock,
    logger: new RecordingLogger(),
    recorder: new RecordingRecorder(),
    random: () => 0,
    file: {
      read: () => stored,
      write: (records) => {
        stored = JSON.parse(JSON.stringify(records));
      },
    },
    defaults: () => ({ policy: { kind: "never" }, schedule: "0 4 * * *", window: "always" }),
    jitterMs: () => 0,
    lookUp: async () => ({ ref: newest, tag: "1" }),
    pull: async (ref) => {
      pulls.push(ref);
      return `id of ${ref}`;
    },
    describe: async () => ({ ref: "web@sha256:a", tag: "1" }),
    isLocked: async () => false,
    onChange: () => show(),
    ...overrides,
  });
}

/** The pod worker: what is desired runs, and its readiness is reported. */
function show(): void {
  const { pods } = manager.apply(desired, true);
  for (const { pod: shown, imagePins: pins } of pods) {
    const ref = pins?.get("web:1")?.ref ?? "web:1";
    manager.observe({
      pod: shown,
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: isReadyWith(ref) ? "True" : "False" }],
        containerStatuses: [],
      } as never,
      rollout: "live",
      pins,
      containers: [{ name: "app", state: "running", imageId: `id of ${ref}` } as never],
    });
  }
}

const runningRef = () => manager.apply(desired, true).pods[0]?.imagePins?.get("web:1")?.ref;

describe("updates of images", () => {
  beforeEach(() => {
    clock = new FakeClock();
    stored = [];
    pulls = [];
    newest = "web@sha256:a";
    isReadyWith = () => true;
    manager = create();
  });

  test("without a pod with the annotation the state is the same object, and nothing is stored", async () => {
    const state = stateOf(pod({}));
    expect(manager.apply(state, true)).toBe(state);
    await clock.advance(48 * 3_600_000);
    expect({ stored, pulls, report: manager.report(), timers: clock.pendingTimers }).toEqual({
      stored: [],
      pulls: [],
      report: [],
      timers: 0,
    });
  });

  test("the running image is pinned, a newer one is kept, a bad one rolled back and not tried again", async () => {
    desired = stateOf(pod({ "kubelet-ts.io/image-update": "digest", "kubelet-ts.io/update-deadline": "1m" }));
    show();
    await clock.advance(1000);
    expect(runningRef()).toBe("web@sha256:a");

    newest = "web@sha256:b";
    manager.checkNow(undefined);
    await clock.advance(60_000);
    expect({ ref: runningRef(), state: manager.report()[0]?.state }).toEqual({ ref: "web@sha256:b", state: "pinned" });

    newest = "web@sha256:bad";
    isReadyWith = (ref) => !ref.endsWith("bad");
    manager.checkNow("default/web");
    await clock.advance(5000);
    expect(runningRef()).toBe("web@sha256:bad");
    await clock.advance(60_000);
    expect({ ref: runningRef(), state: manager.report()[0]?.state }).toEqual({ ref: "web@sha256:b", state: "failed" });
    manager.checkNow(undefined);
    await clock.advance(60_000);
    expect({ ref: runningRef(), pulls }).toEqual({ ref: "web@sha256:b", pulls: ["web@sha256:b", "web@sha256:bad"] });

    // A second process has the same state.
    manager.stop();
    manager = create();
    show();
    await clock.advance(1000);
    expect(runningRef()).toBe("web@sha256:b");
    expect(manager.undo("default/web")).toEqual(["web:1"]);
    expect(runningRef()).toBe("web@sha256:a");

    desired = stateOf(pod({}));
    show();
    await clock.advance(0);
    expect(stored).toEqual([]);
  });

  test("at the time of its schedule", async () => {
    desired = stateOf(
      pod({ "kubelet-ts.io/image-update": "digest", "kubelet-ts.io/image-update-schedule": "0 * * * *" }),
    );
    show();
    await clock.advance(1000);
    newest = "web@sha256:b";
    await clock.advance(2 * 3_600_000);
    expect(runningRef()).toBe("web@sha256:b");
  });

  test("the random delay of the next look-up is drawn once, also over a restart", async () => {
    let draws = 0;
    const random = () => [0.25, 0.75][draws++]!;
    const start = () => create({ random, jitterMs: () => 1_800_000 });
    manager = start();
    desired = stateOf(pod({ "kubelet-ts.io/image-update": "digest" }));
    show();
    await clock.advance(1000);
    const [first] = manager.report();
    expect(first?.nextCheckAt).toBeDefined();
    manager.stop();
    manager = start();
    show();
    await clock.advance(1000);
    expect({ next: manager.report()[0]?.nextCheckAt, draws }).toEqual({ next: first?.nextCheckAt, draws: 1 });
  });
});
