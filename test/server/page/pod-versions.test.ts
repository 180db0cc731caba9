import { expect, test } from "bun:test";
import type { CoreEvent } from "../../../src/base/api/event.ts";
import type { Pod } from "../../../src/base/api/pod.ts";
import { PodVersions } from "../../../src/server/page/pod-versions.ts";

const pod = (uid: string, ready: "True" | "False") =>
  ({ metadata: { uid }, spec: {}, status: { conditions: [{ type: "Ready", status: ready }] } }) as unknown as Pod;

function world(pods: Pod[]) {
  const events: CoreEvent[] = [];
  const versions = new PodVersions({
    pods: () => pods,
    eventsAfter: (version) => events.filter(({ metadata }) => Number(metadata.resourceVersion) > version),
  });
  const happen = (uid: string) =>
    events.push({ metadata: { resourceVersion: `${events.length + 1}` }, involvedObject: { uid } } as CoreEvent);
  return { versions, happen, pods };
}

test("a pod that is not ready is another object after each event of it, and only then", () => {
  const { versions, happen } = world([pod("ready", "True"), pod("not", "False")]);
  const first = versions.list();
  expect(versions.list()).toEqual(first);
  expect(versions.list()[1]).toBe(first[1]!);
  happen("ready");
  happen("not");
  const second = versions.list();
  expect(second[0]).toBe(first[0]!);
  expect(second[1]).not.toBe(first[1]!);
  expect(second[1]).toEqual(first[1]!);
  expect(versions.list()[1]).toBe(second[1]!);
});

test("a pod that changed is shown as it is now", () => {
  const { versions, happen, pods } = world([pod("a", "False")]);
  happen("a");
  versions.list();
  pods[0] = pod("a", "True");
  expect(versions.list()[0]).toBe(pods[0]);
});
