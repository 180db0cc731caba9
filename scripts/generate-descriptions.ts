/**
 * Writes src/apiserver/openapi/descriptions.json, the first sentence of what Kubernetes says about each type and field that is
 * served, and observed.json, the types of statuses and of kinds that no client writes, for `kubectl explain`. Fields that the
 * source does not have keep their text. Usage: bun scripts/generate-descriptions.ts PATH/TO/api/openapi-spec/swagger.json
 * (Kubernetes is licensed under the Apache License 2.0).
 */
import { join } from "node:path";
import { SERVED_KINDS } from "../src/apiserver/kinds/served-kinds.ts";
import { definitionName, openApiDefinitions } from "../src/apiserver/openapi/definitions.ts";
import known from "../src/apiserver/openapi/descriptions.json" with { type: "json" };
import { type ResourceDefinition, servedVersions } from "../src/apiserver/resource-definition.ts";

interface Definition {
  $ref?: string;
  description?: string;
  items?: Definition;
  properties?: Record<string, Definition>;
}

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("name the swagger.json of a Kubernetes source tree");
const { definitions } = (await Bun.file(path).json()) as { definitions: Record<string, Definition> };
const kinds = SERVED_KINDS.flatMap(servedVersions);
const served = openApiDefinitions(kinds, {}) as Record<string, Definition>;

/** Groups whose v1 is newer than the source. */
const OLDER = /\.(batch|discovery)\.v1\./;
const sourceOf = (name: string) => definitions[name] ?? definitions[name.replace(OLDER, ".$1.v1beta1.")];
const nameIn = (ref = "") => ref.replace("#/definitions/", "");

/** Texts of the fields of a type, and of the types that are part of it: those have the path of the field in front. */
function textsOf(own: Definition, source: Definition | undefined, prefix = ""): [field: string, text: string][] {
  return Object.entries(own.properties ?? {}).flatMap(([field, member]) => {
    const found = source?.properties?.[field];
    const part = member.properties ? member : member.items;
    const type = sourceOf(nameIn(found?.$ref ?? found?.items?.$ref));
    const inner = part?.properties && type ? textsOf(part, type, `${prefix}${field}.`) : [];
    return [[`${prefix}${field}`, firstSentence(found?.description)] as [string, string], ...inner];
  });
}

const result: Record<string, Record<string, string>> = {};
for (const [name, own] of Object.entries(served)) {
  const source = sourceOf(name);
  const entries = [["", firstSentence(source?.description)] as const, ...textsOf(own, source)];
  const texts = Object.fromEntries(entries.filter(([, text]) => text !== ""));
  const described = { ...texts, ...(known as typeof result)[name] };
  if (Object.keys(described).length > 0) result[name] = described;
}

/** Types by name, with everything that they refer to and that is not served. */
const observed: Record<string, Definition> = {};
function observe(name: string): void {
  const source = sourceOf(name);
  if (!source || observed[name] || (served[name] && !BARE.has(name))) return;
  const group = OLDER.exec(name)?.[1];
  const toOwn = (ref: string) => nameIn(ref).replace(`.${group}.v1beta1.`, `.${group}.v1.`);
  observed[name] = JSON.parse(JSON.stringify(source), (key, value) =>
    key === "$ref" ? toOwn(value) : key === "description" ? firstSentence(value) : value,
  );
  for (const [, ref = ""] of JSON.stringify(observed[name]).matchAll(/"\$ref":"([^"]+)"/g)) observe(ref);
}
const isBare = ({ schema, decode, fate }: ResourceDefinition) => !schema && (!decode || fate === "node");
const BARE = new Set(kinds.filter(isBare).map(definitionName));
for (const name of BARE) observe(name);
for (const kind of kinds) observe(`${definitionName(kind)}Status`);

for (const [file, content] of Object.entries({ "descriptions.json": result, "observed.json": observed })) {
  const target = join(import.meta.dir, "..", "src", "apiserver", "openapi", file);
  const text = `${JSON.stringify(content)}\n`;
  await Bun.write(target, text);
  console.log(`${target}: ${Object.keys(content).length} types, ${text.length} bytes`);
}

/** Without links to the documentation. */
function firstSentence(text = ""): string {
  const [sentence = ""] = text.split(/(?<=[.:])\s+(?=[A-Z*-])|\n/);
  return sentence.replace(/\s*(More info:|https?:\/\/).*$/, "").trim();
}
