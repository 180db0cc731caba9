import { didYouMean, nearestByBeginning } from "../base/text/nearest-name.ts";
import { takesValue, type UnsupportedRow } from "./option-row.ts";
import { type FlagRow, OPTION_TABLE, type OptionRow, ROW_BY_FLAG } from "./option-table.ts";

/** An option set by flags or a file, with its origin. */
export interface Setting {
  row: OptionRow;
  value: unknown;
  /** e.g. `--max-pods` or `/etc/kubelet.yaml:12`. */
  origin: string;
}

/** A parsed command line; files are not yet read. Nothing is thrown: `errors` non-empty means exit code 2. */
export interface CommandLine {
  /** One per option; repeated flags are combined. */
  settings: Setting[];
  /** Values of `--config`, in order. */
  configPaths: string[];
  configDir?: string;
  /** Manifests given as arguments: files, directories, URLs, `-`. */
  positionals: string[];
  /** `--help` or `--version` was given; everything else is ignored. */
  request?: "help" | "version";
  warnings: string[];
  errors: string[];
}

/**
 * Parses the flags of the kubelet as upstream does: `--flag value`, `--flag=value`, `--bool`, `--bool=false`, `-v 4`,
 * `-v=4`, `-v4`; `_` counts as `-` in names; `--` ends the flags; the last of a repeated flag wins unless it is a list.
 * Source: pflag, kubelet's WordSepNormalizeFunc.
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const line: CommandLine = { settings: [], configPaths: [], positionals: [], warnings: [], errors: [] };
  const settings = new Map<OptionRow["option"], Setting>();
  /** The last value of each flag that has no meaning here. */
  const unsupported = new Map<string, { row: UnsupportedRow; text: string }>();
  const warnings = new Set<string>();
  const apply = (row: FlagRow, flag: string, text: string): void => {
    if (!("kind" in row)) return void unsupported.set(flag, { row, text });
    const parsed = row.kind.fromText(text);
    if ("problem" in parsed) return void line.errors.push(`--${flag}: ${parsed.problem}`);
    if (row.is === "option") {
      if (row.deprecated) warnings.add(`--${flag} is deprecated: ${row.deprecated}`);
      const earlier = settings.get(row.option);
      const value = earlier && row.kind.combine ? row.kind.combine(earlier.value, parsed.value) : parsed.value;
      settings.set(row.option, { row, value, origin: `--${flag}` });
    } else if (flag === "config") line.configPaths = text === "" ? [] : [...line.configPaths, text];
    else if (flag === "config-dir") line.configDir = text;
    else if (parsed.value === true) line.request ??= flag === "help" ? "help" : "version";
  };
  let previous: string | undefined;
  for (const { kind, text, value } of readWords(argv, flagTakesValue)) {
    if (kind !== "flag") {
      // `--runonce true` would make "true" a manifest.
      if (kind === "argument" && previous !== undefined && /^(true|false)$/i.test(text)) {
        line.errors.push(`--${previous} ${text}: write --${previous}=${text}`);
      } else line.positionals.push(text);
      previous = undefined;
      continue;
    }
    const row = findRow(text);
    const flag = row?.flag ?? text.replace(/^-+/, "");
    previous = row && value === undefined ? flag : undefined;
    if (!row) line.errors.push(unknownFlag(text));
    else if (value === undefined && takesValue(row)) {
      line.errors.push(
        `${text}: needs a value${text === "-v" ? ", as in -v 2; the version is shown by: kubelet-ts version" : ""}`,
      );
    } else {
      if (text.startsWith("--") && text !== `--${flag}`) warnings.add(`${text}: write --${flag}`);
      apply(row, flag, value ?? "true");
    }
  }
  for (const [flag, { row, text }] of unsupported) {
    if (row.accepted.includes(text)) continue;
    if (row.is === "refused") line.errors.push(`--${flag}: ${row.why}`);
    else warnings.add(`--${flag} has no effect: ${row.why}`);
  }
  return { ...line, settings: [...settings.values()], warnings: [...warnings] };
}

/** The row of a flag as it is written, e.g. `--max_pods` or `-v`. */
function findRow(written: string): FlagRow | undefined {
  const [, dashes, name = ""] = /^(--?)(.*)$/s.exec(written) ?? [];
  const dashed = name.replaceAll("_", "-");
  const row = ROW_BY_FLAG.get(name) ?? ROW_BY_FLAG.get(dashed);
  const isMeant = dashes === "--" ? row?.flag === name || row?.flag === dashed : row?.short === name;
  return isMeant ? row : undefined;
}

/** @param written with its dashes. @returns undefined for a flag that the kubelet does not have */
export function flagTakesValue(written: string): boolean | undefined {
  const row = findRow(written);
  return row && takesValue(row);
}

/** A part of a command line. */
export interface Word {
  /** `rest`: an argument behind `--`. */
  kind: "argument" | "flag" | "rest";
  /** The argument, or the name of the flag as written: `--max-pods`, `-v`. */
  text: string;
  /** The text behind `=` or behind the letter of a flag, or the next word. */
  value?: string | undefined;
  /** Position on the command line. */
  index: number;
}

/**
 * Takes a command line apart: `--name value`, `--name=value`, `-n value`, `-n=value`, `-nvalue`; `--` ends the flags.
 * @param takesValue whether a flag, with its dashes, needs a value; undefined: there is no such flag
 * @param asKubectl `-it` is two flags, and a value may look like a flag
 */
export function* readWords(
  argv: readonly string[],
  takesValue: (flag: string) => boolean | undefined,
  asKubectl = false,
): Generator<Word, void> {
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index]!;
    if (word === "--") {
      for (const text of argv.slice(index + 1)) yield { kind: "rest", text, index: ++index };
    } else if (!word.startsWith("-") || word === "-") yield { kind: "argument", text: word, index };
    else {
      for (const { text, value } of splitFlags(word, takesValue, asKubectl)) {
        const next = value === undefined && takesValue(text) ? argv[index + 1] : undefined;
        const isFlag = next === "--" || (next?.startsWith("--") && takesValue(next.split("=", 1)[0]!) !== undefined);
        const isNext = next !== undefined && (asKubectl || !isFlag);
        yield { kind: "flag", text, value: isNext ? next : value, index };
        if (isNext) index++;
      }
    }
  }
}

/** The flags of one word. A long name after one dash, as Go programs accept, stays whole: it has an error of its own. */
function splitFlags(
  word: string,
  takesValue: (flag: string) => boolean | undefined,
  areJoined: boolean,
): { text: string; value: string | undefined }[] {
  const [name = "", value] = word.split(/=(.*)/s, 2);
  const [letter, rest] = [word.slice(0, 2), word.slice(2)];
  const isWhole = rest === "" || letter === "--" || name.length === 2 || takesValue(`-${name}`) !== undefined;
  const takes = isWhole ? undefined : takesValue(letter);
  if (takes === undefined || !(takes || areJoined)) return [{ text: name, value }];
  if (takes || value !== undefined) return [{ text: letter, value: rest }];
  return [{ text: letter, value }, ...splitFlags(`-${rest}`, takesValue, areJoined)];
}

/**
 * The flag that is meant by one that does not exist; the long name after one dash is, too, as Go programs accept it.
 * @param others names of other flags
 */
export function nearestFlag(written: string, others: readonly string[] = []): string | undefined {
  const own = [...ROW_BY_FLAG].flatMap(([key, row]) => (row.flag === key && row.is !== "refused" ? [key] : []));
  return nearestByBeginning(written.replace(/^-+/, "").replaceAll("_", "-"), [...own, ...others]);
}

function unknownFlag(written: string): string {
  const nearest = nearestFlag(written);
  return `${written}: no such flag${nearest ? `; did you mean --${nearest}?` : " (see kubelet-ts --help)"}`;
}

const PREFIX = "KUBELET_TS_";
/** Read elsewhere: by the tests, and by the commands. */
const OTHERS = /^KUBELET_TS_(TEST_|BINARY$|SOAK$|SERVER$)/;

/** The variable of a flag: `--max-pods` is KUBELET_TS_MAX_PODS. */
export const variableOf = (flag: string): string => `${PREFIX}${flag.toUpperCase().replaceAll("-", "_")}`;

const FLAG_BY_VARIABLE: ReadonlyMap<string, string> = new Map(
  OPTION_TABLE.flatMap((row) => (hasVariable(row) ? [[variableOf(row.flag!), row.flag!] as const] : [])),
);

/** Flags that set an option or name a file of settings; not `--help` and `--version`. */
function hasVariable({ is, flag }: FlagRow): boolean {
  return flag !== undefined && (is === "option" || flag === "config" || flag === "config-dir");
}

/**
 * Options set by the environment. They override the configuration file and yield to flags. A list is written as with
 * one flag; an empty variable counts as not set.
 */
export function environmentSettings(environment: Readonly<Record<string, string | undefined>>): CommandLine {
  const argv: string[] = [];
  const unknown: string[] = [];
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || !value || OTHERS.test(variable)) continue;
    const flag = FLAG_BY_VARIABLE.get(variable);
    if (flag) argv.push(`--${flag}=${value}`);
    else unknown.push(`${variable} in the environment names no flag${didYouMean(variable, FLAG_BY_VARIABLE.keys())}`);
  }
  const line = parseCommandLine(argv);
  const named = (text: string) => text.replace(/^--[\w-]+/, (flag) => variableOf(flag.slice(2)));
  return {
    ...line,
    settings: line.settings.map((setting) => ({ ...setting, origin: named(setting.origin) })),
    errors: line.errors.map(named),
    warnings: [...unknown, ...line.warnings.map(named)],
  };
}
