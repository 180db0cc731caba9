import type { ArgsDef } from "citty";
import { type CommandRow, SUBJECTS } from "../config/option-row.ts";
import { DEFAULT_KUBELET_OPTIONS, type OptionRow, SHOWN_ROWS } from "../config/option-table.ts";
import { flagsOf, GLOBAL_ARGS, hintOf, writtenName } from "./arguments.ts";

/** A sub-command as help shows it. */
export interface CommandManual {
  name: string;
  /** Half a line, for the list of commands. */
  description: string;
  /** Section of `kubelet-ts --help`; a command without one is not shown. */
  section?: "Show" | "Change" | "Inside" | "Check" | "Setup";
  /** Usage lines, without `kubelet-ts `. */
  usage: readonly string[];
  /** Paragraph below the usage. */
  about: string;
  args: ArgsDef;
}

const WIDTH = 80;

/** Flags of the kubelet that most command lines have. */
const FREQUENT_FLAGS = ["--pod-manifest-path", "--root-dir", "--config", "-v"];

/** `kubelet-ts --help`: one screen with every command and the names of the most frequent flags. */
export function renderHelp(commands: readonly CommandManual[]): string {
  const shown = commands.filter(({ section }) => section !== undefined);
  const widest = Math.max(...shown.map(({ name }) => name.length), 0);
  const sections = [...new Set(shown.map(({ section }) => section))];
  return `${[
    "kubelet-ts runs Kubernetes pods on Docker, without a cluster.",
    "",
    "  kubelet-ts [flags] MANIFEST…            supervise the pods of the manifests",
    "  kubelet-ts --runonce [flags] MANIFEST…  start them, wait for them, exit",
    "  kubelet-ts COMMAND [flags] [arguments]  (help COMMAND shows its flags)",
    "",
    "A manifest is a file, a directory or a URL; with --runonce also -.",
    "",
    ...sections.flatMap((section) =>
      shown
        .filter((command) => command.section === section)
        .map(({ name, description }, index) => {
          const title = index === 0 ? `${section}:` : "";
          return `${title.padEnd(9)}${name.padEnd(widest)}  ${description}`;
        }),
    ),
    `Flags:   ${FREQUENT_FLAGS.join(", ")} (all: help flags)`,
    "Exit codes: 0 done, 1 a pod or the work failed, 2 bad usage or manifest.",
  ].join("\n")}\n`;
}

/** `kubelet-ts help flags`: the flags of the kubelet by subject, with their defaults. */
export function renderFlagsHelp(): string {
  const lines = ["Flags of the kubelet:"];
  for (const subject of SUBJECTS) {
    const rows = SHOWN_ROWS.filter((row) => row.subject === subject && row.flag !== undefined);
    if (rows.length === 0) continue;
    lines.push("", `${subject}:`);
    for (const row of rows) {
      lines.push(`  ${flagNames(row)}${row.kind.hint === "" ? "" : ` ${row.kind.hint}`}`);
      // A long list may be broken at its commas.
      const value = defaultText(row).replaceAll(",", ", ").replaceAll(",  ", ", ");
      lines.push(...wrap(row.description + (value === "" ? "" : ` (default: ${value})`), "      "));
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

/** `kubelet-ts get --help` and the like, from the command's declaration. */
export function renderCommandHelp({ name, usage, about, args }: CommandManual): string {
  const [first = "", ...others] = usage;
  const flags = flagsOf(args).map((flag) => {
    const { def } = flag;
    const negative = "negativeDescription" in def ? def.negativeDescription : undefined;
    const hint = hintOf(def);
    return {
      left: `  ${flag.short ? `-${flag.short}, ` : "    "}--${writtenName(flag)}${hint === "" ? "" : ` ${hint}`}`,
      description: negative ?? def.description ?? "",
      isGlobal: flag.name in GLOBAL_ARGS || flag.name === "help",
    };
  });
  const width = Math.min(32, Math.max(...flags.map(({ left }) => left.length)) + 2);
  const line = ({ left, description }: (typeof flags)[number]): string[] =>
    left.length + 2 > width ? [left, ...wrap(description, " ".repeat(width))] : wrap(description, left.padEnd(width));
  const own = flags.filter(({ isGlobal }) => !isGlobal);
  return `${[
    `Usage: kubelet-ts ${first}`,
    ...others.map((other) => `       kubelet-ts ${other}`),
    "",
    ...wrap(about.replaceAll("\n", " "), ""),
    ...(own.length === 0 ? [] : ["", `Flags of ${name}:`, ...own.flatMap(line)]),
    "",
    "Flags of every command:",
    ...flags.filter(({ isGlobal }) => isGlobal).flatMap(line),
  ].join("\n")}\n`;
}

function flagNames({ flag, short }: OptionRow | CommandRow): string {
  const long = flag === short ? "" : `--${flag}`;
  return [short === undefined ? "" : `-${short}`, long].filter(Boolean).join(", ");
}

/** The default for users; "" where there is nothing to say. */
export function defaultText(row: OptionRow | CommandRow): string {
  if (row.is === "command") return "";
  if (row.defaultText !== undefined) return row.defaultText;
  const value: unknown = DEFAULT_KUBELET_OPTIONS[row.option];
  return value === false ? "" : row.kind.toText(value);
}

/** Words in lines of 80 columns. @param first what the first line begins with; further lines are indented as far */
export function wrap(text: string, first: string): string[] {
  const indent = " ".repeat(first.length);
  const lines = Bun.wrapAnsi(text, WIDTH - first.length).split("\n");
  return lines.map((line, index) => (index === 0 ? first : indent) + line);
}
