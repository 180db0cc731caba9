import { describe, expect, test } from "bun:test";
import { MAX_FINDINGS_PER_FILE, MAX_OBJECTS } from "../../src/manifest/object-reading.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { MAX_DOCUMENTS } from "../../src/manifest/yaml/parse-stream.ts";

const SPEC = "containers: [{name: a, image: a}]";
const read = (text: string, source: "file" | "api" = "file") =>
  readManifest(Buffer.from(text), { file: "/m/web.yaml", nodeName: "node1", source });
/** A pod in one line. */
const pod = (name: string, spec = SPEC) => `{apiVersion: v1, kind: Pod, metadata: {name: ${name}}, spec: {${spec}}}`;
const configMap = (index: number) => `{apiVersion: v1, kind: ConfigMap, metadata: {name: c${index}}}`;
const deployment = (spec: string) =>
  `kind: Deployment\napiVersion: apps/v1\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {${spec}}}\n`;

test("a bug costs only the document in which it occurs", () => {
  let asked = 0;
  const options = {
    file: "f.yaml",
    source: "file" as const,
    get nodeName(): string {
      if (asked++ === 0) throw new TypeError("undefined is not an object");
      return "node1";
    },
  };
  const { pods, findings } = readManifest(Buffer.from(`--- ${pod("one")}\n--- ${pod("two")}`), options);
  expect(pods.map(({ pod: { metadata } }) => metadata.name)).toEqual(["two-node1"]);
  expect(findings).toMatchObject([
    {
      severity: "error",
      file: "f.yaml",
      document: 1,
      line: 1,
      message: "cannot be read because of a bug in kubelet-ts: undefined is not an object",
    },
  ]);
});

describe("limits of one file", () => {
  test("documents beyond the limit are one error; those before it count", () => {
    const text = Array.from({ length: MAX_DOCUMENTS + 5 }, (_, index) => `--- ${configMap(index)}\n`).join("");
    const { configMaps, findings } = read(text);
    expect(configMaps).toHaveLength(MAX_DOCUMENTS);
    expect(findings).toMatchObject([{ line: MAX_DOCUMENTS + 1, message: expect.stringContaining("split it") }]);
  });

  test("items of lists count as objects", () => {
    const items = Array.from({ length: MAX_OBJECTS / 2 }, (_, index) => configMap(index)).join(", ");
    const list = `--- {apiVersion: v1, kind: ConfigMapList, items: [${items}]}\n`;
    const { configMaps, findings } = read(list.repeat(3));
    expect(configMaps).toHaveLength(MAX_OBJECTS);
    expect(findings).toMatchObject([{ message: expect.stringContaining("split it") }]);
  });

  test("findings are counted, not listed, beyond the limit", () => {
    const unknown = Array.from({ length: 400 }, (_, index) => `x${index}: 1`).join(", ");
    const { findings } = read(`--- {apiVersion: v1, kind: Pod, ${unknown}}\n`.repeat(100));
    expect(findings.length).toBeLessThan(MAX_FINDINGS_PER_FILE + 300);
    expect(findings.at(-1)).toMatchObject({ message: expect.stringContaining("more findings") });
  });

  test.each([
    { what: "characters", value: "x".repeat(400_000), aliases: 100, says: "10 MiB" },
    { what: "values", value: `[${"a, ".repeat(60_000)}]`, aliases: 9, says: "500000 values" },
  ])("aliases may add a limited number of $what", ({ value, aliases, says }) => {
    const { findings } = read(`a: &a ${value}\nb: [${"*a, ".repeat(aliases)}]\n`);
    expect(findings).toMatchObject([{ code: "syntax", line: 2, message: expect.stringContaining(says) }]);
  });

  test("aliases of several documents share the limit", () => {
    const { results } = read(`--- [&a ${"x".repeat(400_000)}, ${"*a, ".repeat(10)}]\n`.repeat(4));
    expect(results.map(({ findings }) => findings[0]?.message.includes("10 MiB"))).toEqual([false, false, true, true]);
  });
});

describe("where an object is written down", () => {
  test("file, document and line of a pod", () => {
    const text = `# first\n${pod("a")}\n---\n\n${pod("b")}\n`;
    expect(read(text).pods.map(({ location }) => location)).toEqual([
      { file: "/m/web.yaml", document: 1, line: 2 },
      { file: "/m/web.yaml", document: 2, line: 5 },
    ]);
  });

  test("an item of a list, and a workload", () => {
    expect(read(`kind: List\napiVersion: v1\nitems:\n- ${pod("a")}\n`).pods[0]?.location?.line).toBe(4);
    expect(read(deployment(SPEC)).objects[0]?.location).toEqual({ file: "/m/web.yaml", document: 1, line: 1 });
  });
});

test("dnsPolicy ClusterFirst is noted where the manifest says it, not as a default, and never for an API", () => {
  const written = `dnsPolicy: ClusterFirst, ${SPEC}`;
  expect(read(`--- ${pod("a", written)}`).pods[0]?.asksForClusterDns).toBe(true);
  expect(read(`--- ${pod("a")}`).pods[0]?.asksForClusterDns).toBeUndefined();
  expect(read(`--- ${pod("a", `dnsPolicy: Default, ${SPEC}`)}`).pods[0]?.asksForClusterDns).toBeUndefined();
  expect(read(`--- ${pod("a", written)}`, "api").pods[0]?.asksForClusterDns).toBeUndefined();
  expect(read(deployment(written)).objects[0]?.asksForClusterDns).toBe(true);
});

test("keys that are words of JavaScript are ordinary keys", () => {
  const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"constructor":"x","toString":"y"},"__proto__":{"polluted":true}},
    "spec":{"containers":[{"name":"a","image":"b","hasOwnProperty":1}],"nodeSelector":{"valueOf":"z"}}}`;
  const { results } = read(text);
  const unknown = results[0]!.findings.filter((finding) => finding.code === "unknown").map(({ field }) => field);
  expect(unknown).toEqual(["metadata.__proto__", "spec.containers[0].hasOwnProperty"]);
  expect(Object.entries(results[0]!.pod?.metadata.annotations ?? {})).toContainEqual(["constructor", "x"]);
  expect(results[0]!.pod?.spec.nodeSelector?.toString).toBeUndefined();
});

test.each(["constructor", "toString", "__proto__"])(
  "values that are words of JavaScript (%s) are ordinary values",
  (word) => {
    const messagesOf = (object: object) =>
      read(JSON.stringify({ apiVersion: "v1", ...object })).findings.map(
        ({ field, message }) => `${field}: ${message}`,
      );
    expect(messagesOf({ kind: "Secret", metadata: { name: "s" }, type: word })).toEqual([]);
    const annotations = { "seccomp.security.alpha.kubernetes.io/pod": "unconfined" };
    const spec = { securityContext: { seccompProfile: { type: word } }, containers: [{ name: "a", image: "b" }] };
    expect(messagesOf({ kind: "Pod", metadata: { name: "p", annotations }, spec })).toEqual([
      expect.stringContaining("spec.securityContext.seccompProfile.type: "),
    ]);
  },
);

test("a hundred thousand mistakes are counted, not listed", () => {
  const unknown = Array.from({ length: 100_000 }, (_, index) => `"contaners${index}":1`).join(",");
  const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"b"}],${unknown}}}`;
  const { findings } = read(text);
  expect(findings).toHaveLength(501);
  expect(findings.some(({ message }) => message === "and 99500 more findings")).toBe(true);
});

test.each([400, 9900, 20_000])("lists %d levels deep in a field that is kept as it is", (depth) => {
  const deep = "[".repeat(depth) + "]".repeat(depth);
  const managed = `[{"operation":"Apply","fieldsType":"FieldsV1","fieldsV1":${deep}}]`;
  const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","managedFields":${managed}},"spec":{"containers":[{"name":"a","image":"b"}]}}`;
  for (const form of [text, `---\n${text}`]) expect(read(form).pods).toHaveLength(depth < 500 ? 1 : 0);
});
