import { describe, expect, test } from "bun:test";
import type { Volume } from "../../../src/base/api/pod.ts";
import type { ObjectIndex } from "../../../src/base/model/desired-state.ts";
import { computePayload } from "../../../src/kubelet/volumes/own-volumes.ts";
import { aContainer, aPod } from "../../support/builders.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const OBJECTS: ObjectIndex = {
  configMaps: new Map([
    ["default/cfg", { metadata: { name: "cfg" }, data: { a: "1", b: "2" }, binaryData: { bin: "AP8=" } }],
    ["other/cfg2", { metadata: { name: "cfg2" }, data: { a: "1" } }],
  ]),
  secrets: new Map([["default/sec", { metadata: { name: "sec" }, type: "Opaque", data: { pw: base64("geheim") } }]]),
};
const FACTS = { objects: OBJECTS, allocatable: { cpuMillis: 2000, memoryBytes: 1024, ephemeralStorageBytes: 0 } };
const POD = aPod(
  { containers: [aContainer({ resources: { limits: { cpu: "250m" } } })] },
  { labels: { app: "web" }, annotations: { n: "1" } },
);

function files(source: Omit<Volume, "name">) {
  try {
    const payload = computePayload({ name: "v", ...source }, POD, FACTS);
    const shown = [...payload].map(([path, { text, encoding, mode }]) => [
      path,
      `${mode.toString(8)} ${Buffer.from(text, encoding)}`,
    ]);
    return Object.fromEntries(shown);
  } catch (error) {
    return (error as Error).message;
  }
}

test.each<{ when: string; configMap: NonNullable<Volume["configMap"]>; want: string | Record<string, string> }>([
  {
    when: "all keys, binary ones too",
    configMap: { name: "cfg", defaultMode: 0o644 },
    want: { a: "644 1", b: "644 2", bin: "644 \u0000\ufffd" },
  },
  {
    when: "items with paths and modes of their own",
    configMap: {
      name: "cfg",
      defaultMode: 0o400,
      items: [
        { key: "a", path: "x/a" },
        { key: "b", path: "b", mode: 0o755 },
      ],
    },
    want: { "x/a": "400 1", b: "755 2" },
  },
  { when: "missing", configMap: { name: "no", defaultMode: 420 }, want: 'configmap "no" not found' },
  { when: "of another namespace", configMap: { name: "cfg2", defaultMode: 420 }, want: 'configmap "cfg2" not found' },
  { when: "missing but optional", configMap: { name: "no", defaultMode: 420, optional: true }, want: {} },
  {
    when: "a key that is not there",
    configMap: { name: "cfg", defaultMode: 420, items: [{ key: "z", path: "z" }] },
    want: "references non-existent config key: z",
  },
  {
    when: "a key that is not there but optional",
    configMap: {
      name: "cfg",
      defaultMode: 420,
      optional: true,
      items: [
        { key: "z", path: "z" },
        { key: "a", path: "a" },
      ],
    },
    want: { a: "644 1" },
  },
])("configMap: $when", ({ configMap, want }) =>
  expect<string | Record<string, string>>(files({ configMap })).toEqual(want),
);

test.each<{ when: string; secret: NonNullable<Volume["secret"]>; want: string | Record<string, string> }>([
  { when: "decoded", secret: { secretName: "sec", defaultMode: 0o400 }, want: { pw: "400 geheim" } },
  { when: "missing", secret: { secretName: "no", defaultMode: 420 }, want: 'secret "no" not found' },
  {
    when: "a key that is not there",
    secret: { secretName: "sec", defaultMode: 420, items: [{ key: "z", path: "z" }] },
    want: "references non-existent secret key: z",
  },
])("secret: $when", ({ secret, want }) => expect<string | Record<string, string>>(files({ secret })).toEqual(want));

test("downwardAPI: fields and resources", () => {
  const downwardAPI: NonNullable<Volume["downwardAPI"]> = {
    defaultMode: 0o644,
    items: [
      { path: "labels", fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels" } },
      { path: "n", fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['n']" }, mode: 0o600 },
      { path: "cpu", resourceFieldRef: { containerName: "app", resource: "limits.cpu", divisor: "1m" } },
      { path: "memory", resourceFieldRef: { containerName: "app", resource: "limits.memory", divisor: "1Ki" } },
    ],
  };
  expect(files({ downwardAPI })).toEqual({ labels: '644 app="web"', n: "600 1", cpu: "644 250", memory: "644 1" });
  const odd = { path: "x", resourceFieldRef: { containerName: "no", resource: "limits.cpu", divisor: "0" } };
  expect(files({ downwardAPI: { defaultMode: 420, items: [odd] } })).toBe("container no not found");
});

describe("projected", () => {
  const projected = (...sources: NonNullable<NonNullable<Volume["projected"]>["sources"]>) =>
    files({ projected: { defaultMode: 0o440, sources } });

  test("all sources together, the later wins", () => {
    const name = { path: "a", fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } };
    expect(
      projected(
        { configMap: { name: "cfg", items: [{ key: "a", path: "a" }] } },
        { secret: { name: "sec" } },
        { downwardAPI: { items: [name] } },
      ),
    ).toEqual({ a: "440 web-node1", pw: "440 geheim" });
  });

  test("all problems are named", () => {
    expect(projected({ configMap: { name: "no" } }, { secret: { name: "none" } })).toBe(
      '[configmap "no" not found, secret "none" not found]',
    );
  });

  test("a token needs an API server", () => {
    expect(projected({ serviceAccountToken: { path: "token", expirationSeconds: 3600 } })).toBe(
      "projected source serviceAccountToken is not supported: it needs an API server",
    );
  });
});
