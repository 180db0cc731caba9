import { describe, expect, test } from "bun:test";
import { summarizePod } from "../../../src/apiserver/printers/rows.ts";
import type { PodSnapshot } from "../../../src/base/model/pod-snapshot.ts";
import { toPod, toPodOfLabels } from "../../../src/cli/client/engine-reader.ts";
import { explainPod } from "../../../src/plan/status/explain-pod.ts";
import { aContainer, anExited, aPod, aRunning, aSandbox, aSnapshot, EPOCH } from "../../support/builders.ts";

const owner = { nodeName: "node1", rootHash: "0" };
const labels = {
  app: "web",
  "kubelet-ts.io/node": "node1",
  "io.kubernetes.pod.name": "web-node1",
  "annotation.x": "y",
};

const ofLabels = (snapshot: PodSnapshot) => {
  const found = { owner, snapshot, graceSeconds: 30 };
  return toPod(found, toPodOfLabels(found, "node1"), EPOCH);
};

describe("a pod by its containers alone", () => {
  test("has the newest attempt of each container, in the order they were created", () => {
    const snapshot = aSnapshot(
      [
        aRunning("b", { createdAt: new Date(EPOCH.getTime() + 2) }),
        aRunning("a", { restartCount: 1, createdAt: new Date(EPOCH.getTime() + 1) }),
        anExited("a", 1, { restartCount: 0 }),
      ],
      [aSandbox({ labels })],
    );
    const pod = ofLabels(snapshot);
    expect(pod.spec.containers.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(pod.metadata.labels).toEqual({ app: "web" });
    expect(summarizePod(pod)).toMatchObject({ ready: 2, total: 2, status: "Running", restarts: 1 });
  });

  test("knows init containers and sidecars by their label", () => {
    const of = (restartPolicy: string) => ({ labels: { "annotation.kubelet-ts.io/init-container": restartPolicy } });
    const snapshot = aSnapshot([aRunning("app"), aRunning("side", of("Always")), anExited("init", 0, of(""))]);
    const pod = ofLabels(snapshot);
    expect(pod.spec.containers.map(({ name }) => name)).toEqual(["app"]);
    expect(summarizePod(pod)).toMatchObject({ ready: 2, total: 2, status: "Running" });
  });

  test("is not Ready while none of its containers exists", () => {
    const pod = ofLabels(aSnapshot([], [aSandbox({ labels })]));
    const { isReady, causes } = explainPod({ pod, events: [], logs: new Map(), pods: [pod], now: EPOCH });
    expect(isReady).toBe(false);
    expect(causes.map(({ problem }) => problem)).toEqual(["the kubelet has not started it yet"]);
  });

  test("has the manifest of its checkpoint", () => {
    const kept = aPod({ initContainers: [aContainer({ name: "init" })], containers: [aContainer({ name: "app" })] });
    const snapshot = aSnapshot([aRunning("app"), anExited("init", 0)]);
    const pod = toPod({ owner, snapshot, graceSeconds: 30 }, kept, EPOCH);
    expect(summarizePod(pod)).toMatchObject({ ready: 1, total: 1, status: "Running" });
  });

  test("without a container that runs is not Running", () => {
    const pod = ofLabels(aSnapshot([anExited("app", 1)]));
    expect(summarizePod(pod)).toMatchObject({ ready: 0, total: 1, status: "Error" });
  });
});
