import type { SecretHeader } from "../../base/model/option-values.ts";
import { isRecord } from "../../base/text/json.ts";
import { quote, type ValueKind } from "./value-kind.ts";

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function checkHeader(name: string, value: string): string | undefined {
  if (!HEADER_NAME.test(name)) return `is not a header name: ${quote(name)}`;
  // The value is a secret and must not appear in messages.
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)) return `the value of ${name} contains a control character`;
  return undefined;
}

/** `name:value`, repeatable; several in one flag when separated by commas, as the kubelet's. Values are secret. */
export const secretHeaders: ValueKind<readonly SecretHeader[]> = {
  hint: "name:value",
  fromText: (flag) => {
    const headers: SecretHeader[] = [];
    // A comma separates headers only when "name:" follows; otherwise it is part of the value (Accept: a, b).
    for (const part of flag.split(/,(?=\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+:)/)) {
      if (part.trim() === "") continue;
      const at = part.indexOf(":");
      if (at < 1) return { problem: "must be name:value" };
      const header = { name: part.slice(0, at).trim(), value: part.slice(at + 1).trim() };
      const problem = checkHeader(header.name, header.value);
      if (problem) return { problem };
      headers.push(header);
    }
    return { value: headers };
  },
  fromField: (field) => {
    if (!isRecord(field)) return { problem: "must be a map of header names to lists of values" };
    const headers: SecretHeader[] = [];
    for (const [name, values] of Object.entries(field)) {
      if (!Array.isArray(values) || !values.every((value) => typeof value === "string")) {
        return { problem: `${name}: must be a list of strings` };
      }
      for (const value of values as string[]) {
        const problem = checkHeader(name, value);
        if (problem) return { problem };
        headers.push({ name, value });
      }
    }
    return { value: headers };
  },
  toField: (headers) => {
    const shown: Record<string, string[]> = {};
    for (const header of headers) {
      shown[header.name] ??= [];
      shown[header.name]!.push(MASK);
    }
    return shown;
  },
  toText: (headers) => headers.map((header) => `${header.name}:${MASK}`).join(","),
  combine: (earlier, later) => [...earlier, ...later],
};

/** Shown instead of secrets. Source: kubelet's masked manifest URL header. */
const MASK = "<masked>";
