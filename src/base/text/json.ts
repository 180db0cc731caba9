import { unlessFailed } from "./error-message.ts";

/** A value of JSON or YAML. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Whether a value of JSON is an object. */
export function isRecord(value: Json | undefined): value is { readonly [key: string]: Json };
export function isRecord(value: unknown): value is Record<string, unknown>;
export function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value of a JSON text; undefined for another text. */
export const jsonIfValid = (text: string): unknown => unlessFailed(() => JSON.parse(text));

/** Sets a member also when it is called `__proto__`. */
export function define(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") target[name] = value;
  else Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}

/** JSON with sorted keys and without undefined members: equal for objects that differ only in the order of keys. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
  return `{${members.join(",")}}`;
}

/** The first 32 hex digits of the SHA-256 of a text. */
export const hex32 = (text: string): string => Bun.SHA256.hash(text, "hex").slice(0, 32);
