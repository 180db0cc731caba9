import { expect, test } from "bun:test";
import {
  computeRootHash,
  isOwned,
  toContainerLabels,
  toContainerName,
  toOwnershipFilter,
  toSandboxLabels,
  toSandboxPattern,
} from "../../src/docker/labels.ts";
import { aPod, OWNER } from "./mapping-requests.ts";

const POD = aPod({ metadata: { labels: { app: "x" }, annotations: { "a.b/c": "d" } } });

const CONTAINER_LABELS = toContainerLabels({
  pod: POD,
  container: POD.spec.containers[0]!,
  owner: OWNER,
  sandboxId: "s1",
  hash: "h1",
  restartCount: 3,
  backOffMs: 40_000,
  logPath: "/var/log/pods/x/3.log",
});

test("labels of a sandbox: the pod's own, its annotations with a prefix, identity, ownership", () => {
  expect(toSandboxLabels(POD, OWNER, { hash: "h", attempt: 2 })).toEqual({
    app: "x",
    "annotation.a.b/c": "d",
    "io.kubernetes.pod.name": "web-node1",
    "io.kubernetes.pod.namespace": "default",
    "io.kubernetes.pod.uid": "u1",
    "io.kubernetes.container.name": "POD",
    "io.kubernetes.docker.type": "podsandbox",
    "annotation.kubelet-ts.io/sandbox.hash": "h",
    "annotation.kubelet-ts.io/sandbox.attempt": "2",
    "kubelet-ts.io/node": "node1",
    "kubelet-ts.io/root": "0123456789abcdef",
  });
});

test("labels of our own on a container; the others are compared with recorded ones", () => {
  expect(CONTAINER_LABELS).toMatchObject({
    "annotation.kubelet-ts.io/back-off-ms": "40000",
    "annotation.kubelet-ts.io/image": "busybox:test",
    "kubelet-ts.io/node": "node1",
    "kubelet-ts.io/root": "0123456789abcdef",
  });
});

test.each([
  ["app", undefined],
  ["setup", ""],
  ["side", "Always"],
])("the label of init containers, on %s", (name, want) => {
  const [container] = POD.spec.containers;
  const initContainers = [
    { ...container!, name: "setup" },
    { ...container!, name: "side", restartPolicy: "Always" as const },
  ];
  const pod = aPod({ spec: { ...POD.spec, initContainers } });
  const rest = { owner: OWNER, sandboxId: "s1", hash: "h1", restartCount: 0, logPath: "" };
  const labels = toContainerLabels({ ...rest, pod, container: { ...container!, name } });
  expect(labels["annotation.kubelet-ts.io/init-container"]).toBe(want as string);
});

test("a pod cannot disown its sandbox or claim another pod's by a label", () => {
  const pod = aPod({
    metadata: {
      labels: { "kubelet-ts.io/node": "evil", "io.kubernetes.pod.uid": "evil" },
      annotations: { "kubelet-ts.io/sandbox.hash": "evil" },
    },
  });
  const labels = toSandboxLabels(pod, OWNER, { hash: "h", attempt: 0 });
  expect(Object.values(labels)).not.toContain("evil");
  expect(isOwned(labels, OWNER)).toBe(true);
});

test("containers are ours only with both ownership labels", () => {
  expect(isOwned(CONTAINER_LABELS, OWNER)).toBe(true);
  expect(isOwned(CONTAINER_LABELS, { ...OWNER, nodeName: "node2" })).toBe(false);
  expect(isOwned(CONTAINER_LABELS, { ...OWNER, rootHash: "f" })).toBe(false);
  expect(isOwned({}, OWNER)).toBe(false);
  expect(toOwnershipFilter(OWNER)).toEqual(["kubelet-ts.io/node=node1", "kubelet-ts.io/root=0123456789abcdef"]);
});

test("the root hash names the directory as it is written", () => {
  expect(computeRootHash("/var/lib/kubelet")).toMatch(/^[0-9a-f]{16}$/);
  expect(computeRootHash("/a")).not.toBe(computeRootHash("/b"));
});

test("a uid that Docker would refuse in a name is made to fit", () => {
  const pod = aPod({ metadata: { uid: "a/b_c ü" } });
  expect(toContainerName(pod, "c", 0)).toBe("k8s_c_web-node1_default_a-b-c--_0");
});

const REPLICA_SET = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1a", uid: "u", controller: true }];
test.each([
  ["its own name, whatever its attempt", {}, ["k8s_POD_web.a_prod_u_0", "k8s_POD_web.a_prod_v_1"]],
  [
    "a pod that only shares a beginning",
    { generateName: "web-1a-", ownerReferences: [] },
    ["k8s_POD_web.a_prod_u_0", "k8s_POD_web.a_prod_v_1"],
  ],
  [
    "those of its Deployment, of every template",
    { generateName: "web-1a-", labels: { "pod-template-hash": "1a" }, ownerReferences: REPLICA_SET },
    ["k8s_POD_web-1a-x_prod_u_0", "k8s_POD_web-2b-y_prod_u_0"],
  ],
])("other sandboxes of a pod: %s", (_, metadata, want) => {
  const names = ["k8s_POD_web.a_prod_u_0", "k8s_POD_web.a_prod_v_1", "k8s_POD_webba_prod_u_0", "k8s_POD_web.a_dev_u_0"];
  const others = [
    "k8s_POD_web-1a-x_prod_u_0",
    "k8s_POD_web-2b-y_prod_u_0",
    "k8s_POD_web-x_prod_u_0",
    "k8s_c_web.a_prod_u_0",
  ];
  const pattern = new RegExp(toSandboxPattern(aPod({ metadata: { name: "web.a", namespace: "prod", ...metadata } })));
  expect([...names, ...others].filter((name) => pattern.test(name))).toEqual(want);
});
