import type { KubeletOptions } from "../base/model/kubelet-options.ts";
import { boolean } from "./kinds/scalar-kinds.ts";
import type { ValueKind } from "./kinds/value-kind.ts";

/** Origin of each option: `default`, `--flag`, or `file:line`. */
export type Origins = Readonly<Record<keyof KubeletOptions, string>>;

/** Chapters of `--help` and of docs/flags.md, in this order. */
export const SUBJECTS = [
  "Pods from files and URLs",
  "Run once",
  "Configuration",
  "Node",
  "Cluster",
  "Engine and images",
  "What pods may do",
  "Network of pods",
  "Container logs",
  "Servers",
  "Authenticated server",
  "Disk and memory pressure",
  "Logging",
] as const;
type Subject = (typeof SUBJECTS)[number];

interface RowBase {
  /** Long name without dashes; absent for options that only the file has. */
  flag?: string;
  /** One letter, e.g. `v`. */
  short?: string;
  /** Path in a KubeletConfiguration, e.g. `authentication.x509.clientCAFile`; options that upstream lacks are below `kubeletTs`. */
  field?: string;
}

/** An option that has an effect. */
export interface OptionRow extends RowBase {
  is: "option";
  option: keyof KubeletOptions;
  /** Syntax, unit and limits of the value. */
  kind: ValueKind<unknown>;
  /** In the unit of the option. Absent only from deprecated names of an option that another row declares. */
  default?: unknown;
  /** A change takes effect while the kubelet runs; without it kubelet-ts must be restarted, which pods do not notice. */
  live?: true;
  subject: Subject;
  /** One or two sentences. The default is not repeated. */
  description: string;
  /** Replaces the default in help where the bare value is not informative. */
  defaultText?: string;
  /**
   * 0 and "" in the file are values; without it they mean "not set", as upstream, so that files that a Go program wrote
   * in full can be read. Fields below `kubeletTs` always count.
   */
  zeroCounts?: true;
  /** Accepted without effect in this version; a warning gives the reason. */
  notYet?: string;
  /** Still honoured, with this warning. */
  deprecated?: string;
}

/** A flag of the program itself: `--config`, `--help`. */
export interface CommandRow extends RowBase {
  is: "command";
  flag: string;
  kind: ValueKind<unknown>;
  subject: Subject;
  description: string;
}

/** A flag of the kubelet that is accepted without effect; a warning gives the reason. */
export interface InapplicableRow extends RowBase {
  is: "inapplicable";
  /** false for a boolean flag, which takes no separate value. */
  takesValue: boolean;
  why: string;
  /** Values that describe the actual behaviour, or are the kubelet's defaults, which dumped configurations spell out: no warning. */
  silent?: readonly string[];
}

/** A flag of the kubelet that is not possible here: values other than `allowed` are errors. */
export interface RefusedRow extends RowBase {
  is: "refused";
  takesValue: boolean;
  why: string;
  allowed: readonly string[];
}

export type FlagRow = OptionRow | CommandRow | InapplicableRow | RefusedRow;

type TypedRow<K extends keyof KubeletOptions> = Omit<OptionRow, "is" | "option" | "kind" | "default"> & {
  option: K;
  kind: ValueKind<KubeletOptions[K]>;
};

/** The row that declares an option; checks that its kind and default fit. */
export function option<K extends keyof KubeletOptions>(
  row: TypedRow<K> & { default: KubeletOptions[K] },
): OptionRow & { option: K; default: unknown } {
  return { ...row, is: "option", kind: row.kind as unknown as ValueKind<unknown> };
}

/** A further name of an option. */
export function alias<K extends keyof KubeletOptions>(row: TypedRow<K>): OptionRow & { default?: never } {
  return { ...row, is: "option", kind: row.kind as unknown as ValueKind<unknown> };
}

export function command<T>(row: Omit<CommandRow, "is" | "kind"> & { kind: ValueKind<T> }): CommandRow {
  return { ...row, is: "command", kind: row.kind as unknown as ValueKind<unknown> };
}

/** @param names `flag` or `flag|field` or `|field`; a flag that is a boolean ends in `?`. */
export function inapplicable(why: string, names: readonly string[], silent: readonly string[] = []): InapplicableRow[] {
  return names.map((name) => ({ is: "inapplicable", why, silent, ...splitName(name) }));
}

export function refused(why: string, names: readonly string[], allowed: readonly string[] = [""]): RefusedRow[] {
  return names.map((name) => ({ is: "refused", why, allowed, ...splitName(name) }));
}

function splitName(name: string): RowBase & { takesValue: boolean } {
  const [flag = "", field = ""] = name.split("|");
  const takesValue = !flag.endsWith("?");
  const long = flag.replace("?", "");
  return { takesValue, ...(long ? { flag: long } : {}), ...(field ? { field } : {}) };
}

/** Whether the value is off, zero or empty. */
export function asksForNothing(value: unknown): boolean {
  return value === 0 || value === false || value === "" || (Array.isArray(value) && value.length === 0);
}

/** Whether a flag of this row takes the next word of the command line. */
export function takesValue(row: FlagRow): boolean {
  return "kind" in row ? row.kind !== (boolean as unknown as ValueKind<unknown>) : row.takesValue;
}
