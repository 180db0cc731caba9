import type { PrintedColumn } from "../../apiserver/printers/rows.ts";
import { EVENT_COLUMNS, eventAge, NODE_COLUMNS, POD_COLUMNS } from "../../apiserver/printers/rows.ts";
import { TextTable } from "./text-table.ts";

/** An object as a line of a table. */
export interface ResourceItem {
  /** Identifies an object over time. */
  key: string;
  /** `pod/web-node1`. */
  reference: string;
  /** undefined: the kind has no namespace. */
  namespace: string | undefined;
  /** With kind and apiVersion, as JSON and YAML show it. */
  object: object;
  /** One for each column. */
  cells: readonly string[];
}

/** Objects of one kind. */
export interface KindTable {
  columns: readonly { name: string; isWide: boolean }[];
  items: ResourceItem[];
}

export type ResourceFormat = "table" | "wide" | "json" | "yaml" | "name";

/** Kinds that `kubelet-ts get` prints without a local API. */
const OWN_KINDS = {
  pods: { kind: "Pod", columns: POD_COLUMNS },
  nodes: { kind: "Node", columns: NODE_COLUMNS },
  events: { kind: "Event", columns: EVENT_COLUMNS.with(0, { name: "Last Seen", cell: eventAge }) },
};
export type ResourceName = keyof typeof OWN_KINDS;

/** Objects of the kubelet's routes, in the columns of the API. */
export function toTable(of: ResourceName, objects: readonly object[], now: Date): KindTable {
  const { kind } = OWN_KINDS[of];
  const columns = OWN_KINDS[of].columns as readonly PrintedColumn<object>[];
  return {
    columns: columns.map(({ name, isWide = false }) => ({ name: name.toUpperCase(), isWide })),
    items: objects.map((object) => {
      const { metadata } = object as { metadata: { name?: string; namespace?: string; uid?: string } };
      const { uid, name, namespace = "default" } = metadata;
      return {
        key: uid ?? `${namespace}/${name}`,
        reference: `${kind.toLowerCase()}/${name}`,
        namespace: of === "nodes" ? undefined : namespace,
        // The items of lists lack the type fields.
        object: { ...object, apiVersion: "v1", kind },
        cells: columns.map(({ cell }) => cell(object, now)),
      };
    }),
  };
}

export interface PrinterOptions {
  columns: KindTable["columns"];
  format: ResourceFormat;
  headers: boolean;
  /** `undefined`: a column for the namespace appears when one is not `default`. */
  namespaceColumn: boolean | undefined;
  toYaml: (value: unknown) => string;
}

/** Objects as text, in one of the formats of `-o`; keeps the widths of columns for what is printed later. */
export class ResourcePrinter {
  readonly #options: PrinterOptions;
  #table = new TextTable();
  #hasHeader = false;
  #hasNamespace: boolean;

  constructor(options: PrinterOptions) {
    this.#options = options;
    this.#hasNamespace = options.namespaceColumn ?? false;
  }

  /** A list, or the one object that was named. */
  print(items: readonly ResourceItem[], isOne: boolean): string {
    const { format, toYaml } = this.#options;
    if (format !== "json" && format !== "yaml") return this.lines(items);
    const value = isOne && items[0] ? items[0].object : toList(items.map(({ object }) => object));
    return format === "json" ? `${JSON.stringify(value, null, 4)}\n` : toYaml(value);
  }

  /** More of what was printed before: rows, or documents of their own. @param isGone they are no more */
  lines(items: readonly ResourceItem[], isGone = false): string {
    const { columns, format, headers, toYaml } = this.#options;
    switch (format) {
      case "json":
        return items.map(({ object }) => `${JSON.stringify(object, null, 4)}\n`).join("");
      case "yaml":
        return items.map(({ object }) => `---\n${toYaml(object)}`).join("");
      case "name":
        return items.map(({ reference }) => `${reference}\n`).join("");
      case "table":
      case "wide": {
        if (items.length === 0) return "";
        this.#widenFor(items);
        const names = columns.map(({ name }) => name);
        const line = (namespace: string, cells: readonly string[]) => [
          ...(this.#hasNamespace ? [namespace] : []),
          ...this.#shown(cells),
        ];
        const status = isGone && names.includes("RESTARTS") ? names.indexOf("STATUS") : -1;
        const rows = items.map(({ namespace = "", cells }) =>
          line(
            namespace,
            cells.map((cell, index) => (index === status ? "Deleted" : cell)),
          ),
        );
        const isFirst = !this.#hasHeader;
        this.#hasHeader = true;
        return this.#table.render(headers && isFirst ? [line("NAMESPACE", names), ...rows] : rows);
      }
      default:
        return format satisfies never;
    }
  }

  /** The cells below the columns of this format. */
  #shown(cells: readonly string[]): string[] {
    const { columns, format } = this.#options;
    return cells.filter((_, index) => format === "wide" || !columns[index]!.isWide);
  }

  /**
   * Objects that a watch prints after a new list: new and changed ones, in their order, then removed ones. A table changes
   * with its rows, ages aside, JSON and YAML with anything, a list of names with none.
   */
  changes(before: readonly ResourceItem[], after: readonly ResourceItem[]): string {
    const known = new Map(before.map((item) => [item.key, this.#fingerprint(item)]));
    const still = new Set(after.map(({ key }) => key));
    const changed = after.filter((item) => known.get(item.key) !== this.#fingerprint(item));
    const gone = before.filter(({ key }) => !still.has(key));
    return this.lines(changed) + this.lines(gone, true);
  }

  #fingerprint({ object, cells }: ResourceItem): string {
    const { columns, format } = this.#options;
    if (format === "name") return "";
    if (format === "json" || format === "yaml") return JSON.stringify(object);
    const { kind, metadata } = object as { kind?: string; metadata?: { resourceVersion?: string } };
    if (kind === "Event") return metadata?.resourceVersion ?? "";
    // `4 (3m ago)` has an age too.
    const ageless = cells.map((cell, index) => {
      const { name } = columns[index]!;
      return name === "AGE" ? "" : name === "RESTARTS" ? cell.split(" ", 1)[0]! : cell;
    });
    return JSON.stringify(this.#shown(ageless));
  }

  /** A pod of another namespace adds the column, and the header is printed again. */
  #widenFor(items: readonly ResourceItem[]): void {
    if (this.#options.namespaceColumn !== undefined || this.#hasNamespace) return;
    if (items.every(({ namespace = "default" }) => namespace === "default")) return;
    this.#hasNamespace = true;
    this.#hasHeader = false;
    this.#table = new TextTable();
  }
}

export const toList = (items: readonly object[]) => ({
  apiVersion: "v1",
  kind: "List",
  metadata: { resourceVersion: "" },
  items,
});
