import { describe, expect, test } from "bun:test";
import type { DesiredPod, DesiredState, PodNotice } from "../../src/base/model/desired-state.ts";
import type { EventTarget, PodEvent } from "../../src/base/model/pod-event.ts";
import { ManifestEvents, manifestFacts, type RefusedManifest } from "../../src/kubelet/manifest-events.ts";
import { aPod } from "../support/builders.ts";

const BAD: RefusedManifest = { file: "/m/web.yaml", message: "/m/web.yaml:3:5: spec: is required" };
const pod = (extra: Partial<DesiredPod> = {}, spec = {}): DesiredPod => ({
  pod: { ...aPod(spec), metadata: { name: "web-node1", namespace: "prod", uid: "u1" } },
  source: "file",
  origin: "/m/web.yaml",
  revision: "1",
  ...extra,
});
const aState = (pods: DesiredPod[], notices: PodNotice[] = []): DesiredState => ({
  pods,
  configMaps: new Map(),
  secrets: new Map(),
  notices: new Map([["u1", notices]]),
});
const WEB = { uid: "u1", name: "web-node1", namespace: "prod" };
const NODE = { kind: "Node", uid: "node1", name: "node1", namespace: "default" };

describe("facts about manifests", () => {
  test("a manifest that never had a pod is one of the node: its first error only", () => {
    expect(manifestFacts(aState([]), [BAD, { ...BAD, message: "second" }], "node1", [])).toEqual([
      { target: NODE, event: { type: "Warning", reason: "InvalidManifest", message: BAD.message, isLogged: true } },
    ] as never);
  });

  test("a bad edit and a second manifest of the same name are those of the pod", () => {
    const notices: PodNotice[] = [
      { reason: "InvalidManifest", message: "runs by an older text: x" },
      { reason: "DuplicateManifest", message: "ignored" },
      { reason: "Unclaimed", message: "unclaimed" },
    ];
    const facts = manifestFacts(aState([pod()], notices), [], "node1", []);
    expect(facts.map(({ target, event }) => [target, event.reason])).toEqual([
      [WEB, "InvalidManifest"],
      [WEB, "DuplicateManifest"],
    ]);
  });

  test.each([
    { when: "written out without --cluster-dns", asks: true, spec: {}, dns: [], want: ["MissingClusterDNS"] },
    { when: "a default", asks: false, spec: {}, dns: [], want: [] },
    { when: "written out with --cluster-dns", asks: true, spec: {}, dns: ["10.0.0.10"], want: [] },
    { when: "written out for the host network", asks: true, spec: { hostNetwork: true }, dns: [], want: [] },
  ])("dnsPolicy ClusterFirst that is $when", ({ asks, spec, dns, want }) => {
    const desired = pod(asks ? { asksForClusterDns: true } : {}, spec);
    const facts = manifestFacts(aState([desired]), [], "node1", dns);
    expect(facts.map(({ event }) => event.reason)).toEqual([...want]);
  });
});

test("an event is recorded when a fact becomes true, and again when it comes back", () => {
  const recorded: [EventTarget, PodEvent][] = [];
  const recorder = { record: (target: EventTarget, event: PodEvent) => void recorded.push([target, event]) };
  let refused = [BAD];
  const events = new ManifestEvents({
    recorder,
    nodeName: "node1",
    clusterDns: () => [],
    refused: () => refused,
  });
  const state = aState([]);
  events.report(state);
  events.report(state);
  expect(recorded).toHaveLength(1);
  refused = [];
  events.report(state);
  refused = [BAD];
  events.report(state);
  expect(recorded).toHaveLength(2);
  refused = Array.from({ length: 3_000 }, (_, index) => ({ ...BAD, file: `${index}.yaml`, message: `bad ${index}` }));
  events.report(state);
  expect(recorded.length).toBeLessThan(300);
});
