import { expect, test } from "bun:test";
import { findDanglingReferences } from "../../../src/cli/validate-inputs.ts";
import { readManifest } from "../../../src/manifest/read-manifest.ts";

const read = (text: string) => readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
const base64 = (text: string) => Buffer.from(text).toString("base64");

test("ConfigMap and Secret are in the file of the pod", () => {
  const { configMaps, secrets, pods, findings } = read(`
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg, namespace: prod}
immutable: true
data: {key: value, __proto__: x}
binaryData: {bin: aGk=}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {a: aGk=, b: aGk=}
stringData: {b: plain}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a, image: "b:1"}]}
`);
  expect(findings).toEqual([]);
  expect(configMaps[0]).toMatchObject({
    metadata: { name: "cfg", namespace: "prod" },
    immutable: true,
    binaryData: { bin: "aGk=" },
  });
  expect(Object.entries(configMaps[0]!.data!)).toEqual([
    ["key", "value"],
    ["__proto__", "x"],
  ]);
  expect(secrets[0]).toEqual({
    metadata: { name: "s", namespace: "default" },
    type: "Opaque",
    data: { a: "aGk=", b: base64("plain") },
  });
  expect(pods).toHaveLength(1);
});

test("a list of numbers is read as bytes, as Go's JSON does it", () => {
  const { secrets, findings } = read(
    "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: [104, 105], b: []}\n",
  );
  expect(findings).toEqual([]);
  expect(secrets[0]?.data).toEqual({ a: "aGk=", b: "" });
});

const CREDENTIALS = "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: nope}";
const ACCOUNT = "metadata.annotations[kubernetes.io/service-account.name] FieldValueRequired";
test.each([
  ["ConfigMap", "data: {a/b: x}", "data[a/b] FieldValueInvalid"],
  ["ConfigMap", "data: {a: x}\nbinaryData: {a: aGk=}", "data[a] FieldValueInvalid"],
  ["ConfigMap", "data: {a: 5}", "data[a] DecodeError"],
  ["ConfigMap", "binaryData: {a: '***'}", "binaryData[a] DecodeError"],
  ["ConfigMap", `data: {a: ${"x".repeat(1024 * 1024 + 1)}}`, "data FieldValueTooLong"],
  ["Secret", "data: {a: not-base64}", "data[a] DecodeError"],
  ["Secret", "data: {a: [104, 256]}", "data[a] DecodeError"],
  ["Secret", "data: {a: [x]}", "data[a] DecodeError"],
  ["Secret", "type: kubernetes.io/tls\ndata: {tls.crt: aGk=}", "data[tls.key] FieldValueRequired"],
  ["Secret", "type: kubernetes.io/ssh-auth", "data[ssh-privatekey] FieldValueRequired"],
  ["Secret", CREDENTIALS, "data[.dockerconfigjson] FieldValueInvalid"],
  ["Secret", "type: kubernetes.io/basic-auth", "data[username] FieldValueRequired"],
  ["Secret", "type: kubernetes.io/service-account-token", ACCOUNT],
])("mistakes: %s %#", (kind, lines, want) => {
  const { findings, secrets, configMaps } = read(`apiVersion: v1\nkind: ${kind}\nmetadata: {name: x}\n${lines}\n`);
  expect(`${findings[0]?.field} ${findings[0]?.type}`).toBe(want);
  expect([...secrets, ...configMaps]).toEqual([]);
});

test.each([
  "data: {a: hunter2!}",
  "stringData: {a: [hunter2]}",
  "stringData: hunter2",
  "stringData: {a: *hunter2}",
  "stringData: {a: 'hunter2",
  "stringData: {a: hunter2: x}",
  "stringData:\n  a: @hunter2",
  "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: hunter2}",
  "stringData: {a: !!int hunter2}",
  "stringData: {a: ! hunter2 hunter2 ]",
])("nothing of a Secret's data is repeated: %j", (lines) => {
  const { findings } = read(`apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n${lines}\n`);
  expect(findings.length).toBeGreaterThan(0);
  expect(JSON.stringify(findings)).not.toContain("hunter2");
});

test("references to what is not there are named with their position; optional ones are not", () => {
  const { pods, configMaps, secrets } = read(`
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: a
    image: b:1
    envFrom: [{configMapRef: {name: env}}, {secretRef: {name: maybe, optional: true}}]
    env:
    - {name: A, valueFrom: {configMapKeyRef: {name: cfg, key: missing}}}
    - {name: B, valueFrom: {secretKeyRef: {name: s, key: constructor}}}
    - {name: C, valueFrom: {configMapKeyRef: {name: cfg, key: here}}}
  volumes:
  - {name: v, secret: {secretName: gone}}
  - {name: p, projected: {sources: [{configMap: {name: cfg, items: [{key: nope, path: x}]}}]}}
--- {apiVersion: v1, kind: ConfigMap, metadata: {name: cfg}, data: {here: x}}
--- {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: aGk=}}
`);
  const index = {
    configMaps: new Map([["default/cfg", configMaps[0]!]]),
    secrets: new Map([["default/s", secrets[0]!]]),
  };
  const dangling = findDanglingReferences(pods[0]!.pod, index);
  expect(dangling.map(({ path, message }) => `${path}: ${message.split(":")[0]}`)).toEqual([
    'spec.volumes[0].secret.secretName: there is no Secret "default/gone"',
    'spec.volumes[1].projected.sources[0].configMap.name: ConfigMap "default/cfg" has no key "nope"',
    'spec.containers[0].envFrom[0].configMapRef.name: there is no ConfigMap "default/env"',
    'spec.containers[0].env[0].valueFrom.configMapKeyRef.name: ConfigMap "default/cfg" has no key "missing"',
    'spec.containers[0].env[1].valueFrom.secretKeyRef.name: Secret "default/s" has no key "constructor"',
  ]);
});
