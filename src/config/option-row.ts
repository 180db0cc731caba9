import type { KubeletOptions } from "../model/kubelet-options.ts";
import { boolean, type ValueKind } from "./value-kinds.ts";

/** Chapters of `--help` and of docs/flags.md, in this order. */
export const SUBJECTS = [
  "Pods from files and URLs",
  "Run once",
  "Configuration",
  "Node",
  "Engine and images",
  "What pods may do",
  "Network of pods",
  "Container logs",
  "Servers",
  "Authenticated server",
  "Disk and memory pressure",
  "Logging",
] as const;
export type Subject = (typeof SUBJECTS)[number];

interface RowBase {
  /** Long name without dashes; absent for what only the file can say. */
  flag?: string;
  /** One letter, e.g. `v`. */
  short?: string;
  /** Path in a KubeletConfiguration, e.g. `authentication.x509.clientCAFile`. Ours stand below `kubeletTs`. */
  field?: string;
}

/** Something that can be set and has an effect. */
export interface OptionRow extends RowBase {
  is: "option";
  option: keyof KubeletOptions;
  kind: ValueKind<unknown>;
  subject: Subject;
  /** One or two sentences: what it does. No default: that comes from the options. */
  description: string;
  /** For help, where the bare default says too little. */
  defaultText?: string;
  /**
   * In the file 0 and "" mean something here; elsewhere they mean "not set", as upstream, so that files a Go program
   * wrote in full can be read. Fields below `kubeletTs` always count.
   */
  zeroCounts?: true;
  /** Accepted, but nothing does it in this version: a one-line warning says so, and why. */
  notYet?: string;
  /** Still honoured, with a one-line warning that says this. */
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

/** Known to the kubelet, accepted, without effect here; a one-line warning says why. */
export interface InapplicableRow extends RowBase {
  is: "inapplicable";
  /** false: a boolean flag, which takes no word of its own. */
  takesValue: boolean;
  why: string;
  /** Values that ask for what is the case anyway: no warning. */
  silent?: readonly string[];
}

/** Cannot be had here; anything but one of `allowed` is an error that says why. */
export interface RefusedRow extends RowBase {
  is: "refused";
  takesValue: boolean;
  why: string;
  allowed: readonly string[];
}

export type FlagRow = OptionRow | CommandRow | InapplicableRow | RefusedRow;

/** Types each row by its option, then forgets the type: the table is one list. */
export function option<K extends keyof KubeletOptions>(
  row: Omit<OptionRow, "is" | "option" | "kind"> & { option: K; kind: ValueKind<KubeletOptions[K]> },
): OptionRow {
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

/** Off, none, empty: what an option without effect does anyway. */
export function asksForNothing(value: unknown): boolean {
  return value === 0 || value === false || value === "" || (Array.isArray(value) && value.length === 0);
}

/** Whether a flag of this row swallows the next word of the command line. */
export function takesValue(row: FlagRow): boolean {
  return "kind" in row ? row.kind !== (boolean as unknown as ValueKind<unknown>) : row.takesValue;
}
