import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { renderFieldsDoc } from "../../scripts/generate-fields-doc.ts";
import { FIELD_SUPPORT } from "../../src/manifest/support/field-support.ts";

test("docs/fields.md says what the schemas and the table of support say", () => {
  // To repair: bun scripts/generate-fields-doc.ts
  expect(readFileSync(join(import.meta.dir, "../../docs/fields.md"), "utf8")).toBe(renderFieldsDoc());
});

test("every row of the table of support is a field that exists", () => {
  const text = renderFieldsDoc();
  const paths = FIELD_SUPPORT.map(({ path }) => path).filter((path) => !path.startsWith("spec.initContainers"));
  expect(paths.filter((path) => !text.includes(`| \`${path}\` |`))).toEqual([]);
});
