import { expect, test } from "bun:test";
import { formatAccessModes, formatLabels } from "../../../src/apiserver/kinds/define-kind.ts";
import { SERVED_KINDS } from "../../../src/apiserver/kinds/served-kinds.ts";
import type { ApiObject } from "../../../src/apiserver/object-store.ts";

type Fields = Record<string, unknown>;

const refuse = (next: ApiObject, previous: ApiObject) =>
  SERVED_KINDS.find(({ kind }) => kind === next.kind)?.validateUpdate?.(next, previous) ?? [];
const object = (kind: string, spec: Fields): ApiObject => ({ apiVersion: "v1", kind, metadata: { name: "a" }, spec });
const selector = { matchLabels: { app: "a" } };
const SPECS: Record<string, Fields> = {
  Deployment: { replicas: 1, selector, template: {} },
  ReplicaSet: { replicas: 1, selector, template: {} },
  DaemonSet: { selector, template: {} },
  StatefulSet: { replicas: 1, selector, template: {}, serviceName: "a", volumeClaimTemplates: [{}] },
  ReplicationController: { replicas: 1, selector: { app: "a" }, template: {} },
  Job: { parallelism: 1, completions: 2, template: {} },
  CronJob: { schedule: "* * * * *", jobTemplate: {} },
  PersistentVolumeClaim: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  IngressClass: { controller: "k8s.io/ingress-nginx" },
  PersistentVolume: { capacity: { storage: "1Gi" }, hostPath: { path: "/d" }, volumeMode: "Filesystem" },
};

/** The fields that kube-apiserver 1.20.2 named for the same changes. */
test.each([
  ["Deployment", { selector: { matchLabels: { app: "b" } } }, ["spec.selector"]],
  ["Deployment", { replicas: 2, template: { spec: {} } }, []],
  ["ReplicaSet", { selector: undefined }, ["spec.selector"]],
  ["DaemonSet", { selector: { matchLabels: {} } }, ["spec.selector"]],
  ["StatefulSet", { serviceName: "b" }, ["spec"]],
  ["StatefulSet", { volumeClaimTemplates: undefined }, ["spec"]],
  ["StatefulSet", { replicas: 3, template: { spec: {} }, updateStrategy: { type: "OnDelete" } }, []],
  ["ReplicationController", { selector: { app: "b" } }, []],
  ["Job", { completions: 3 }, ["spec.completions"]],
  ["Job", { template: { spec: {} } }, ["spec.template"]],
  ["Job", { parallelism: 5, suspend: true }, []],
  ["CronJob", { schedule: "@daily", jobTemplate: { spec: {} } }, []],
  ["IngressClass", { controller: "example.org/other" }, ["spec.controller"]],
  ["PersistentVolumeClaim", { accessModes: ["ReadOnlyMany"] }, ["spec"]],
  ["PersistentVolumeClaim", { storageClassName: "x" }, ["spec"]],
  ["PersistentVolumeClaim", { resources: { requests: { storage: "2Gi" } } }, []],
  ["PersistentVolumeClaim", { volumeName: "v" }, []],
  ["PersistentVolume", { hostPath: { path: "/e" } }, ["spec.persistentvolumesource"]],
  ["PersistentVolume", { volumeMode: "Block" }, ["volumeMode"]],
  ["PersistentVolume", { capacity: { storage: "2Gi" }, nodeAffinity: { required: {} } }, []],
] as const)("%s: %j", (kind, change, want) => {
  const before = SPECS[kind]!;
  const causes = refuse(object(kind, { ...before, ...change } as Fields), object(kind, before));
  expect(causes.map(({ field }) => field)).toEqual([...want]);
});

test("of a StorageClass only topologies, mount options and expansion can be changed", () => {
  const sc = (more: object) => ({ ...object("StorageClass", {}), provisioner: "x", reclaimPolicy: "Delete", ...more });
  const fields = refuse(sc({ provisioner: "y", reclaimPolicy: "Retain", parameters: { a: "b" } }), sc({}));
  expect(fields.map(({ field }) => field)).toEqual(["parameters", "provisioner", "reclaimPolicy"]);
  expect(refuse(sc({ allowVolumeExpansion: true }), sc({}))).toEqual([]);
});

test("the type of a Secret is fixed; the default one need not be written", () => {
  const secret = (type?: string) => ({ ...object("Secret", {}), ...(type && { type }) });
  expect(refuse(secret("kubernetes.io/tls"), secret())).toMatchObject([{ field: "type" }]);
  expect(refuse(secret("Opaque"), secret())).toEqual([]);
});

test.each([
  [formatLabels, { b: "2", a: "1" }, "a=1,b=2"],
  [formatLabels, {}, "<none>"],
  [formatLabels, undefined, "<none>"],
  [formatAccessModes, ["ReadWriteOnce", "ReadOnlyMany"], "RWO,ROX"],
])("%p writes %j as a cell: %s", (format, value, want) => {
  expect(format(value)).toBe(want);
});

test("causes name the value first, as upstream's do", () => {
  const container = { name: "c", image: "i", imagePullPolicy: "Sometimes", ports: [{ containerPort: 70_000 }] };
  const pod = object("Pod", { securityContext: { sysctls: [{ name: "foo-", value: "1" }] }, containers: [container] });
  const decoded = SERVED_KINDS.find(({ kind }) => kind === "Pod")?.decode?.(pod, { nodeName: "node1" } as never);
  expect(decoded?.causes.map(({ message }) => message?.replace(/(?<=: .*): .*$/, "")).sort()).toEqual([
    'Invalid value: "foo-"',
    "Invalid value: 70000",
    'Unsupported value: "Sometimes"',
  ]);
});

test("Ingresses have upstream's paths, and a class is in no namespace", () => {
  const found = SERVED_KINDS.filter(({ kind }) => kind.startsWith("Ingress"));
  expect(found).toMatchObject([
    { group: "networking.k8s.io", version: "v1", plural: "ingresses", namespaced: true },
    { group: "networking.k8s.io", version: "v1", plural: "ingressclasses", namespaced: false },
  ]);
  const metadata = { name: "a", namespace: "default" };
  const sent = { ...object("IngressClass", SPECS.IngressClass!), apiVersion: "networking.k8s.io/v1", metadata };
  const decoded = found[1]?.decode?.(sent, { nodeName: "node1" } as never);
  expect(decoded).toMatchObject({ causes: [], warnings: [] });
  expect(decoded?.object.metadata).toEqual({ name: "a" });
});
