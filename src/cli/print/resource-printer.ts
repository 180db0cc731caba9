import type { PrintedColumn } from "../../apiserver/printers/age.ts";
import { EVENT_COLUMNS } from "../../apiserver/printers/event-row.ts";
import { NODE_COLUMNS, type NodeObject } from "../../apiserver/printers/node-row.ts";
import { POD_COLUMNS } from "../../apiserver/printers/pod-row.ts";
import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
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
  row: (now: Date, wide: boolean) => string[];
}

export type ResourceFormat = "table" | "wide" | "json" | "yaml" | "name";

/** Names of the columns of a kind. */
export type Columns = (wide: boolean) => readonly string[];

/** Kinds that `kubelet-ts get` prints without a local API. */
interface OwnKinds {
  pods: Pod;
  nodes: NodeObject;
  events: CoreEvent;
}
export type ResourceName = keyof OwnKinds;

interface OwnKind<T> {
  singular: string;
  /** Type fields, which the items of lists lack. */
  type: { apiVersion: "v1"; kind: string };
  columns: readonly PrintedColumn<T>[];
}

const OWN_KINDS: { readonly [Name in ResourceName]: OwnKind<OwnKinds[Name]> } = {
  pods: { singular: "pod", type: { apiVersion: "v1", kind: "Pod" }, columns: POD_COLUMNS },
  nodes: { singular: "node", type: { apiVersion: "v1", kind: "Node" }, columns: NODE_COLUMNS },
  events: { singular: "event", type: { apiVersion: "v1", kind: "Event" }, columns: EVENT_COLUMNS },
};

const shown = <T>(columns: readonly PrintedColumn<T>[], wide: boolean) =>
  columns.filter(({ isWide }) => wide || !isWide);

export const columnsOf =
  (name: ResourceName): Columns =>
  (wide) =>
    shown<never>(OWN_KINDS[name].columns, wide).map((column) => column.name.toUpperCase());

export function toItem<Name extends ResourceName>(name: Name, object: OwnKinds[Name]): ResourceItem {
  const { singular, type, columns } = OWN_KINDS[name] as OwnKind<OwnKinds[Name]>;
  const { metadata } = object as { metadata: { name?: string; namespace?: string; uid?: string } };
  return {
    key: metadata.uid ?? `${metadata.namespace}/${metadata.name}`,
    reference: `${singular}/${metadata.name}`,
    namespace: name === "nodes" ? undefined : (metadata.namespace ?? "default"),
    object: { ...type, ...object },
    row: (now, wide) => shown(columns, wide).map(({ cell }) => cell(object, now)),
  };
}

export interface PrinterOptions {
  columns: Columns;
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
  print(items: readonly ResourceItem[], isOne: boolean, now: Date): string {
    const { format, toYaml } = this.#options;
    if (format !== "json" && format !== "yaml") return this.lines(items, now);
    const value = isOne && items[0] ? items[0].object : toList(items.map(({ object }) => object));
    return format === "json" ? `${JSON.stringify(value, null, 4)}\n` : toYaml(value);
  }

  /** More of what was printed before: rows, or documents of their own. @param isGone they are no more */
  lines(items: readonly ResourceItem[], now: Date, isGone = false): string {
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
        const names = columns(format === "wide");
        const withNamespace = (namespace: string, row: readonly string[]) =>
          this.#hasNamespace ? [namespace, ...row] : row;
        const rows = items.map((item) => {
          const row = item.row(now, format === "wide");
          if (isGone && names.includes("RESTARTS")) row[names.indexOf("STATUS")] = "Deleted";
          return withNamespace(item.namespace ?? "", row);
        });
        const isFirst = !this.#hasHeader;
        this.#hasHeader = true;
        return this.#table.render(headers && isFirst ? [withNamespace("NAMESPACE", names), ...rows] : rows);
      }
      default:
        return format satisfies never;
    }
  }

  /**
   * Objects that a watch prints after a new list: new and changed ones, in their order, then removed ones. A table changes
   * with its rows, ages aside, JSON and YAML with anything, a list of names with none.
   */
  changes(before: readonly ResourceItem[], after: readonly ResourceItem[], now: Date): string {
    const known = new Map(before.map((item) => [item.key, this.#fingerprint(item)]));
    const still = new Set(after.map(({ key }) => key));
    const changed = after.filter((item) => known.get(item.key) !== this.#fingerprint(item));
    const gone = before.filter(({ key }) => !still.has(key));
    return this.lines(changed, now) + this.lines(gone, now, true);
  }

  #fingerprint({ object, row }: ResourceItem): string {
    const { columns, format } = this.#options;
    if (format === "name") return "";
    if (format === "json" || format === "yaml") return JSON.stringify(object);
    const { kind, metadata } = object as { kind?: string; metadata?: { resourceVersion?: string } };
    if (kind === "Event") return metadata?.resourceVersion ?? "";
    const names = columns(format === "wide");
    // `4 (3m ago)` has an age too.
    const cells = row(new Date(0), format === "wide").map((cell, index) =>
      names[index] === "AGE" ? "" : names[index] === "RESTARTS" ? cell.split(" ")[0] : cell,
    );
    return JSON.stringify(cells);
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
