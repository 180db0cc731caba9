import { nearestName } from "../text/nearest-name.ts";
import { parseCommandLine, type Setting } from "./flags.ts";
import { OPTION_TABLE } from "./option-table.ts";

const PREFIX = "KUBELET_TS_";
/** Read elsewhere: by the tests, and by the commands. */
const OTHERS = /^KUBELET_TS_(TEST_|BINARY$|SOAK$|SERVER$)/;

/** The variable of a flag: `--max-pods` is KUBELET_TS_MAX_PODS. */
export const variableOf = (flag: string): string => `${PREFIX}${flag.toUpperCase().replaceAll("-", "_")}`;

const FLAG_BY_VARIABLE: ReadonlyMap<string, string> = new Map(
  OPTION_TABLE.flatMap((row) => (row.is === "option" && row.flag ? [[variableOf(row.flag), row.flag] as const] : [])),
);

/**
 * Options set by the environment. They override the configuration file and yield to flags. A list is written as with
 * one flag; an empty variable counts as not set.
 */
export function environmentSettings(environment: Readonly<Record<string, string | undefined>>): {
  settings: Setting[];
  warnings: string[];
  errors: string[];
} {
  const settings: Setting[] = [];
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
    errors.push(...line.errors.map((message) => message.replaceAll(`--${flag}`, variable)));
    warnings.push(...line.warnings.map((message) => message.replaceAll(`--${flag}`, variable)));
  }
  return { settings, warnings, errors };
}
