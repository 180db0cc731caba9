import { describe, expect, test } from "bun:test";
import { MAX_FINDINGS_PER_FILE, MAX_OBJECTS } from "../../src/manifest/object-reading.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { MAX_DOCUMENTS } from "../../src/manifest/yaml/parse-stream.ts";

const read = (text: string) => readManifest(Buffer.from(text), { file: "f.yaml", nodeName: "n", source: "file" });
const pod = (name: string) =>
  `{apiVersion: v1, kind: Pod, metadata: {name: ${name}}, spec: {containers: [{name: a, image: "b:1"}]}}`;

describe("limits of one file", () => {
  test("documents beyond the limit are one error; those before it count", () => {
    const text = Array.from({ length: MAX_DOCUMENTS + 5 }, (_, index) => `--- ${pod(`p${index}`)}\n`).join("");
    const { pods, findings } = read(text);
    expect(pods).toHaveLength(MAX_DOCUMENTS);
    expect(findings).toMatchObject([{ line: MAX_DOCUMENTS + 1, message: expect.stringContaining("split it") }]);
  });

  test("items of lists count as objects", () => {
    const items = Array.from({ length: MAX_OBJECTS / 2 }, (_, index) => pod(`p${index}`)).join(", ");
    const list = `--- {apiVersion: v1, kind: PodList, items: [${items}]}\n`;
    const { pods, findings } = read(list.repeat(3));
    expect(pods).toHaveLength(MAX_OBJECTS);
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
