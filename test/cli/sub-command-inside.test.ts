import { describe, expect, test } from "bun:test";
import { parseCopyPlace } from "../../src/cli/commands/cp.ts";
import { describeEffects } from "../../src/cli/commands/diff.ts";
import { parsePortPair } from "../../src/cli/commands/port-forward.ts";
import type { PodRevision } from "../../src/kubelet/edit-rules.ts";
import { aContainer, aPod, aRunning, aSandbox, aSnapshot } from "../support/builders.ts";

test.each([
  ["8080:80", { local: 8080, remote: 80 }],
  ["80", { local: 80, remote: 80 }],
  [":80", { local: 0, remote: 80 }],
])("port %s", (text, want) => expect(parsePortPair(text)).toEqual(want));

test.each(["", "80:", "a:80", "0", "1:70000", "1:2:3"])("port %p is refused", (text) => {
  expect(() => parsePortPair(text)).toThrow("LOCAL:REMOTE");
});

test.each([
  ["web:/etc/hosts", { pod: "web", path: "/etc/hosts" }],
  ["prod/web:/etc/hosts", { pod: "prod/web", path: "/etc/hosts" }],
  ["/tmp/a:b", { path: "/tmp/a:b" }],
  ["./a:b", { path: "./a:b" }],
  ["hosts", { path: "hosts" }],
])("place %s", (text, want) => expect(parseCopyPlace(text)).toEqual(want));

test("a pod without a path is refused", () => expect(() => parseCopyPlace("web:")).toThrow("names no path"));

describe("what an edit restarts", () => {
  const pod = aPod({ containers: [aContainer({ name: "a" }), aContainer({ name: "b" })] });
  const revision = (sandbox: string, containers: [string, string][]) =>
    ({ pod, qosClass: "BestEffort", hashes: { sandbox, containers: new Map(containers) } }) as unknown as PodRevision;
  const running = {
    owner: { nodeName: "node1", rootHash: "0" },
    graceSeconds: 30,
    snapshot: aSnapshot(
      [aRunning("a", { hash: "1" }), aRunning("b", { hash: "2" }), aRunning("old", { hash: "3" })],
      [aSandbox({ hash: "s" })],
    ),
  };

  test("a container whose hash differs restarts, one that is gone stops", () => {
    expect(
      describeEffects(
        revision("s", [
          ["a", "1"],
          ["b", "9"],
        ]),
        running,
        pod,
      ),
    ).toEqual(["container b restarts", "container old stops"]);
  });

  test("another sandbox restarts the pod", () => {
    expect(describeEffects(revision("t", []), running, pod)).toEqual([
      "the whole pod restarts, with a new sandbox and IP address",
    ]);
  });

  test("another QoS class is named, as the reason why the whole pod restarts", () => {
    const limits = { cpu: "1", memory: "64Mi" };
    const before = aPod({ containers: [aContainer({ name: "a", resources: { limits, requests: limits } })] });
    expect(describeEffects(revision("t", []), running, before)).toEqual([
      "QoS class changes from Guaranteed to BestEffort: every container restarts, the IP address may change",
    ]);
    expect(describeEffects(revision("s", [["a", "1"]]), running, before)).not.toContain("QoS");
  });

  test("a pod that does not run starts", () => {
    expect(describeEffects(revision("s", []), undefined, undefined)).toEqual(["the pod starts"]);
  });
});
