import * as v from "valibot";
import { type ScalarMetadata, text } from "../../base/api/scalar.ts";

/** The parts of a schema that decoding needs. */
export type Shape = ObjectShape | { kind: "list"; item: Shape } | { kind: "map"; value: Shape } | ScalarShape;

export interface ObjectShape {
  kind: "object";
  fields: readonly Field[];
  names: ReadonlyMap<string, Field>;
}
export interface ScalarShape {
  kind: "scalar";
  scalar: ScalarMetadata["scalar"];
  /** An explicit zero is kept. */
  pointer: boolean;
  /** Known values of a string type. */
  values?: readonly string[] | undefined;
}
export interface Field {
  name: string;
  shape: Shape;
  /** No `omitempty` in Go: absent values become the zero value. */
  required: boolean;
  /** The zero value of the required field is null. */
  nullable: boolean;
  /** Filled in when absent. */
  default: unknown;
}

type AnySchema = v.GenericSchema & {
  entries?: Record<string, AnySchema>;
  item?: AnySchema;
  value?: AnySchema;
  wrapped?: AnySchema;
  default?: unknown;
  options?: readonly string[];
  pipe?: readonly { type: string; metadata?: unknown }[];
};

const shapes = new WeakMap<object, Shape>();

/** Shape of a schema of `src/base/api`; computed once per schema. */
function shapeOf(schema: v.GenericSchema): Shape {
  return shapes.getOrInsertComputed(schema, () => readShape(schema as AnySchema));
}

/** {@link shapeOf} for an object schema. */
export function objectShapeOf(schema: v.GenericSchema): ObjectShape {
  const shape = shapeOf(schema);
  if (shape.kind !== "object") throw new TypeError("the schema is not an object");
  return shape;
}

const typeFields = { apiVersion: v.optional(text), kind: v.optional(text) };
const typedShapes = new WeakMap<object, ObjectShape>();

/** Shape of objects of a schema with their API version and kind; computed once per schema. */
export function typedShapeOf(schema: { entries: v.ObjectEntries }): ObjectShape {
  return typedShapes.getOrInsertComputed(schema, () => objectShapeOf(v.object({ ...typeFields, ...schema.entries })));
}

const metadataOf = (schema: AnySchema) =>
  schema.pipe?.find((action) => action.type === "metadata")?.metadata as ScalarMetadata | undefined;

const printsNull = (entry: AnySchema): boolean => metadataOf(entry.wrapped ?? entry)?.printsNull ?? false;

function readShape(schema: AnySchema): Shape {
  const metadata = metadataOf(schema);
  if (metadata) {
    const values = schema.type === "picklist" ? schema.options : undefined;
    return { kind: "scalar", scalar: metadata.scalar, pointer: metadata.pointer ?? false, values };
  }
  if (schema.type === "nullable" || schema.type === "optional") return shapeOf(schema.wrapped!);
  if (schema.type === "array") return { kind: "list", item: shapeOf(schema.item!) };
  if (schema.type === "record") return { kind: "map", value: shapeOf(schema.value!) };
  if (schema.type !== "object")
    throw new TypeError(`no Go type for a ${schema.type}: schemas take their scalars from base/api/scalar.ts`);
  const fields = Object.entries(schema.entries!).map(([name, entry]): Field => {
    const optional = entry.type === "optional";
    return {
      name,
      shape: shapeOf(entry),
      required: !optional,
      nullable: entry.type === "nullable" && entry.wrapped?.type !== undefined && !entry.pipe,
      default: optional ? (entry.default ?? (printsNull(entry) ? null : undefined)) : undefined,
    };
  });
  return { kind: "object", fields, names: new Map(fields.map((field) => [field.name, field])) };
}
