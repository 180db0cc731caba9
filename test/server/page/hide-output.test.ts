import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { hideLogEnds, hideProbeOutput } from "../../../src/server/page/hide-output.ts";

const SECRET = "password=hunter2";
const ended = { terminated: { exitCode: 1, reason: "Error", message: SECRET } };

function pod(policy: string | undefined): Pod {
  const containers = [{ name: "app", ...(policy && { terminationMessagePolicy: policy }) }];
  const statuses = [{ name: "app", state: ended, lastState: ended }];
  return {
    metadata: { name: "web" },
    spec: { initContainers: containers, containers },
    status: { phase: "Failed", initContainerStatuses: statuses, containerStatuses: statuses },
  } as unknown as Pod;
}

test("a termination message that may be the end of a log is left out, and nothing else", () => {
  const shown = hideLogEnds(pod("FallbackToLogsOnError"));
  expect(JSON.stringify(shown)).not.toContain(SECRET);
  const { state } = shown.status!.containerStatuses![0]!;
  expect(state).toEqual({ terminated: { exitCode: 1, reason: "Error" } } as never);
});

test.each([undefined, "File"])("a message that the program wrote to its file is shown: %p", (policy) => {
  const given = pod(policy);
  expect(hideLogEnds(given)).toBe(given);
});

test("what a probe that succeeded has read is left out", () => {
  const answer = { time: 1, durationMs: 2, output: SECRET };
  expect(
    hideProbeOutput([
      { ...answer, result: "success" },
      { ...answer, result: "failure" },
    ]),
  ).toEqual([
    { ...answer, result: "success", output: "" },
    { ...answer, result: "failure" },
  ]);
});
