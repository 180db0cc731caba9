import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../../src/base/api/pod.ts";

/** One recorded verdict of the kubelet; test/fixtures/oracle/README.md has the meaning of each field. */
export interface OracleCase {
  id: string;
  group: string;
  manifest?: string;
  manifest_b64?: string;
  source?: "url";
  files?: unknown[];
  ok: boolean;
  stage?: "yaml" | "decode" | "kind" | "validate";
  errors?: { field: string; type: string }[];
  errors_new?: { field: string; type: string }[];
  pod?: Pod;
  pods?: Pod[];
}

export function readOracleCases(name: "validation-open" | "sources-open"): OracleCase[] {
  const packed = readFileSync(join(import.meta.dir, "../fixtures/oracle", `${name}.jsonl.gz`));
  // Only \n ends a line: strings hold other separators.
  const lines = new TextDecoder().decode(Bun.gunzipSync(packed)).split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as OracleCase);
}

export function bytesOf({ manifest, manifest_b64: base64 }: OracleCase): Uint8Array {
  return manifest === undefined ? Buffer.from(base64 ?? "", "base64") : Buffer.from(manifest, "utf8");
}

/** As the corpus shows a pod: what is generated reads `<generated>`, keys are sorted. */
export function comparable(pod: Pod | undefined): string {
  const copy = JSON.parse(JSON.stringify(pod ?? null)) as Pod | null;
  const { annotations } = copy?.metadata ?? {};
  const hash = "kubernetes.io/config.hash";
  if (copy && /^[0-9a-f]{32}$/.test(copy.metadata.uid ?? "")) copy.metadata.uid = "<generated>";
  if (annotations && /^[0-9a-f]{32}$/.test(annotations[hash] ?? "")) annotations[hash] = "<generated>";
  return JSON.stringify(copy, (_, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

/** Field and type of each error, each pair once. */
export function errorSet(errors: readonly { field: string; type?: string }[]): string[] {
  return [...new Set(errors.map(({ field, type }) => `${field} ${type}`))].sort();
}
