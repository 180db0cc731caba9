import { describe, expect, test } from "bun:test";
import type { Strictness } from "../../../src/manifest/object-reading.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";
import { FIELD_SUPPORT } from "../../../src/manifest/support/field-support.ts";

function read(spec: string, strictness: Strictness = "strict") {
  const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: "b:1"}]\n${spec}`;
  return readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file", strictness });
}

const CLAIM = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}";

const token = "projected: {sources: [{serviceAccountToken: {path: t}}]}";
const device = "initContainers: [{name: i, image: b, volumeDevices: [{name: v, devicePath: /d}]}]";
const claim = "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]";
test.each([
  ["serviceAccountName: robot", "serviceAccountName"],
  ["os: {name: windows}", "os"],
  ["securityContext: {supplementalGroupsPolicy: Strict}", "securityContext.supplementalGroupsPolicy"],
  ["volumes: [{name: v, csi: {driver: a.b}}]", "volumes[0].csi"],
  ["volumes: [{name: v, gitRepo: {repository: x}}]", "volumes[0].gitRepo"],
  [
    `serviceAccountName: default\n  volumes: [{name: v, ${token}}]`,
    "volumes[0].projected.sources[0].serviceAccountToken",
  ],
  ["resourceClaims: [{name: c, resourceClaimName: x}]", "resourceClaims"],
  [`volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: ${CLAIM}}}}]`, "volumes[0].ephemeral"],
  [`${device}\n  ${claim}`, "initContainers[0].volumeDevices"],
])("not supported here: an error, and the pod does not run, but it is valid in Kubernetes: %s", (spec, field) => {
  const { results, pods } = read(`  ${spec}\n`);
  const errors = results[0]!.findings.filter((finding) => finding.severity === "error");
  expect(errors).toMatchObject([{ code: "unsupported", field: `spec.${field}` }]);
  expect(results[0]).toMatchObject({ valid: true, ok: false, pod: expect.anything() });
  expect(pods).toEqual([]);
});

test.each([
  ["affinity: {nodeAffinity: {}}", "affinity"],
  ["tolerations: [{key: a, operator: Exists}]", "tolerations"],
  ["schedulerName: mine", "schedulerName"],
  ["preemptionPolicy: Never", "preemptionPolicy"],
  ["readinessGates: [{conditionType: x/y}]", "readinessGates"],
  ["priorityClassName: high", "priorityClassName"],
  ["volumes: [{name: v, emptyDir: {medium: memory}}]", "volumes[0].emptyDir.medium"],
])("has no effect here: a warning, and the pod runs: %s", (spec, field) => {
  const { findings, pods } = read(`  ${spec}\n`);
  expect(findings).toMatchObject([{ code: "ignored", severity: "warning", field: `spec.${field}` }]);
  expect(pods).toHaveLength(1);
});

test("a service account is an error with --validate=strict only: otherwise the pod runs without a token", () => {
  const { findings, pods } = read("  serviceAccountName: robot\n", "standard");
  expect(findings).toMatchObject([{ code: "ignored", severity: "warning", field: "spec.serviceAccountName" }]);
  expect(pods).toHaveLength(1);
});

test.each([
  "  schedulerName: default-scheduler\n",
  "  tolerations: [{operator: Exists, effect: NoExecute}]\n",
  "  serviceAccountName: default\n",
  "  serviceAccountName: robot\n  automountServiceAccountToken: false\n",
  "  nodeName: other\n",
  "  priorityClassName: system-node-critical\n",
  "  enableServiceLinks: false\n",
  "  os: {name: linux}\n",
])("no finding: %s", (spec) => expect(read(spec).findings).toEqual([]));

test("an extended resource is accepted with a warning that it has no effect", () => {
  const { findings } = readResources("{limits: {example.com/dongle: 1}}");
  expect(findings).toMatchObject([{ code: "ignored", field: "spec.containers[0].resources.limits" }]);
});

test("each field is in the table once", () => {
  const paths = FIELD_SUPPORT.map(({ path }) => path);
  expect(paths.filter((path, index) => paths.indexOf(path) !== index)).toEqual([]);
});

const text =
  "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: b, comand: [x]}]\n";
test.each([
  ["strict", "error", 0],
  ["warn", "warning", 1],
  ["ignore", undefined, 1],
] as const)("unknown fields: %s", (strictness, severity, pods) => {
  const result = readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file", strictness });
  expect(result.findings[0]?.severity).toBe(severity as never);
  expect(result.pods).toHaveLength(pods);
  expect(result.results[0]!.valid).toBe(true);
});

function readResources(resources: string, spec = "") {
  const container = `{name: a, image: "b:1", resources: ${resources}}`;
  const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [${container}]\n${spec}`;
  return readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
}

test.each([
  ["{limits: {memory: 100m}}", "spec.containers[0].resources.limits[memory]", "counts as 1 byte"],
  [
    "{limits: {memory: 64Mi}, requests: {memory: 8500m}}",
    "spec.containers[0].resources.requests[memory]",
    "counts as 9 bytes",
  ],
  ["{limits: {ephemeral-storage: 5m}}", "spec.containers[0].resources.limits[ephemeral-storage]", "5Mi mebibytes"],
])("%s: a warning, and the pod runs", (resources, field, message) => {
  const { findings, pods } = readResources(resources);
  expect(findings).toMatchObject([{ code: "ignored", severity: "warning", field, line: 5 }]);
  expect(findings[0]?.message).toContain(message);
  expect(pods).toHaveLength(1);
});

test("of the pod as a whole, too", () => {
  const { findings } = readResources("{}", "  resources: {limits: {memory: 1m}}\n");
  expect(findings).toMatchObject([{ severity: "warning", field: "spec.resources.limits[memory]" }]);
});

test.each(["{limits: {cpu: 100m, memory: 1.1Mi}}", "{requests: {memory: 0}}"])("%s: no finding", (resources) =>
  expect(readResources(resources).findings).toEqual([]),
);

function warningsOf(pod: { annotations?: object; container?: object }): { field: string; message: string }[] {
  const text = JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", annotations: pod.annotations },
    spec: { containers: [{ name: "a", image: "b:1", ...pod.container }], volumes: [{ name: "data", emptyDir: {} }] },
  });
  const { findings, pods } = readManifest(Buffer.from(text), { file: "f.json", nodeName: "n", source: "file" });
  expect(pods).toHaveLength(1);
  return findings.map(({ field, message }) => ({ field, message }));
}

test.each([
  ["http", [{ containerPort: 80, name: "htpt" }], 'no port of the container has the name "http"; did you mean "htpt"?'],
  ["http", undefined, 'no port of the container has the name "http"; write its number'],
  ["http", [{ containerPort: 80, name: "http" }], undefined],
])("a probe of the port %s, where the container has %j", (port, ports, message) => {
  const want = message === undefined ? [] : [{ field: "spec.containers[0].livenessProbe.tcpSocket.port", message }];
  expect(warningsOf({ container: { ports, livenessProbe: { tcpSocket: { port } } } })).toEqual(want);
});

test.each([
  [{ workingDir: "srv" }, "workingDir", "must be an absolute path"],
  [{ securityContext: { capabilities: { add: ["NETADMIN"] } } }, "securityContext.capabilities.add[0]", "NET_ADMIN?"],
  [
    { securityContext: { capabilities: { drop: ["all", "CAP_X"] } } },
    "securityContext.capabilities.drop[1]",
    "no such",
  ],
])("what no engine takes is told: %j", (container, field, message) => {
  expect(warningsOf({ container })).toEqual([
    { field: `spec.containers[0].${field}`, message: expect.stringContaining(message) },
  ]);
});

describe("annotations of kubelet-ts", () => {
  test.each([
    ["kubelet-ts.io/netwrok", "lan", 'there is no such annotation; did you mean "kubelet-ts.io/network"?'],
    ["kubelet-ts.io/xyz", "1", "the annotations are kubelet-ts.io/network, "],
    ["kubelet-ts.io/ip", "300.1.1.1", 'must be an IPv4 or IPv6 address (found "300.1.1.1")'],
    ["kubelet-ts.io/network", "container:abc", "must be the name of a Docker network"],
    ["kubelet-ts.io/ulimits", "nofile=9:8", "must be limits such as nofile=1024:65536"],
    ["kubelet-ts.io/init", "yes", "must be true or false"],
    ["kubelet-ts.io/log-options", "max-size=0", "must be max-size=SIZE and max-file=NUMBER"],
    ["kubelet-ts.io/fill-volumes", "a, b", "must be names of volumes of the pod, separated by commas"],
    ["kubelet-ts.io/fill-volumes", "dat", 'the pod has no volume "dat"; did you mean "data"?'],
    ["kubelet-ts.io/fill-volumes", "data", 'has no effect on volume "data", which is no persistentVolumeClaim'],
    ["kubelet-ts.io/image-healthcheck", "aa=liveness", 'the pod has no container "aa"'],
    ["kubelet-ts.io/image-update-lock", "dta/a.lock", 'the pod has no volume "dta"; did you mean "data"?'],
    ["kubelet-ts.io/image-healthcheck", "startup", "must be readiness, liveness, or CONTAINER=KIND"],
    ["kubelet-ts.io/image-healthcheck", "a=liveness,a=readiness", "must be readiness, liveness, or CONTAINER=KIND"],
    ["kubelet-ts.io/empty-dir-options", "data:mode=0778", "must be VOLUME:OPTIONS separated by semicolons"],
    ["kubelet-ts.io/empty-dir-options", "data:uid=4294967295", "must be VOLUME:OPTIONS"],
    ["kubelet-ts.io/empty-dir-options", "data:mode=0700;data:uid=1", "must be VOLUME:OPTIONS"],
    ["kubelet-ts.io/empty-dir-options", "dat:mode=0700", 'the pod has no volume "dat"; did you mean "data"?'],
    ["kubelet-ts.io/ulimits", "files=9", "must be limits such as nofile=1024:65536"],
    ["kubelet-ts.io/container-labels", "kubelet-ts.io/node=x", "must be lines key=value"],
    ["kubelet-ts.io/network-aliases", "a,,b", "must be names of letters, digits"],
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
      "kubelet-ts.io/image-update-lock": "data/a.lock",
      "kubelet-ts.io/image-healthcheck": "liveness,a=readiness",
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
