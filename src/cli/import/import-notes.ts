/** The result of an import. */
export interface Imported {
  /** ConfigMaps and Secrets before the pods that use them. */
  manifests: object[];
  /** Steps before the pods run, and each setting that is not carried over. */
  notes: readonly string[];
}

/** Collects what an import cannot carry over; one line per key. */
export class ImportNotes {
  readonly lines: string[] = [];

  /** @param path e.g. `services.web.logging` */
  add(path: string, message: string): void {
    this.lines.push(`${path}: ${message}`);
  }
}

/** Text of a scalar; undefined for null, lists and maps. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;

/** A list of texts; a single text counts as a list of one. */
export function textsOf(value: unknown): string[] {
  const items = Array.isArray(value) ? value : [value];
  return items.flatMap((item) => textOf(item) ?? []);
}

/** The DNS label nearest to a name. */
export const toDnsLabel = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replace(/^-+|-+$/g, "") || "x";

/** Literal text for fields in which Kubernetes expands `$(NAME)`. */
export const withoutExpansion = (text: string): string => text.replaceAll("$(", "$$$$(");
