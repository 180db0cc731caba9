import { columnsOf, type ResourceFormat, type ResourceItem, type ResourceName } from "./resource-view.ts";
import { TextTable } from "./text-table.ts";

export interface PrinterOptions {
  /** undefined: of another kind, whose columns are given. */
  resource: ResourceName | undefined;
  /** Column names of a kind that only the server knows. */
  columns?: (wide: boolean) => readonly string[];
  format: ResourceFormat;
  headers: boolean;
  /** `undefined`: a column for the namespace appears when one is not `default`. */
  namespaceColumn: boolean | undefined;
  /** Further columns, which the items' rows have. */
  labelHeaders?: readonly string[];
  toYaml: (value: unknown) => string;
}

const POD_STATUS_CELL = 2;

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

  get format(): ResourceFormat {
    return this.#options.format;
  }

  /** A list, or the one object that was named. */
  print(items: readonly ResourceItem[], isOne: boolean, now: Date): string {
    const { format, toYaml } = this.#options;
    if (format !== "json" && format !== "yaml") return this.lines(items, now);
    const value = isOne && items[0] ? items[0].object : toList(items);
    return format === "json" ? `${JSON.stringify(value, null, 4)}\n` : toYaml(value);
  }

  /** More of what was printed before: rows, or documents of their own. @param isGone they are no more */
  lines(items: readonly ResourceItem[], now: Date, isGone = false): string {
    const { resource, format, headers, labelHeaders = [], toYaml } = this.#options;
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
        const wide = format === "wide";
        const rows = items.map((item) => {
          const row = item.row(now, wide);
          if (isGone && resource === "pods") row[POD_STATUS_CELL] = "Deleted";
          return this.#hasNamespace ? [item.namespace ?? "", ...row] : row;
        });
        const own = resource === undefined ? (this.#options.columns?.(wide) ?? []) : columnsOf(resource, wide);
        const columns = [...own, ...labelHeaders];
        const header = this.#hasNamespace ? ["NAMESPACE", ...columns] : columns;
        const isFirst = !this.#hasHeader;
        this.#hasHeader = true;
        return this.#table.render(headers && isFirst ? [header, ...rows] : rows);
      }
      default:
        return format satisfies never;
    }
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

const toList = (items: readonly ResourceItem[]) => ({
  apiVersion: "v1",
  kind: "List",
  metadata: { resourceVersion: "" },
  items: items.map(({ object }) => object),
});
