import { describe, expect, test } from "bun:test";
import { parseConfigFile } from "../../src/config/config-file.ts";
import { ROW_BY_FIELD } from "../../src/config/option-table.ts";

const SHAPES = [
  "{}",
  "{a: 1}",
  "{a: {b: [c, {d: null}]}}",
  "[]",
  "[a]",
  "[{a: {b: 1}}, null, [1]]",
  "0",
  "{memory.available: 1e999, imagefs.available: 17, cpu: 1e999, memory: {a: 1}}",
  "17",
  "-1.5",
  "1e999",
  "null",
  "true",
  '""',
  "text",
];

/** One field of a KubeletConfiguration, of any depth. */
function configurationWith(field: string, value: string): string {
  const [leaf = "", ...outer] = field.split(".").reverse();
  const body = outer.reduce((inner, name) => `${name}: {${inner}}`, `${leaf}: ${value}`);
  return `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${body}\n`;
}

describe("a value of any shape is read, warned of or refused, and never thrown at", () => {
  const fields = [...ROW_BY_FIELD.keys()].flatMap((field) => [field, `${field}.below`, field.split(".", 1)[0]!]);
  test.each([...new Set(fields)])("%s", (field) => {
    for (const shape of SHAPES) {
      const { settings, warnings, errors, unknown } = parseConfigFile(configurationWith(field, shape), "k.yaml");
      for (const message of [...warnings, ...errors, ...unknown]) expect(message).toStartWith("k.yaml:3:");
      // `config` and /configz show each value.
      for (const { row, value } of settings) JSON.stringify([row.kind.toField(value), row.kind.toText(value)]);
    }
  });
});

test("a map below a field without effect is one warning", () => {
  const { warnings, errors } = parseConfigFile(configurationWith("tracing", "{samplingRatePerMillion: 10}"), "k.yaml");
  expect(errors).toEqual([]);
  expect(warnings).toEqual([
    expect.stringMatching(/^k\.yaml:3:1: tracing has no effect: kubelet-ts records no traces$/),
  ]);
});
