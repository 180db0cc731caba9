import { SECRET_FROM_ANNOTATION } from "./annotations.ts";
import type { Secret } from "./secret.ts";

/** Where the value of one key of a Secret comes from. */
export interface SecretValueSource {
  key: string;
  /** `file`: an absolute path. `credential`: a name in `$CREDENTIALS_DIRECTORY`. */
  kind: "file" | "credential";
  name: string;
}

const ENTRY = /^([-._a-zA-Z0-9]{1,253})=(file|credential):(.+)$/;

/**
 * Reads `kubelet-ts.io/secret-from`: `key=file:/path` and `key=credential:name`, separated by commas or line ends.
 * @returns what is wrong as `problem`
 */
export function parseSecretFrom(text: string): SecretValueSource[] | { problem: string } {
  const sources: SecretValueSource[] = [];
  for (const entry of text.split(/[,\n]/).map((part) => part.trim())) {
    if (entry === "") continue;
    const [, key = "", kind, name = ""] = ENTRY.exec(entry) ?? [];
    if (kind === undefined) return { problem: "each entry must be key=file:/path or key=credential:name" };
    if (kind === "file" && !name.startsWith("/")) return { problem: `the path of key ${key} must be absolute` };
    if (kind === "credential" && (name.includes("/") || name.startsWith("."))) {
      return { problem: `the credential of key ${key} must be a name without a slash` };
    }
    sources.push({ key, kind: kind as SecretValueSource["kind"], name });
  }
  return sources.length > 0 ? sources : { problem: "it names no key" };
}

/** The sources of a Secret; none when it has no such annotation, or a wrong one. */
export function secretSourcesOf({ metadata }: Secret): readonly SecretValueSource[] {
  const text = metadata.annotations?.[SECRET_FROM_ANNOTATION];
  const parsed = text === undefined ? [] : parseSecretFrom(text);
  return "problem" in parsed ? [] : parsed;
}
