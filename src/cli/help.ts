import type { CommandRow, OptionRow } from "../config/option-row.ts";
import { SUBJECTS } from "../config/option-row.ts";
import { SHOWN_ROWS } from "../config/option-table.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../model/kubelet-options.ts";

export interface CommandSummary {
  name: string;
  /** Half a line. */
  description: string;
}

const WIDTH = 80;

/** `kubelet-ts --help`: what there is to do, then the flags by subject; no line is longer than 80 columns. */
export function renderHelp(commands: readonly CommandSummary[]): string {
  const widest = Math.max(...commands.map(({ name }) => name.length), 0);
  const lines = [
    "kubelet-ts runs Kubernetes pods on Docker, without a cluster.",
    "",
    "Usage:",
    "  kubelet-ts [flags] [manifest…]             supervise the pods of the manifests",
    "  kubelet-ts --runonce [flags] manifest…     start them, wait for them, exit",
    "  kubelet-ts command [flags] [arguments]     help command shows its flags",
    "",
    "A manifest is a file, a directory or a URL; with --runonce also - for standard",
    "input. Exit codes: 0 done, 1 a pod or the work failed, 2 bad usage or manifest.",
    "",
    "Commands:",
    ...commands.flatMap(({ name, description }) => wrap(description, `  ${name.padEnd(widest)}  `)),
  ];
  for (const subject of SUBJECTS) {
    const rows = SHOWN_ROWS.filter((row) => row.subject === subject && row.flag !== undefined);
    if (rows.length === 0) continue;
    lines.push("", `${subject}:`);
    for (const row of rows) {
      lines.push(`  ${flagNames(row)}${row.kind.hint === "" ? "" : ` ${row.kind.hint}`}`);
      // A long list may be broken at its commas.
      const value = defaultText(row).replaceAll(",", ", ").replaceAll(",  ", ", ");
      const not = row.is === "option" && row.notYet ? " (no effect yet)" : "";
      lines.push(...wrap(row.description + not + (value === "" ? "" : ` (default: ${value})`), "      "));
    }
  }
  lines.push(
    "",
    ...wrap(
      "Flags of the kubelet that have no meaning here are accepted with a warning. All of them, and the fields of the configuration file: docs/flags.md.",
      "",
    ),
  );
  return `${lines.join("\n")}\n`;
}

function flagNames({ flag, short }: OptionRow | CommandRow): string {
  const long = flag === short ? "" : `--${flag}`;
  return [short === undefined ? "" : `-${short}`, long].filter(Boolean).join(", ");
}

/** The default for people; "" where there is nothing to say. */
export function defaultText(row: OptionRow | CommandRow): string {
  if (row.is === "command") return "";
  if (row.defaultText !== undefined) return row.defaultText;
  const value: unknown = DEFAULT_KUBELET_OPTIONS[row.option];
  return value === false ? "" : row.kind.toText(value);
}

/** @param first what the first line begins with; further lines are indented as far. */
function wrap(text: string, first: string): string[] {
  const indent = " ".repeat(first.length);
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of text.split(" ")) {
    if (!isEmpty && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = indent;
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, line];
}
