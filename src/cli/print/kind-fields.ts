import { wrap } from "../help.ts";

/** A JSON schema of OpenAPI, with `$ref` to other types by name. */
export interface DocumentedType {
  type?: string;
  format?: string;
  description?: string;
  properties?: Readonly<Record<string, DocumentedType>>;
  required?: readonly string[];
  items?: DocumentedType;
  additionalProperties?: DocumentedType | boolean;
  enum?: readonly unknown[];
  $ref?: string;
}

type Definitions = Readonly<Record<string, DocumentedType>>;

/** A kind, or a field of one. */
interface FoundField {
  /** Names of the fields of the path; "" for the kind. */
  name: string;
  /** As written below its parent: it may carry a description of its own. */
  field: DocumentedType;
  /** The type whose fields are listed. */
  type: DocumentedType;
}

/**
 * Follows names of fields from a type; lists and maps are entered.
 * @returns where the path ends early, `path` is the part that exists
 */
export function findField(
  definitions: Definitions,
  typeName: string,
  fields: readonly string[],
): FoundField | { path: string; missing: string; known: string[] } {
  let field: DocumentedType = { $ref: typeName };
  let type = typeOf(definitions, field);
  for (const [index, name] of fields.entries()) {
    const next = type.properties?.[name];
    if (!next) {
      return { path: fields.slice(0, index).join("."), missing: name, known: Object.keys(type.properties ?? {}) };
    }
    field = next;
    type = typeOf(definitions, field);
  }
  return { name: fields.at(-1) ?? "", field, type };
}

/** The type behind references, lists and maps. */
function typeOf(definitions: Definitions, field: DocumentedType): DocumentedType {
  if (field.$ref !== undefined) return typeOf(definitions, definitions[nameOf(field.$ref)] ?? {});
  if (field.items) return typeOf(definitions, field.items);
  const { additionalProperties } = field;
  return typeof additionalProperties === "object" ? typeOf(definitions, additionalProperties) : field;
}

const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf("/") + 1);

/** `string`, `[]Container`, `map[string]string`. */
export function typeText({ $ref, type, format, items, additionalProperties }: DocumentedType): string {
  if ($ref !== undefined) return nameOf($ref).split(".").at(-1) ?? "Object";
  if (items) return `[]${typeText(items)}`;
  if (typeof additionalProperties === "object") return `map[string]${typeText(additionalProperties)}`;
  if (format === "int-or-string") return "IntOrString";
  return type === undefined || type === "object" ? "Object" : type;
}

const MARGIN = "    ";

const describe = ({ description }: DocumentedType) => description?.replace(/\s+/g, " ").trim();

/** Description and fields, in kubectl's layout. */
export function renderFields(definitions: Definitions, { name, field, type }: FoundField): string {
  const own = describe(field) ?? describe(type) ?? "<empty>";
  const fields = Object.entries(type.properties ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    ...(name === "" ? [] : [`FIELD: ${name} <${typeText(field)}>`, ""]),
    ...(field.enum ? [`ENUM: ${field.enum.join(", ")}`, ""] : []),
    "DESCRIPTION:",
    ...wrap(own, MARGIN),
    ...(fields.length === 0 ? [] : ["", "FIELDS:"]),
    ...fields.flatMap(([key, member]) => [
      `  ${key}\t<${typeText(member)}>${type.required?.includes(key) ? " -required-" : ""}`,
      ...wrap(describe(member) ?? describe(typeOf(definitions, member)) ?? "<no description>", MARGIN),
      "",
    ]),
  ]
    .join("\n")
    .concat("\n");
}

/** Names and types of all fields below; a type within itself is not entered again. */
export function renderTree(definitions: Definitions, { name, field, type }: FoundField): string {
  const lines: string[] = name === "" ? ["FIELDS:"] : [`FIELD: ${name} <${typeText(field)}>`, "", "FIELDS:"];
  const walk = (current: DocumentedType, depth: number, above: readonly DocumentedType[]) => {
    for (const [key, member] of Object.entries(current.properties ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const isRequired = current.required?.includes(key) ?? false;
      lines.push(`${"  ".repeat(depth)}${key}\t<${typeText(member)}>${isRequired ? " -required-" : ""}`);
      const next = typeOf(definitions, member);
      if (!above.includes(next)) walk(next, depth + 1, [...above, next]);
    }
  };
  walk(type, 1, [type]);
  return `${lines.join("\n")}\n`;
}
