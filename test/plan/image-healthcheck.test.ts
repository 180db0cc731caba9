import { expect, test } from "bun:test";
import type { ImageHealthcheck } from "../../src/base/model/pod-snapshot.ts";
import { toImageProbe, withImageProbes } from "../../src/plan/image-healthcheck.ts";
import { aContainer, aPod, aRunning } from "../support/builders.ts";

const HEALTH: ImageHealthcheck = { test: ["CMD", "check"], intervalMs: 0, timeoutMs: 0, startPeriodMs: 0, retries: 0 };
const DEFAULTS = { timeoutSeconds: 30, periodSeconds: 30, successThreshold: 1, failureThreshold: 3 };
const TIMED = { ...HEALTH, intervalMs: 5000, timeoutMs: 500, startPeriodMs: 60_000, retries: 5 };
const TIMING = { timeoutSeconds: 1, periodSeconds: 5, successThreshold: 1, failureThreshold: 5 };

test.each([
  { when: "Docker's defaults", health: HEALTH, kind: "readiness", want: { exec: { command: ["check"] }, ...DEFAULTS } },
  {
    when: "a text for the shell, in which nothing is expanded",
    health: { ...HEALTH, test: ["CMD-SHELL", "test $(cat /ok) = 1"] },
    kind: "readiness",
    want: { exec: { command: ["/bin/sh", "-c", "test $$(cat /ok) = 1"] }, ...DEFAULTS },
  },
  { when: "its timing", health: TIMED, kind: "readiness", want: { exec: { command: ["check"] }, ...TIMING } },
  {
    when: "its start period, in which failures do not restart",
    health: TIMED,
    kind: "liveness",
    want: { exec: { command: ["check"] }, initialDelaySeconds: 60, ...TIMING },
  },
  { when: "NONE", health: { ...HEALTH, test: ["NONE"] }, kind: "liveness", want: undefined },
  { when: "nothing", health: { ...HEALTH, test: [] }, kind: "liveness", want: undefined },
] as const)("the HEALTHCHECK of an image as a probe: $when", ({ kind, health, want }) => {
  expect(toImageProbe(kind, health)).toEqual(want as ReturnType<typeof toImageProbe>);
});

const own = { ...DEFAULTS, exec: { command: ["own"] } };

test.each([
  { when: "all containers", annotation: "readiness", want: ["readiness check", "readiness check"] },
  { when: "one container", annotation: "b=liveness", want: ["", "liveness check"] },
  { when: "one container otherwise", annotation: "readiness,b=liveness", want: ["readiness check", "liveness check"] },
  { when: "no annotation", annotation: undefined, want: ["", ""] },
  { when: "a malformed annotation", annotation: "b=startup", want: ["", ""] },
  { when: "its own probe", annotation: "readiness", readinessProbe: own, want: ["readiness own", "readiness own"] },
] as const)("the annotation image-healthcheck: $when", ({ annotation, want, ...fields }) => {
  const containers = ["a", "b"].map((name) => aContainer({ name, ...("readinessProbe" in fields && fields) }));
  const annotations = annotation === undefined ? {} : { "kubelet-ts.io/image-healthcheck": annotation };
  const pod = aPod({ containers }, { annotations });
  const seen = ["a", "b"].map((name) => aRunning(name, { healthcheck: HEALTH }));
  const probed = withImageProbes(pod, seen);
  expect(
    probed.spec.containers.map(({ readinessProbe, livenessProbe }) =>
      readinessProbe
        ? `readiness ${readinessProbe.exec?.command}`
        : livenessProbe
          ? `liveness ${livenessProbe.exec?.command}`
          : "",
    ),
  ).toEqual([...want]);
  expect(withImageProbes(pod, [])).toBe(pod);
});
