import * as v from "valibot";

/** The Go type of a scalar. `pointer`: an explicit zero (0, "", false) is kept; else a zero is absent (`omitempty`). */
export interface ScalarMetadata {
  scalar: "string" | "bool" | "int32" | "int64" | "quantity" | "intOrString" | "time" | "bytes" | "raw" | "float64";
  pointer?: boolean;
  /** Printed as null when absent (`omitempty` does not apply to Go structs). */
  printsNull?: boolean;
}

const goType = (scalar: ScalarMetadata["scalar"], pointer = false): ScalarMetadata & Record<string, unknown> => ({
  scalar,
  pointer,
});

/** Plain Go `string`: "" is the same as absent. */
export const text = v.pipe(v.string(), v.metadata(goType("string")));
/** Go `*string`: "" is kept. */
export const textPointer = v.pipe(v.string(), v.metadata(goType("string", true)));
/** Plain Go `bool`: false is the same as absent. */
export const flag = v.pipe(v.boolean(), v.metadata(goType("bool")));
/** Go `*bool`: false is kept. */
export const flagPointer = v.pipe(v.boolean(), v.metadata(goType("bool", true)));

const int32Number = v.pipe(v.number(), v.integer(), v.minValue(-2_147_483_648), v.maxValue(2_147_483_647));
/** Go `int32`. */
export const int32 = v.pipe(int32Number, v.metadata(goType("int32")));
/** Go `*int32`. */
export const int32Pointer = v.pipe(int32Number, v.metadata(goType("int32", true)));
/** Go `int64`; beyond 2^53 the nearest double. */
export const int64 = v.pipe(v.number(), v.integer(), v.metadata(goType("int64")));
/** Go `*int64`. */
export const int64Pointer = v.pipe(v.number(), v.integer(), v.metadata(goType("int64", true)));

/** `resource.Quantity` as its canonical string, e.g. `1536Mi`, `100m`. See quantity.ts for its arithmetic. */
export const quantity = v.pipe(v.string(), v.metadata(goType("quantity")));
/** `*resource.Quantity`. */
export const quantityPointer = v.pipe(v.string(), v.metadata(goType("quantity", true)));
/** `intstr.IntOrString`: a number, or a name. */
export const intOrString = v.pipe(v.union([v.number(), v.string()]), v.metadata(goType("intOrString")));
/** `metav1.Time`: RFC 3339 in UTC with whole seconds, or null for the zero time. */
export const time = v.pipe(v.nullable(v.string()), v.metadata({ ...goType("time"), printsNull: true }));
/** {@link time} that is left out when zero. */
export const timeOmitted = v.pipe(v.nullable(v.string()), v.metadata(goType("time")));
/** `*metav1.Time`. */
export const timePointer = v.pipe(v.string(), v.metadata(goType("time", true)));
/** Go `[]byte`: base64 on the wire. */
export const bytes = v.pipe(v.string(), v.metadata(goType("bytes")));
/** Any JSON value. */
export const raw = v.pipe(v.unknown(), v.metadata(goType("raw")));

/** A Go string type with known values: any string decodes, validation checks the value. "" is absent. */
export const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  v.pipe(v.picklist(values), v.metadata(goType("string")));
/** {@link oneOf} that keeps "", which validation usually refuses. */
export const oneOfPointer = <const T extends readonly [string, ...string[]]>(values: T) =>
  v.pipe(v.picklist(values), v.metadata(goType("string", true)));

export const textList = v.array(text);
export const textMap = v.record(v.string(), text);
/** `v1.ResourceList`: resource name to canonical quantity. */
export const resourceList = v.record(v.string(), quantity);
export type ResourceList = v.InferOutput<typeof resourceList>;
