import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { renderFieldsDoc } from "../../scripts/generate-fields-doc.ts";
import { ContainerSchema } from "../../src/base/api/container.ts";
import { PodSpecSchema } from "../../src/base/api/pod.ts";
import { FIELD_SUPPORT } from "../../src/manifest/support/field-support.ts";

const SRC = join(import.meta.dir, "../../src");

test("docs/fields.md says what the schemas and the table of support say", () => {
  // To repair: bun scripts/generate-fields-doc.ts
  expect(readFileSync(join(import.meta.dir, "../../docs/fields.md"), "utf8")).toBe(renderFieldsDoc());
});

test("every row of the table of support is a field that exists", () => {
  const text = renderFieldsDoc();
  const paths = FIELD_SUPPORT.map(({ path }) => path).filter((path) => !path.startsWith("spec.initContainers"));
  expect(paths.filter((path) => !text.includes(`| \`${path}\` |`))).toEqual([]);
});

test("every field of a pod or container that counts as supported is read where pods run", () => {
  const rooms = ["kubelet", "docker", "plan", "controllers", "daemon"];
  const sources = rooms.flatMap((room) =>
    readdirSync(join(SRC, room), { recursive: true, encoding: "utf8" }).map((it) => join(SRC, room, it)),
  );
  const text = sources
    .filter((it) => /\.ts$/.test(it) && !it.endsWith("edit-rules.ts"))
    .map((it) => readFileSync(it, "utf8"))
    .join("\n");
  const fields = { spec: PodSpecSchema, "spec.containers[]": ContainerSchema };
  const paths = Object.entries(fields).flatMap(([at, { entries }]) =>
    Object.keys(entries).map((name) => `${at}.${name}`),
  );
  const isRead = (path: string) => new RegExp(`\\b${path.split(".").at(-1)}\\b`).test(text);
  // A path here: nothing acts by the field. It needs code, or a row in FIELD_SUPPORT.
  expect(paths.filter((path) => !isRead(path) && !FIELD_SUPPORT.some((row) => row.path === path))).toEqual([]);
});
