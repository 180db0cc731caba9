import { describe, expect, test } from "bun:test";
import type { Strictness } from "../../../src/manifest/manifest-result.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";
import { FIELD_SUPPORT } from "../../../src/manifest/support/field-support.ts";

function read(spec: string, strictness: Strictness = "strict") {
  const text = `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: "b:1"}]\n${spec}`;
  return readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file", strictness });
}

const CLAIM = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}";

describe("cannot be done here: an error, and the pod does not run, but Kubernetes would take it", () => {
  test.each([
    ["  serviceAccountName: robot\n", "spec.serviceAccountName"],
    ["  os: {name: windows}\n", "spec.os"],
    ["  securityContext: {supplementalGroupsPolicy: Strict}\n", "spec.securityContext.supplementalGroupsPolicy"],
    ["  volumes: [{name: v, csi: {driver: a.b}}]\n", "spec.volumes[0].csi"],
    ["  volumes: [{name: v, gitRepo: {repository: x}}]\n", "spec.volumes[0].gitRepo"],
    [
      "  serviceAccountName: default\n  volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]\n",
      "spec.volumes[0].projected.sources[0].serviceAccountToken",
    ],
    ["  resourceClaims: [{name: c, resourceClaimName: x}]\n", "spec.resourceClaims"],
    ["  volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: CLAIM}}}]\n", "spec.volumes[0].ephemeral"],
    [
      "  initContainers: [{name: i, image: b, volumeDevices: [{name: v, devicePath: /d}]}]\n  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]\n",
      "spec.initContainers[0].volumeDevices",
    ],
  ])("%s", (spec, field) => {
    const { results, pods } = read(spec.replace("CLAIM", CLAIM));
    const errors = results[0]!.findings.filter((finding) => finding.severity === "error");
    expect(errors.map(({ code, field: at }) => [code, at])).toEqual([["unsupported", field]]);
    expect(results[0]).toMatchObject({ valid: true, ok: false });
    expect(results[0]!.pod).toBeDefined();
    expect(pods).toEqual([]);
  });
});

describe("means nothing here: a warning, and the pod runs", () => {
  test.each([
    ["  affinity: {nodeAffinity: {}}\n", "spec.affinity"],
    ["  tolerations: [{key: a, operator: Exists}]\n", "spec.tolerations"],
    ["  schedulerName: mine\n", "spec.schedulerName"],
    ["  preemptionPolicy: Never\n", "spec.preemptionPolicy"],
  ])("%s", (spec, field) => {
    const { results, pods } = read(spec);
    expect(results[0]!.findings.map(({ code, severity, field: at }) => [code, severity, at])).toEqual([
      ["ignored", "warning", field],
    ]);
    expect(pods).toHaveLength(1);
  });
});

test("a service account is an error with --validate=strict only: otherwise the pod runs without a token", () => {
  const { results, pods } = read("  serviceAccountName: robot\n", "standard");
  expect(results[0]!.findings.map(({ code, severity, field }) => [code, severity, field])).toEqual([
    ["ignored", "warning", "spec.serviceAccountName"],
  ]);
  expect(pods).toHaveLength(1);
});

test.each([
  "  schedulerName: default-scheduler\n",
  "  tolerations: [{operator: Exists, effect: NoExecute}]\n",
  "  serviceAccountName: default\n",
  "  serviceAccountName: robot\n  automountServiceAccountToken: false\n",
  "  nodeName: other\n",
  "  enableServiceLinks: false\n",
  "  os: {name: linux}\n",
])("not worth a word: %s", (spec) => expect(read(spec).findings).toEqual([]));

test("an extended resource is accepted, and said to have no effect", () => {
  const text =
    'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: "b:1", resources: {limits: {example.com/dongle: 1}}}]\n';
  const { findings } = readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
  expect(findings.map(({ code, field }) => [code, field])).toEqual([
    ["ignored", "spec.containers[0].resources.limits"],
  ]);
});

test("each field is in the table once", () => {
  const paths = FIELD_SUPPORT.map(({ path }) => path);
  expect(paths.filter((path, index) => paths.indexOf(path) !== index)).toEqual([]);
});

describe("unknown fields", () => {
  const text =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: b, comand: [x]}]\n";
  test.each([
    ["strict", "error", 0],
    ["warn", "warning", 1],
    ["ignore", undefined, 1],
  ] as const)("%s", (strictness, severity, pods) => {
    const result = readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file", strictness });
    expect(result.findings[0]?.severity).toBe(severity as never);
    expect(result.pods).toHaveLength(pods);
    expect(result.results[0]!.valid).toBe(true);
  });
});
