import { formatQuantity, isNegativeQuantity, parseQuantity, quantityToWhole } from "../../base/api/quantity.ts";
import { asText, type Parsed, quote, type ValueKind } from "./value-kind.ts";

/** A quantity rounded up to a whole number; undefined when malformed or negative. */
export function quantityToNumber(quantity: string): number | undefined {
  const parsed = parseQuantity(quantity);
  return parsed === undefined || isNegativeQuantity(parsed) ? undefined : quantityToWhole(quantity);
}

/** Bytes from a quantity, at least `min`. */
export function byteSize(min: number): ValueKind<number> {
  const fromText = (value: string): Parsed<number> => {
    const bytes = quantityToNumber(value);
    if (bytes === undefined) return { problem: `must be a size such as 10Mi, got ${quote(value)}` };
    return bytes < min ? { problem: `must be at least ${formatBytes(min)}, got ${quote(value)}` } : { value: bytes };
  };
  return {
    hint: "size",
    fromText,
    fromField: (field) => fromText(asText(field)),
    toField: formatBytes,
    toText: formatBytes,
  };
}

export const formatBytes = (bytes: number): string =>
  formatQuantity({ unscaled: BigInt(bytes), scale: 0, format: "BinarySI" });
