import { describe, expect, test } from "bun:test";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

function warningsOf(pod: { annotations?: object; container?: object }): { field: string; message: string }[] {
  const text = JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", annotations: pod.annotations },
    spec: { containers: [{ name: "a", image: "b:1", ...pod.container }] },
  });
  const { findings, pods } = readManifest(Buffer.from(text), { file: "f.json", nodeName: "n", source: "file" });
  expect(pods).toHaveLength(1);
  return findings.map(({ field, message }) => ({ field, message }));
}

describe("annotations of kubelet-ts", () => {
  test.each([
    ["kubelet-ts.io/netwrok", "lan", 'there is no such annotation; did you mean "kubelet-ts.io/network"?'],
    ["kubelet-ts.io/xyz", "1", "the annotations are kubelet-ts.io/network, "],
    ["kubelet-ts.io/ip", "300.1.1.1", 'must be an IPv4 or IPv6 address (found "300.1.1.1")'],
    ["kubelet-ts.io/network", "container:abc", "must be the name of a Docker network"],
    ["kubelet-ts.io/max-container-restart-period", "10m", "must be a duration from 1s to 5m"],
  ])("%s: %s", (name, value, message) => {
    expect(warningsOf({ annotations: { [name]: value } })).toEqual([
      { field: `metadata.annotations[${name}]`, message: expect.stringContaining(message) },
    ]);
  });

  test("well-formed ones, and those of other programs, are not reported", () => {
    const annotations = {
      "kubelet-ts.io/network": "lan",
      "kubelet-ts.io/ip": "10.1.2.3",
      "kubelet-ts.io/max-container-restart-period": "30s",
      "example.com/kubelet-ts": "x",
    };
    expect(warningsOf({ annotations })).toEqual([]);
  });
});

describe("commands that need a shell", () => {
  test.each([
    [{ command: ["a && b"] }, "command", '["sh", "-c", "a && b"]'],
    [{ command: ["nginx -g daemon"] }, "command", "one item per argument"],
    [{ command: ["a", "&&", "b"] }, "command", 'passes "&&" to a as an argument'],
    [{ readinessProbe: { exec: { command: ["cat /tmp/ok"] } } }, "readinessProbe.exec.command", "no shell splits it"],
    [{ lifecycle: { preStop: { exec: { command: ["sleep 5"] } } } }, "lifecycle.preStop.exec.command", "no shell"],
  ])("%j", (container, field, message) => {
    expect(warningsOf({ container })).toEqual([
      { field: `spec.containers[0].${field}`, message: expect.stringContaining(message) },
    ]);
  });

  test.each([
    [{ command: ["sh", "-c", "a && b"] }],
    [{ command: ["/bin/busybox", "sh", "-c", "a | b"] }],
    [{ args: ["a && b"] }],
    [{ command: ["/opt/my app/run", "--x"] }],
  ])("%j is not reported", (container) => expect(warningsOf({ container })).toEqual([]));
});
