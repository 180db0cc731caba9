import { describe, expect, test } from "bun:test";
import type { Deployment } from "../../../src/base/api/workload.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

const read = (manifest: unknown) => {
  const text = typeof manifest === "string" ? manifest : JSON.stringify(manifest);
  return readManifest(Buffer.from(text), { file: "web.yaml", nodeName: "node1", source: "file" });
};

const template = (spec: object = {}, metadata: object = { labels: { app: "web" } }) => ({
  metadata,
  spec: { containers: [{ name: "app", image: "busybox:1.35" }], ...spec },
});

const workload = (kind: string, spec: object = {}, apiVersion = "apps/v1") => ({
  apiVersion,
  kind,
  metadata: { name: "web" },
  spec: { selector: { matchLabels: { app: "web" } }, template: template(), ...spec },
});

describe("defaults", () => {
  test("a Deployment of apps/v1", () => {
    const { objects, findings } = read(workload("Deployment"));
    expect(findings).toEqual([]);
    expect(objects[0]).toMatchObject({
      kind: "Deployment",
      source: "file",
      origin: "web.yaml",
      object: {
        metadata: { name: "web", namespace: "default" },
        spec: {
          replicas: 1,
          strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
          revisionHistoryLimit: 10,
          progressDeadlineSeconds: 600,
          template: { spec: { restartPolicy: "Always", containers: [{ imagePullPolicy: "IfNotPresent" }] } },
        },
      },
    });
  });

  test.each([
    ["extensions/v1beta1", { maxSurge: 1, maxUnavailable: 1 }, 2147483647],
    ["apps/v1beta1", { maxSurge: "25%", maxUnavailable: "25%" }, 2],
    ["apps/v1beta2", { maxSurge: "25%", maxUnavailable: "25%" }, 10],
  ] as const)("a Deployment of %s is read with a warning", (apiVersion, rollingUpdate, revisionHistoryLimit) => {
    const { objects, findings } = read(workload("Deployment", {}, apiVersion));
    expect(findings).toMatchObject([{ severity: "warning", field: "apiVersion" }]);
    expect(objects[0]!.object.spec).toMatchObject({ strategy: { rollingUpdate }, revisionHistoryLimit });
  });

  test.each([
    [undefined, { type: "RollingUpdate", rollingUpdate: { partition: 0 } }],
    [{ rollingUpdate: { partition: 2 } }, { type: "RollingUpdate", rollingUpdate: { partition: 2 } }],
    [{ type: "OnDelete" }, { type: "OnDelete" }],
  ])("a StatefulSet with the update strategy %j", (updateStrategy, expected) => {
    const claim = { metadata: { name: "d" }, spec: {} };
    const { objects } = read(workload("StatefulSet", { updateStrategy, volumeClaimTemplates: [claim] }));
    expect(objects[0]!.object.spec).toMatchObject({
      updateStrategy: expected,
      volumeClaimTemplates: [{ apiVersion: "v1", kind: "PersistentVolumeClaim", ...claim }],
    });
  });

  test("the selector of old groups is that of the template's labels", () => {
    const { objects } = read(workload("Deployment", { selector: undefined }, "extensions/v1beta1"));
    expect((objects[0]!.object.spec as Deployment["spec"]).selector).toEqual({ matchLabels: { app: "web" } });
  });

  test("a ReplicationController selects the labels of its template", () => {
    const { objects, findings } = read(workload("ReplicationController", { selector: undefined }, "v1"));
    expect(findings).toEqual([]);
    expect(objects[0]!.object.spec).toMatchObject({ selector: { app: "web" } });
    expect({ ...objects[0]!.object.metadata.labels }).toEqual({ app: "web" });
  });

  test("items of a typed list need no kind", () => {
    const { kind: _kind, apiVersion: _apiVersion, ...item } = workload("Deployment");
    const { objects, findings } = read({ apiVersion: "apps/v1", kind: "DeploymentList", items: [item] });
    expect(findings).toEqual([]);
    expect(objects).toHaveLength(1);
  });
});

const update = (rollingUpdate: object) => ({ strategy: { rollingUpdate } });
const pods = (spec: object) => ({ template: template(spec) });
const nameless = pods({ containers: [{ image: "busybox:1.35" }] });
const other = { selector: { matchLabels: { app: "db" } } };

test.each([
  [{ selector: undefined }, "selector", "Required"],
  [{ selector: {} }, "selector", "Invalid"],
  [other, "template.metadata.labels", "Invalid"],
  [{ replicas: -1 }, "replicas", "Invalid"],
  [pods({ restartPolicy: "Never" }), "template.spec.restartPolicy", "NotSupported"],
  [pods({ activeDeadlineSeconds: 5 }), "template.spec.activeDeadlineSeconds", "Forbidden"],
  [{ strategy: { type: "Blue" } }, "strategy", "NotSupported"],
  [{ strategy: { type: "Recreate", rollingUpdate: { maxSurge: 1 } } }, "strategy.rollingUpdate", "Forbidden"],
  [update({ maxSurge: 0, maxUnavailable: "0%" }), "strategy.rollingUpdate.maxUnavailable", "Invalid"],
  [update({ maxUnavailable: "101%" }), "strategy.rollingUpdate.maxUnavailable", "Invalid"],
  [update({ maxSurge: "few" }), "strategy.rollingUpdate.maxSurge", "Invalid"],
  [{ minReadySeconds: 600 }, "progressDeadlineSeconds", "Invalid"],
  [nameless, "template.spec.containers[0].name", "Required"],
])("mistakes, as the API server of 1.20 has them: %j: %s", (spec, field, type) => {
  const { objects, findings } = read(workload("Deployment", spec));
  expect(objects).toEqual([]);
  const want = { field: `spec.${field}`, type: `FieldValue${type}`, severity: "error", code: "invalid" };
  expect(findings).toMatchObject([want]);
});

test("labels that do not match the selector are shown", () => {
  const [finding] = read(workload("Deployment", other)).findings;
  expect(finding?.message).toContain("the pods have app=web, it wants app=db");
});

test.each([
  ["volumeMode", "Block", "mount it with volumeMounts"],
  ["storageClassName", "fast", "no class makes volumes here"],
  ["dataSource", { kind: "PersistentVolumeClaim", name: "a" }, "the claim begins empty"],
])("a finding says what a claim gets: %s: %s", (field, value, says) => {
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  const claim = (more: object) =>
    read({ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "c" }, spec: { ...spec, ...more } });
  expect(claim({}).findings).toEqual([]);
  const { objects, findings } = claim({ [field]: value });
  expect(objects).toHaveLength(1);
  expect(findings).toMatchObject([{ field: `spec.${field}`, severity: "warning" }]);
  expect(findings[0]?.message).toContain(says);
});

test.each([
  ["0 0 31 2,4 *", ["no day is in this month: it never runs"]],
  ["0 0 29 2 *", []],
])("a finding says that a CronJob never runs: %s", (schedule, messages) => {
  const jobTemplate = { spec: { template: template({ restartPolicy: "Never" }) } };
  const { findings } = read(workload("CronJob", { schedule, jobTemplate }, "batch/v1"));
  expect(findings.filter(({ field }) => field === "spec.schedule").map(({ message }) => message)).toEqual(messages);
});

const port = { containers: [{ name: "app", image: "busybox:1.35", ports: [{ containerPort: 80, hostPort: 8080 }] }] };
const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "web" } } };
const apart = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
test.each([
  ["a rolling update of a host port", { template: template(port) }, "spec.strategy", "host port 8080"],
  ["replicas of a host port", { replicas: 2, template: template(port) }, "spec.replicas", "one of them gets it"],
  ["replicas that keep apart", { replicas: 3, template: template(apart) }, "spec.replicas", "all 3 run on it"],
])("a finding says what one node cannot do: %s", (_what, spec, field, says) => {
  const { objects, findings } = read(workload("Deployment", spec));
  expect(objects).toHaveLength(1);
  const found = findings.find((finding) => finding.field === field);
  expect(found).toMatchObject({ severity: "warning", message: expect.stringContaining(says) });
});

const subset = (address: object, ...ports: object[]) => ({ subsets: [{ addresses: [address], ports }] });
const slice = (address: string, addressType = "IPv4", more: object = {}) => ({
  addressType,
  endpoints: [{ addresses: [address] }],
  ...more,
});
const service = (more: object) => ({ spec: { ports: [{ port: 80 }], ...more } });
// The verdicts are those of kube-apiserver 1.20.2, or of the version that brought the field.
test.each<[string, object, string | undefined]>([
  ["Service", service({ externalIPs: ["203.0.113.7"], externalTrafficPolicy: "Local" }), undefined],
  ["Service", service({ externalTrafficPolicy: "Local" }), "spec.externalTrafficPolicy"],
  ["Service", service({ externalIPs: ["127.0.0.1"] }), "spec.externalIPs[0]"],
  ["Service", service({ internalTrafficPolicy: "Node" }), "spec.internalTrafficPolicy"],
  ["Service", service({ trafficDistribution: "PreferSameZone" }), undefined],
  ["Service", service({ trafficDistribution: "Near" }), "spec.trafficDistribution"],
  ["Service", service({ allocateLoadBalancerNodePorts: false }), "spec.allocateLoadBalancerNodePorts"],
  ["Service", service({ loadBalancerClass: "a/b" }), "spec.loadBalancerClass"],
  ["Service", service({ type: "LoadBalancer", loadBalancerClass: "a b" }), "spec.loadBalancerClass"],
  ["Service", service({ loadBalancerSourceRanges: [] }), undefined],
  ["Service", service({ loadBalancerSourceRanges: ["10.0.0.0/8"] }), "spec.loadBalancerSourceRanges"],
  ["Endpoints", subset({ ip: "192.0.2.1", hostname: "a" }, { port: 1 }), undefined],
  ["Endpoints", { subsets: [{ notReadyAddresses: [{ ip: "192.0.2.1" }] }] }, undefined],
  ["Endpoints", { subsets: [{ ports: [{ port: 1 }] }] }, "subsets[0]"],
  ["Endpoints", subset({}), "subsets[0].addresses[0].ip"],
  ["Endpoints", subset({ ip: "127.1.2.3" }), "subsets[0].addresses[0].ip"],
  ["Endpoints", subset({ ip: "0:0:0:0:0:0:0:1" }), "subsets[0].addresses[0].ip"],
  ["Endpoints", subset({ ip: "FE80:0::1" }), "subsets[0].addresses[0].ip"],
  ["Endpoints", subset({ ip: "224.0.1.9" }), undefined],
  ["Endpoints", subset({ ip: "192.0.2.1", hostname: "a.b" }), "subsets[0].addresses[0].hostname"],
  ["Endpoints", subset({ ip: "192.0.2.1", nodeName: "N_1" }), "subsets[0].addresses[0].nodeName"],
  ["Endpoints", subset({ ip: "192.0.2.1" }, { name: "a", port: 1 }, { port: 2 }), "subsets[0].ports[1].name"],
  ["Endpoints", subset({ ip: "192.0.2.1" }, { port: 1, protocol: "tcp" }), "subsets[0].ports[0].protocol"],
  ["Endpoints", subset({ ip: "192.0.2.1" }, { port: 65536 }), "subsets[0].ports[0].port"],
  ["EndpointSlice", slice("192.0.2.1"), undefined],
  ["EndpointSlice", slice("2001:db8::1"), "endpoints[0].addresses[0]"],
  ["EndpointSlice", slice("a.b", "FQDN"), undefined],
  ["EndpointSlice", slice("192.0.2.1", "IP"), "addressType"],
  ["EndpointSlice", slice("192.0.2.1", "IPv4", { endpoints: [{ addresses: [] }] }), "endpoints[0].addresses"],
  ["EndpointSlice", slice("192.0.2.1", "IPv4", { ports: [{ port: 1 }, { port: 2 }] }), "ports[1].name"],
])("%s: %j is refused for %p", (kind, fields, field) => {
  const apiVersion = kind === "EndpointSlice" ? "discovery.k8s.io/v1" : "v1";
  const { findings } = read({ apiVersion, kind, metadata: { name: "x" }, ...fields });
  expect(findings.filter(({ severity }) => severity === "error").map((it) => it.field)).toEqual(field ? [field] : []);
});
