/**
 * Writes src/apiserver/openapi/descriptions.json: the first sentence of what Kubernetes says about each type and field
 * that is served, for `kubectl explain`. Usage: bun scripts/generate-descriptions.ts PATH/TO/api/openapi-spec/swagger.json
 * (Kubernetes is licensed under the Apache License 2.0).
 */
import { join } from "node:path";
import { SERVED_KINDS } from "../src/apiserver/kinds/served-kinds.ts";
import { openApiDefinitions } from "../src/apiserver/openapi/definitions.ts";

interface Definition {
  description?: string;
  properties?: Record<string, { description?: string }>;
}

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("name the swagger.json of a Kubernetes source tree");
const { definitions } = (await Bun.file(path).json()) as { definitions: Record<string, Definition> };
const served = openApiDefinitions(SERVED_KINDS, {}) as Record<string, Definition>;
const result: Record<string, Record<string, string>> = {};
for (const [name, { properties = {} }] of Object.entries(served)) {
  const source = definitions[name] ?? definitions[name.replace(".batch.v1.", ".batch.v1beta1.")];
  if (!source) continue;
  const entries = Object.keys(properties).map((field) => [
    field,
    firstSentence(source.properties?.[field]?.description),
  ]);
  const described = Object.fromEntries(
    [["", firstSentence(source.description)], ...entries].filter(([, text]) => text !== ""),
  );
  if (Object.keys(described).length > 0) result[name] = described;
}
const target = join(import.meta.dir, "..", "src", "apiserver", "openapi", "descriptions.json");
const text = `${JSON.stringify(result)}\n`;
await Bun.write(target, text);
console.log(`${target}: ${Object.keys(result).length} types, ${text.length} bytes`);

/** Without links to the documentation. */
function firstSentence(text = ""): string {
  const [sentence = ""] = text.split(/(?<=[.:])\s+(?=[A-Z*-])|\n/);
  return sentence.replace(/\s*(More info:|https?:\/\/).*$/, "").trim();
}
