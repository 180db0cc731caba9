/** Kubectl's tables: three blanks between columns, none narrower than six. */
const TABLE = { padding: 3, minWidth: 6 };
/** Blanks between the columns of kubectl's descriptions. */
const PADDING = 2;

/** Rows as kubectl prints them. Columns that were wide once stay so, so that later rows are aligned. */
export class TextTable {
  #widths: number[] = [];

  /** @returns the lines of these rows, the last with its line end; "" for no rows */
  render(rows: readonly (readonly string[])[]): string {
    const shown = rows.map((row) => row.map(toCell));
    for (const row of shown) {
      for (const [index, cell] of row.slice(0, -1).entries()) {
        const width = Math.max(lengthOf(cell) + TABLE.padding, TABLE.minWidth);
        this.#widths[index] = Math.max(this.#widths[index] ?? 0, width);
      }
    }
    const line = (row: readonly string[]) =>
      row.map((cell, index) => (index === row.length - 1 ? cell : pad(cell, this.#widths[index]!))).join("");
    return shown.map((row) => `${line(row)}\n`).join("");
  }
}

/**
 * Aligns cells that end in a tab, line below line, as Go's `text/tabwriter` does: a column is as wide as the widest cell
 * of a run of lines that all have it, so that a block does not widen the next one.
 */
export function alignTabs(text: string): string {
  const lines = text.split("\n").map((line) => line.split("\t"));
  const columns = Math.max(...lines.map((cells) => cells.length)) - 1;
  for (let column = 0; column < columns; column++) {
    let from = 0;
    for (let at = 0; at <= lines.length; at++) {
      // The text after the last tab of a line belongs to no column.
      if (at < lines.length && column < lines[at]!.length - 1) continue;
      const run = lines.slice(from, at);
      const width = Math.max(0, ...run.map((cells) => lengthOf(cells[column]!) + PADDING));
      for (const cells of run) cells[column] = pad(cells[column]!, width);
      from = at + 1;
    }
  }
  return lines.map((cells) => cells.join("").trimEnd()).join("\n");
}

/** One line of text that does nothing to a terminal: what follows a line end is cut off, control characters are shown. */
export function toCell(text: string): string {
  const [first = "", ...others] = text.trimEnd().split(/[\n\r\f]/);
  return visible(others.length > 0 ? `${first}...` : first);
}

/** Control characters as `^[` and the like; a message may come from anywhere, and must not move the cursor. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x80 ? `^${String.fromCharCode(code ^ 0x40)}` : `<${code.toString(16)}>`;
  });
}

/** In code points. */
const lengthOf = (text: string) => Array.from(text).length;

const pad = (text: string, width: number) => text + " ".repeat(Math.max(0, width - lengthOf(text)));

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

  /** Rows below the names of their columns, underlined. */
  table(columns: readonly string[], rows: readonly (readonly string[])[]): void {
    this.cells(1, columns);
    const rules = columns.map((name) => "-".repeat(name.length));
    this.cells(1, rules);
    for (const row of rows) this.cells(1, row);
  }

  /** `name:` with the lines of each item below it; `<none>` without any. */
  block<T>(depth: number, name: string, items: readonly T[], write: (item: T) => void): void {
    if (items.length === 0) return this.field(depth, name, "<none>");
    this.heading(depth, name);
    items.forEach(write);
  }

  /** `name:` with a field for each entry, sorted. */
  map(depth: number, name: string, entries: Readonly<Record<string, string>>): void {
    this.heading(depth, name);
    const sorted = Object.entries(entries).toSorted(([a], [b]) => (a < b ? -1 : 1));
    for (const [key, value] of sorted) this.field(depth + 1, key, value);
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
