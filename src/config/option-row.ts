import { boolean, type ValueKind } from "./kinds/scalar-kinds.ts";

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

/** Description of an option, and what differs from most options. */
interface OptionNotes {
  short?: string;
  /** A former name, or that of the kubelet: works and warns. */
  oldFlag?: string;
  /** One or two sentences. The default is not repeated. */
  description: string;
  /** Replaces the default in help where the bare value is not informative. */
  defaultText?: string;
  /**
   * 0 and "" in the file are values; without it they mean "not set", as upstream, so that files that a Go program wrote
   * in full can be read. Fields below `kubeletTs` always count.
   */
  zeroCounts?: true;
  /** A change takes effect while the kubelet runs; without it kubelet-ts must be restarted, which pods do not notice. */
  live?: true;
}

/** An option that has an effect. */
export interface DeclaredRow<Name extends string> extends RowBase, OptionNotes {
  is: "option";
  option: Name;
  /** Syntax, unit and limits of the value. */
  kind: ValueKind<unknown>;
  /** In the unit of the option. Absent only from the old name of an option. */
  default?: unknown;
  /** The row is an old name: what to write instead. */
  deprecated?: string;
  subject: Subject;
}

/** A flag of the program itself: `--config`, `--help`. */
export interface CommandRow extends RowBase {
  is: "command";
  flag: string;
  kind: ValueKind<unknown>;
  subject: Subject;
  description: string;
}

/** A flag of the kubelet that has no meaning here: inapplicable ones are accepted with a warning, refused ones are errors. */
export interface UnsupportedRow extends RowBase {
  is: "inapplicable" | "refused";
  /** false for a boolean flag, which takes no separate value. */
  takesValue: boolean;
  why: string;
  /** Values that need no message: they describe the actual behavior, or are defaults, which dumped configurations spell out. */
  accepted: readonly string[];
}

export type TableRow<Name extends string> = DeclaredRow<Name> | CommandRow | UnsupportedRow;

/** An option without its name and its subject, which {@link options} adds. */
export interface OptionDraft<T> extends OptionNotes {
  flag: string | undefined;
  field: string | undefined;
  kind: ValueKind<T>;
  default: T;
}

/** The field of upstream that has the name of the option, without its unit. */
export const UPSTREAM = "<name>";
/** The same for an option that upstream lacks. */
export const OURS = "kubeletTs.<name>";

/**
 * Declares an option. Its type is that of its kind; an empty string or list means "not set", a port of 0 is off.
 * @param flag long name without dashes; undefined: only the file has it
 * @param field path in a KubeletConfiguration: {@link UPSTREAM}, {@link OURS}, or e.g.
 * `authentication.x509.clientCAFile`
 * @param fallback the default, in the unit that the name of the option ends with
 */
export const option = <T>(
  flag: string | undefined,
  field: string | undefined,
  kind: ValueKind<T>,
  fallback: NoInfer<T>,
  notes: OptionNotes,
): OptionDraft<T> => ({ flag, field, kind, default: fallback, ...notes });

/** The default of a map without entries. */
export const NONE: Readonly<Record<string, never>> = {};

/** The options of one subject by their names; `KubeletOptions` is derived from them. */
export const options = <D extends Readonly<Record<string, { field: string | undefined }>>>(
  subject: Subject,
  drafts: D,
): D =>
  Object.fromEntries(
    Object.entries(drafts).map(([name, draft]) => {
      const field = draft.field?.replace("<name>", name.replace(/(Ms|Bytes|Seconds|Percent)$/, ""));
      return [name, { ...draft, field, subject, option: name }];
    }),
  ) as unknown as D;

/** @param names separated by blanks: `flag` or `flag|field` or `|field`; a flag that is a boolean ends in `?`. */
export const inapplicable = (why: string, names: string, accepted: readonly string[] = []): UnsupportedRow[] =>
  unsupported("inapplicable", why, names, accepted);

export const refused = (why: string, names: string, accepted: readonly string[] = [""]): UnsupportedRow[] =>
  unsupported("refused", why, names, accepted);

const unsupported = (
  is: UnsupportedRow["is"],
  why: string,
  names: string,
  accepted: readonly string[],
): UnsupportedRow[] =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => {
      const [written = "", field = ""] = name.split("|");
      const flag = written.replace("?", "");
      return { is, why, accepted, takesValue: flag === written, ...(flag && { flag }), ...(field && { field }) };
    });

/** Whether a flag of this row takes the next word of the command line. */
export function takesValue(row: TableRow<string>): boolean {
  return "kind" in row ? row.kind !== boolean : row.takesValue;
}
