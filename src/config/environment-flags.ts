import { nearestName } from "../base/text/nearest-name.ts";
import { type CommandLine, parseCommandLine, type Setting } from "./flags.ts";
import { type FlagRow, OPTION_TABLE } from "./option-table.ts";

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
export function environmentSettings(
  environment: Readonly<Record<string, string | undefined>>,
): Pick<CommandLine, "settings" | "configPaths" | "configDir" | "warnings" | "errors"> {
  const settings: Setting[] = [];
  const configPaths: string[] = [];
  let configDir: string | undefined;
  const warnings: string[] = [];
  const errors: string[] = [];
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith(PREFIX) || !value || OTHERS.test(variable)) continue;
    const flag = FLAG_BY_VARIABLE.get(variable);
    if (!flag) {
      const near = nearestName(variable, [...FLAG_BY_VARIABLE.keys()]);
      warnings.push(`${variable} in the environment names no flag${near ? `; did you mean ${near}?` : ""}`);
      continue;
    }
    const line = parseCommandLine([`--${flag}=${value}`]);
    settings.push(...line.settings.map((setting) => ({ ...setting, origin: variable })));
    configPaths.push(...line.configPaths);
    configDir ??= line.configDir;
    errors.push(...line.errors.map((message) => message.replaceAll(`--${flag}`, variable)));
    warnings.push(...line.warnings.map((message) => message.replaceAll(`--${flag}`, variable)));
  }
  return { settings, configPaths, ...(configDir !== undefined && { configDir }), warnings, errors };
}

/** The files and directories of `--config` and `--config-dir`, or of their variables, as they are written. */
export function findConfigPaths(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Pick<CommandLine, "configPaths" | "configDir"> {
  return chooseConfigPaths(parseCommandLine(argv), environmentSettings(environment));
}

/** A flag replaces its variable. */
export function chooseConfigPaths(
  flags: Pick<CommandLine, "configPaths" | "configDir">,
  variables: Pick<CommandLine, "configPaths" | "configDir">,
): Pick<CommandLine, "configPaths" | "configDir"> {
  const configDir = flags.configDir ?? variables.configDir;
  return {
    configPaths: flags.configPaths.length > 0 ? flags.configPaths : variables.configPaths,
    ...(configDir !== undefined && { configDir }),
  };
}
