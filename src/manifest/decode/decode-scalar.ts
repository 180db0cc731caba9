import { formatQuantity, parseQuantity } from "../../base/api/quantity.ts";
import { isDeeperThan, type SourceNode, toPlainValue } from "../yaml/source-node.ts";
import type { ScalarShape } from "./shape.ts";

/** The decoded value (undefined: the same as absent), or the expected type. */
type ScalarResult = { value: unknown } | { expected: string };

const INTEGER = /^-?(?:0|[1-9][0-9]*)$/;
const INT_RANGES = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
} as const;

export function decodeScalar(node: SourceNode, shape: ScalarShape): ScalarResult {
  switch (shape.scalar) {
    case "string":
      if (node.kind !== "string") return { expected: "a string" };
      return { value: node.value === "" && !shape.pointer ? undefined : node.value };
    case "bool":
      if (node.kind !== "bool") return { expected: "true or false" };
      return { value: node.value || shape.pointer ? node.value : undefined };
    case "int32":
    case "int64":
      return decodeInteger(node, shape.scalar, shape.pointer);
    case "float64":
      if (node.kind !== "number") return { expected: "a number" };
      return { value: Number(node.json) };
    case "quantity":
      return decodeQuantity(node);
    case "intOrString":
      if (node.kind === "string") return { value: node.value };
      if (node.kind !== "number") return { expected: "a whole number or a string" };
      return decodeInteger(node, "int32", true);
    case "time":
      return decodeTime(node);
    case "bytes":
      return decodeBytes(node);
    case "raw":
      return isDeeperThan(node, MAX_RAW_DEPTH)
        ? { expected: `a value of at most ${MAX_RAW_DEPTH} levels` }
        : { value: toPlainValue(node) };
  }
}

/** Zero value of items of lists and of required fields. */
export function zeroScalar(shape: ScalarShape): unknown {
  switch (shape.scalar) {
    case "bool":
      return false;
    case "int32":
    case "int64":
    case "float64":
    case "intOrString":
      return 0;
    case "quantity":
      return "0";
    case "time":
      return null;
    case "raw":
      return {};
    default:
      return "";
  }
}

function decodeInteger(node: SourceNode, type: "int32" | "int64", pointer: boolean): ScalarResult {
  if (node.kind !== "number" || !INTEGER.test(node.json)) return { expected: "a whole number" };
  // An integer of 64 bits has at most 20 characters; conversion of longer ones takes quadratic time.
  if (node.json.length > 20) return { expected: `a whole number between ${INT_RANGES[type].join(" and ")}` };
  if (node.json.length > 10) {
    const value = BigInt(node.json);
    const [least, most] = INT_RANGES[type];
    if (value < least || value > most) return { expected: `a whole number between ${least} and ${most}` };
  }
  const value = Number(node.json);
  const [least, most] = type === "int32" ? [-2147483648, 2147483647] : [-Infinity, Infinity];
  if (value < least || value > most) return { expected: `a whole number between ${least} and ${most}` };
  return { value: value === 0 && !pointer ? undefined : value === 0 ? 0 : value };
}

/** White space that Go trims, limited to what JSON leaves unescaped. */
const QUANTITY_SPACE = /[ \x85\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]/;

/** Trims without a regular expression for the end, which would take quadratic time. */
function trimQuantity(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && QUANTITY_SPACE.test(text[start]!)) start++;
  while (end > start && QUANTITY_SPACE.test(text[end - 1]!)) end--;
  return text.slice(start, end);
}

function decodeQuantity(node: SourceNode): ScalarResult {
  const expected = "a quantity such as 500m, 2 or 64Mi";
  const text = node.kind === "string" ? trimQuantity(node.value) : node.kind === "number" ? node.json : "";
  const quantity = parseQuantity(text);
  return quantity ? { value: formatQuantity(quantity) } : { expected };
}

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,]\d+)?(Z|[+-]\d{2}:\d{2})$/;

function decodeTime(node: SourceNode): ScalarResult {
  const expected = "a time such as 2006-01-02T15:04:05Z";
  const match = node.kind === "string" ? RFC3339.exec(node.value) : null;
  if (!match) return { expected };
  const ms = Date.parse(`${match[1]}-${match[2]}-${match[3]}T${match[4]}:${match[5]}:${match[6]}${match[7]}`);
  const [hours, minutes] = (match[7] === "Z" ? "0:0" : match[7]!.slice(1)).split(":").map(Number);
  const days = new Date(Date.UTC(Number(match[1]), Number(match[2]), 0)).getUTCDate();
  if (Number.isNaN(ms) || Number(match[3]) > days || Number(match[4]) > 23 || hours! > 24 || minutes! > 60)
    return { expected };
  return { value: new Date(ms).toISOString().replace(/\.\d+Z$/, "Z") };
}

function decodeBytes(node: SourceNode): ScalarResult {
  const expected = "base64";
  if (node.kind === "list") {
    // Go's JSON reads a list of numbers as bytes, too.
    const values = node.items.map((item) => (item.kind === "number" ? Number(item.json) : Number.NaN));
    const areBytes = values.every((value) => Number.isInteger(value) && value >= 0 && value <= 255);
    return areBytes ? { value: Buffer.from(values).toString("base64") } : { expected };
  }
  if (node.kind !== "string") return { expected };
  const text = node.value.replace(/[\r\n]/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return { expected };
  return { value: Buffer.from(text, "base64").toString("base64") };
}

/** Raw values are processed recursively later on. */
const MAX_RAW_DEPTH = 500;
