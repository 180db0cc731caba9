import { expect, test } from "bun:test";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { bytesOf, readOracleCases } from "./oracle-cases.ts";

/** Reproducible numbers in [0, 1). Source: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const SPLINTERS = [
  "\0", "\t", "\r", "\n", "\n---\n", "...\n", "&a ", "*a", "<<: ", "!!int ", "? ", "- ", ": ", "|", ">-\n", "{", "}", "[", "]",
  '"', "'", "%YAML 1.1\n", "\ufeff", "\u2028", "\ud800", "😀", "~", "0x", "1e999", "-", ".inf", "#",
  "__proto__: {polluted: yes}\n", "constructor: {prototype: {polluted: yes}}\n", '"__proto__": {"polluted": true},',
  "toString: x\n", "99999999999999999999", "-2147483649", "1e-99999", "Ki",
]; // biome-ignore format: a list of splinters

/** Cuts, doubles, swaps and splinters a text. */
function mutate(bytes: Uint8Array, random: () => number): Uint8Array {
  const at = () => Math.floor(random() * (bytes.length + 1));
  const [from, to] = [at(), at()].sort((a, b) => a - b) as [number, number];
  const piece = bytes.subarray(from, Math.min(to, from + 200));
  switch (Math.floor(random() * 6)) {
    case 0:
      return Buffer.concat([bytes.subarray(0, from), bytes.subarray(Math.min(to, from + 50))]);
    case 1:
      return Buffer.concat([bytes.subarray(0, to), piece, bytes.subarray(to)]);
    case 2: {
      const copy = Uint8Array.from(bytes);
      for (let i = 0; i < 3; i++) copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256);
      return copy;
    }
    default: {
      const splinter = SPLINTERS[Math.floor(random() * SPLINTERS.length)]!;
      return Buffer.concat([bytes.subarray(0, from), Buffer.from(splinter), bytes.subarray(from)]);
    }
  }
}

test("whatever the text, what comes out are findings or pods", () => {
  const random = randomOf(20260101);
  const seeds = readOracleCases("validation-open").filter(({ ok, manifest }) => ok && (manifest?.length ?? 0) < 4000);
  for (let round = 0; round < 6000; round++) {
    let bytes = bytesOf(seeds[Math.floor(random() * seeds.length)]!);
    for (let i = 0; i <= random() * 4; i++) bytes = mutate(bytes, random);
    const { results, findings, pods } = readManifest(bytes, { file: "f", nodeName: "n", source: "file" });
    if (results.length === 0) throw new Error(`round ${round}: nothing came out`);
    for (const result of results) {
      const silent = !result.valid && result.findings.length === 0;
      if (silent) throw new Error(`round ${round}: refused without a word`);
      if (result.ok && result.kind === "Pod" && !result.pod) throw new Error(`round ${round}: accepted, but no pod`);
    }
    for (const { line, column, message } of findings) {
      if (!(line >= 1 && column >= 1) || message === "") throw new Error(`round ${round}: a finding without a place`);
    }
    for (const { pod } of pods) {
      if (!pod.metadata.name?.endsWith("-n")) throw new Error(`round ${round}: a pod without identity`);
    }
  }
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(Object.prototype).not.toHaveProperty("polluted");
});

test("keys that are words of JavaScript are ordinary keys", () => {
  const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"constructor":"x","toString":"y"},"__proto__":{"polluted":true}},
    "spec":{"containers":[{"name":"a","image":"b","hasOwnProperty":1}],"nodeSelector":{"valueOf":"z"}}}`;
  const { results } = readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
  const unknown = results[0]!.findings.filter((finding) => finding.code === "unknown").map(({ field }) => field);
  expect(unknown).toEqual(["metadata.__proto__", "spec.containers[0].hasOwnProperty"]);
  expect(Object.entries(results[0]!.pod?.metadata.annotations ?? {})).toContainEqual(["constructor", "x"]);
  expect(results[0]!.pod?.spec.nodeSelector?.toString).toBeUndefined();
});

test.each(["constructor", "toString", "__proto__"])(
  "values that are words of JavaScript (%s) are ordinary values",
  (word) => {
    const read = (object: object) =>
      readManifest(Buffer.from(JSON.stringify({ apiVersion: "v1", ...object })), {
        file: "f",
        nodeName: "n",
        source: "file",
      }).findings.map(({ field, message }) => `${field}: ${message}`);
    expect(read({ kind: "Secret", metadata: { name: "s" }, type: word })).toEqual([]);
    const annotations = { "seccomp.security.alpha.kubernetes.io/pod": "unconfined" };
    const spec = { securityContext: { seccompProfile: { type: word } }, containers: [{ name: "a", image: "b" }] };
    expect(read({ kind: "Pod", metadata: { name: "p", annotations }, spec })).toEqual([
      expect.stringContaining("spec.securityContext.seccompProfile.type: "),
    ]);
  },
);

test("a hundred thousand mistakes are counted, not listed", () => {
  const unknown = Array.from({ length: 100_000 }, (_, index) => `"contaners${index}":1`).join(",");
  const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"b"}],${unknown}}}`;
  const { findings } = readManifest(Buffer.from(text), { file: "f", nodeName: "n", source: "file" });
  expect(findings).toHaveLength(501);
  expect(findings.some(({ message }) => message === "and 99500 more findings")).toBe(true);
});

test.each([400, 9900, 20_000])("lists %d levels deep in a field that is kept as it is", (depth) => {
  const deep = "[".repeat(depth) + "]".repeat(depth);
  const managed = `[{"operation":"Apply","fieldsType":"FieldsV1","fieldsV1":${deep}}]`;
  const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","managedFields":${managed}},"spec":{"containers":[{"name":"a","image":"b"}]}}`;
  const options = { file: "f", nodeName: "n", source: "file" } as const;
  for (const form of [text, `---\n${text}`]) {
    expect(readManifest(Buffer.from(form), options).pods).toHaveLength(depth < 500 ? 1 : 0);
  }
});
