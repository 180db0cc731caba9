import { describe, expect, test } from "bun:test";
import type { Container, Pod, Volume } from "../../src/base/api/pod.ts";
import type { ObjectIndex } from "../../src/base/model/desired-state.ts";
import {
  computeSourceRevision,
  environmentReferences,
  podReferences,
  volumeReferences,
} from "../../src/plan/object-references.ts";

const container = (fields: Partial<Container>) => ({ name: "app", resources: {}, ...fields }) as Container;
const pod = (spec: Partial<Pod["spec"]>) =>
  ({ metadata: { name: "p", namespace: "shop" }, spec: { containers: [], ...spec } }) as unknown as Pod;

const KEYED = container({
  env: [
    { name: "A", valueFrom: { configMapKeyRef: { name: "cfg", key: "a" } } },
    { name: "B", valueFrom: { secretKeyRef: { name: "sec", key: "b" } } },
    { name: "C", value: "$(A)" },
  ],
});
const WHOLE = container({ envFrom: [{ configMapRef: { name: "cfg" } }, { secretRef: { name: "sec" } }] });

function objects(config: Record<string, string> | undefined, secret: Record<string, string> = {}): ObjectIndex {
  return {
    configMaps: new Map(config ? [["shop/cfg", { metadata: { name: "cfg" }, data: config }]] : []),
    secrets: new Map([["shop/sec", { metadata: { name: "sec" }, type: "Opaque", data: secret }]]),
  };
}

const shown = ({ kind, fullName, keys, field }: ReturnType<typeof volumeReferences>[number]) =>
  `${field.join(".")}: ${kind} ${fullName} ${keys ?? "*"}`;

test("what a container's environment uses", () => {
  expect(environmentReferences(pod({}), KEYED).map(shown)).toEqual([
    "env.0.valueFrom.configMapKeyRef.name: ConfigMap shop/cfg a",
    "env.1.valueFrom.secretKeyRef.name: Secret shop/sec b",
  ]);
  expect(environmentReferences(pod({}), WHOLE).map(shown)).toEqual([
    "envFrom.0.configMapRef.name: ConfigMap shop/cfg *",
    "envFrom.1.secretRef.name: Secret shop/sec *",
  ]);
});

test("what a volume's files are made from", () => {
  const items = [{ key: "a", path: "p/a" }];
  const volumes: Volume[] = [
    { name: "c", configMap: { name: "cfg", defaultMode: 420, items } },
    { name: "s", secret: { secretName: "sec", defaultMode: 420 } },
    {
      name: "p",
      projected: { defaultMode: 420, sources: [{ configMap: { name: "x" } }, { secret: { name: "y", items } }] },
    },
    { name: "e", emptyDir: {} },
  ];
  expect(volumes.map((volume) => volumeReferences(pod({}), volume).map(shown))).toEqual([
    ["configMap.name: ConfigMap shop/cfg a"],
    ["secret.secretName: Secret shop/sec *"],
    ["projected.sources.0.configMap.name: ConfigMap shop/x *", "projected.sources.1.secret.name: Secret shop/y a"],
    [],
  ]);
  const all = pod({ containers: [KEYED], initContainers: [WHOLE], volumes, imagePullSecrets: [{ name: "reg" }] });
  expect(podReferences(all).map(({ kind, fullName }) => `${kind} ${fullName}`)).toEqual([
    "ConfigMap shop/cfg",
    "Secret shop/sec",
    "ConfigMap shop/x",
    "Secret shop/y",
    "Secret shop/reg",
  ]);
});

describe("the source revision", () => {
  const base = objects({ a: "1", z: "1" }, { b: "MQ==", z: "MQ==" });
  const revision = (of: Container, index: ObjectIndex) => computeSourceRevision(pod({}), of, index);

  test("is empty where no object is used, else 16 hex digits", () => {
    expect(revision(container({ env: [{ name: "A", value: "1" }] }), base)).toBe("");
    expect(revision(KEYED, base)).toMatch(/^[0-9a-f]{16}$/);
  });

  const secret = { b: "MQ==", z: "MQ==" };
  test.each<[when: string, index: ObjectIndex, keyed: boolean, whole: boolean]>([
    ["the same", objects({ z: "1", a: "1" }, { z: "MQ==", b: "MQ==" }), false, false],
    ["a used key changes", objects({ a: "2", z: "1" }, secret), true, true],
    ["another key changes", objects({ a: "1", z: "2" }, secret), false, true],
    ["a key appears", objects({ a: "1", z: "1", n: "" }, secret), false, true],
    ["a used key vanishes", objects({ z: "1" }, secret), true, true],
    ["the object vanishes", objects(undefined, secret), true, true],
    ["a secret changes", objects({ a: "1", z: "1" }, { ...secret, b: "Mg==" }), true, true],
  ])("%s", (_when, index, keyed, whole) => {
    expect(revision(KEYED, index) !== revision(KEYED, base)).toBe(keyed);
    expect(revision(WHOLE, index) !== revision(WHOLE, base)).toBe(whole);
  });

  test("an empty object is not a missing one", () => {
    expect(revision(WHOLE, objects({}))).not.toBe(revision(WHOLE, objects(undefined)));
  });
});
