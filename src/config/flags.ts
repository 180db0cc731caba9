import { didYouMean, nearestFlag } from "../base/text/nearest-name.ts";
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
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index]!;
    if (word === "--") {
      line.positionals.push(...argv.slice(index + 1));
      break;
    }
    if (word === "-" || !word.startsWith("-")) {
      // `--runonce true` would make "true" a manifest.
      if (previous !== undefined && /^(true|false)$/i.test(word)) {
        line.errors.push(`--${previous} ${word}: write --${previous}=${word}`);
      } else line.positionals.push(word);
      previous = undefined;
      continue;
    }
    const { name, dashes, attached } = takeApart(word);
    const row = findRow(name, dashes, (message) => warnings.add(message));
    if (!row) {
      line.errors.push(unknownFlag(dashes + name));
      previous = undefined;
      continue;
    }
    const flag = row.flag ?? name;
    let value = attached;
    if (value === undefined && takesValue(row)) {
      value = argv[++index];
      if (value === undefined || isKnownFlag(value)) {
        line.errors.push(`--${flag}: needs a value`);
        index--;
        continue;
      }
    }
    previous = value === undefined ? flag : undefined;
    apply(row, flag, value ?? "true");
  }
  for (const [flag, { row, text }] of unsupported) {
    if (row.accepted.includes(text)) continue;
    if (row.is === "refused") line.errors.push(`--${flag}: ${row.why}`);
    else warnings.add(`--${flag} has no effect: ${row.why}`);
  }
  return { ...line, settings: [...settings.values()], warnings: [...warnings] };
}

function takeApart(word: string): { name: string; dashes: string; attached?: string } {
  const dashes = word.startsWith("--") ? "--" : "-";
  const body = word.slice(dashes.length);
  const at = body.indexOf("=");
  const name = at < 0 ? body : body.slice(0, at);
  if (dashes === "-" && name.length > 1) {
    // `-v4`; but `-version` is meant as `--version`.
    const row = ROW_BY_FLAG.get(name.charAt(0));
    if (row?.short === name.charAt(0) && takesValue(row) && !ROW_BY_FLAG.has(name)) {
      return { name: name.charAt(0), dashes, attached: body.slice(1) };
    }
  }
  return at < 0 ? { name, dashes } : { name, dashes, attached: body.slice(at + 1) };
}

function findRow(name: string, dashes: string, warn: (message: string) => void): FlagRow | undefined {
  const row = ROW_BY_FLAG.get(name);
  if (dashes === "-") return row?.short === name ? row : undefined;
  if (row?.flag === name) return row;
  const dashed = name.replaceAll("_", "-");
  const normalized = ROW_BY_FLAG.get(dashed);
  if (dashed === name || normalized?.flag !== dashed) return undefined;
  warn(`--${name}: write --${dashed}`);
  return normalized;
}

const isKnownFlag = (word: string): boolean =>
  word.startsWith("--") && ROW_BY_FLAG.has(word.slice(2).split("=", 1)[0]!);

function unknownFlag(written: string): string {
  const name = written.replace(/^-+/, "");
  const longNames = [...ROW_BY_FLAG]
    .filter(([key, row]) => row.flag === key && row.is !== "refused")
    .map(([key]) => key);
  // One dash before a long name, as Go programs accept.
  if (written.startsWith("-") && !written.startsWith("--") && longNames.includes(name)) {
    return `${written}: no such flag; did you mean --${name}?`;
  }
  const nearest = nearestFlag(name.replaceAll("_", "-"), longNames);
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
  const all: CommandLine = { settings: [], configPaths: [], positionals: [], warnings: [], errors: [] };
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || !value || OTHERS.test(variable)) continue;
    const flag = FLAG_BY_VARIABLE.get(variable);
    if (!flag) {
      const hint = didYouMean(variable, FLAG_BY_VARIABLE.keys());
      all.warnings.push(`${variable} in the environment names no flag${hint}`);
      continue;
    }
    const line = parseCommandLine([`--${flag}=${value}`]);
    all.settings.push(...line.settings.map((setting) => ({ ...setting, origin: variable })));
    all.configPaths.push(...line.configPaths);
    if (line.configDir !== undefined) all.configDir = line.configDir;
    all.errors.push(...line.errors.map((message) => message.replaceAll(`--${flag}`, variable)));
    all.warnings.push(...line.warnings.map((message) => message.replaceAll(`--${flag}`, variable)));
  }
  return all;
}

type ConfigPaths = Pick<CommandLine, "configPaths" | "configDir">;

/** The files and directories of `--config` and `--config-dir`, or of their variables, as they are written. */
export const findConfigPaths = (
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ConfigPaths => chooseConfigPaths(parseCommandLine(argv), environmentSettings(environment));

/** A flag replaces its variable. */
export function chooseConfigPaths(flags: ConfigPaths, variables: ConfigPaths): ConfigPaths {
  const configDir = flags.configDir ?? variables.configDir;
  return {
    configPaths: flags.configPaths.length > 0 ? flags.configPaths : variables.configPaths,
    ...(configDir !== undefined && { configDir }),
  };
}
