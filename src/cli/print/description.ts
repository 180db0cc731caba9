import { alignTabs, visible } from "./text-table.ts";

/** Text in the layout of `kubectl describe`: names and values, indented by depth, values of a block in one column. */
export class Description {
  readonly #lines: string[] = [];

  /** `name:` and its value; further lines of a value are below the first. */
  field(depth: number, name: string, value: string | number | boolean | undefined): void {
    const [first = "", ...others] = textOf(value).split("\n").map(visible);
    this.#lines.push(`${indent(depth)}${visible(name)}:\t${first}`);
    for (const line of others) this.#lines.push(`${indent(depth)}\t${line}`);
  }

  /** As {@link Description.field}, left out when there is nothing to say. */
  optional(depth: number, name: string, value: string | number | undefined): void {
    if (value !== undefined && value !== "") this.field(depth, name, value);
  }

  /** `name:` with `value`s one below the other, `<none>` without any. */
  list(depth: number, name: string, values: readonly string[]): void {
    const [first = "<none>", ...others] = values;
    this.field(depth, name, [first, ...others].join("\n"));
  }

  /** A line of its own, `name:`, with what follows below it. */
  heading(depth: number, name: string): void {
    this.line(depth, `${name}:`);
  }

  line(depth: number, text: string): void {
    this.#lines.push(`${indent(depth)}${visible(text)}`);
  }

  /** A line of cells, aligned with those above and below. */
  cells(depth: number, cells: readonly string[]): void {
    this.#lines.push(`${indent(depth)}${cells.map(visible).join("\t")}`);
  }

  /** Ends with a line end. */
  toString(): string {
    return `${alignTabs(this.#lines.join("\n"))}\n`;
  }
}

const indent = (depth: number) => "  ".repeat(depth);

/** Go prints flags as `True` and `False` here. */
const textOf = (value: string | number | boolean | undefined) =>
  typeof value === "boolean" ? (value ? "True" : "False") : String(value ?? "");
