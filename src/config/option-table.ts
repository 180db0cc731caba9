import type { CommandRow, DeclaredRow, OptionDraft, TableRow } from "./option-row.ts";
import { CLUSTER_OPTIONS, CLUSTER_OTHERS } from "./option-rows/cluster.ts";
import { ENGINE_OPTIONS, ENGINE_OTHERS } from "./option-rows/engine.ts";
import { LOGGING_OPTIONS, LOGGING_OTHERS } from "./option-rows/logging.ts";
import { NODE_OPTIONS, NODE_OTHERS } from "./option-rows/node.ts";
import { POD_OPTIONS, POD_OTHERS } from "./option-rows/pods.ts";
import { PRESSURE_OPTIONS, PRESSURE_OTHERS } from "./option-rows/pressure.ts";
import { SERVER_OPTIONS, SERVER_OTHERS } from "./option-rows/servers.ts";
import { COMMAND_ROWS, SOURCE_OPTIONS } from "./option-rows/sources.ts";

const DECLARED = {
  ...SOURCE_OPTIONS,
  ...NODE_OPTIONS,
  ...CLUSTER_OPTIONS,
  ...ENGINE_OPTIONS,
  ...POD_OPTIONS,
  ...SERVER_OPTIONS,
  ...PRESSURE_OPTIONS,
  ...LOGGING_OPTIONS,
};

type Declared = typeof DECLARED;

/**
 * Everything that can be set, after defaults, file, drop-ins and flags were laid over one another. Units are in the
 * names; durations are milliseconds; "" and an empty list mean "not set"; a port of 0 is off. Paths are absolute.
 * Each member is declared by a row of option-rows/: flag, field of the configuration file, syntax, default, description.
 */
export type KubeletOptions = {
  [Name in keyof Declared]: Declared[Name] extends OptionDraft<infer Value> ? Value : never;
};

/** Origin of each option: `default`, `--flag`, or `file:line`. */
export type Origins = Readonly<Record<keyof KubeletOptions, string>>;

/** The row of an option, or of a further name of it. */
export type OptionRow = DeclaredRow<keyof KubeletOptions>;
export type FlagRow = TableRow<keyof KubeletOptions>;

const OPTION_ROWS = Object.values(DECLARED).map((row) => ({ ...row, is: "option" })) as unknown as OptionRow[];

const OLD_NAMES: readonly OptionRow[] = OPTION_ROWS.flatMap(
  ({ oldFlag, default: _default, field: _field, short: _short, ...row }) =>
    oldFlag === undefined ? [] : [{ ...row, flag: oldFlag, deprecated: `use --${row.flag}` }],
);

/** All options. Flags, fields of the configuration file, help, completion and docs/flags.md are derived from it. */
export const OPTION_TABLE: readonly FlagRow[] = [
  ...COMMAND_ROWS,
  ...OPTION_ROWS,
  ...OLD_NAMES,
  ...NODE_OTHERS,
  ...CLUSTER_OTHERS,
  ...ENGINE_OTHERS,
  ...POD_OTHERS,
  ...SERVER_OTHERS,
  ...PRESSURE_OTHERS,
  ...LOGGING_OTHERS,
];

/** Default of every option. Source: kubelet's defaults; docs/differences.md lists the exceptions. */
export const DEFAULT_KUBELET_OPTIONS = Object.fromEntries(
  OPTION_ROWS.map((row) => [row.option, row.default]),
) as KubeletOptions;

/** Options that take effect while the kubelet runs. */
const LIVE_OPTIONS: ReadonlySet<keyof KubeletOptions> = new Set(
  OPTION_ROWS.flatMap((row) => (row.live ? row.option : [])),
);

/** Differences between the options in force and new ones: those that take effect now, and those of the next start. */
export function compareOptions(
  current: KubeletOptions,
  next: KubeletOptions,
): Readonly<Record<"live" | "needRestart", (keyof KubeletOptions)[]>> {
  const changed = (Object.keys(next) as (keyof KubeletOptions)[]).filter(
    (name) => !Bun.deepEquals(current[name], next[name]),
  );
  return {
    live: changed.filter((name) => LIVE_OPTIONS.has(name)),
    needRestart: changed.filter((name) => !LIVE_OPTIONS.has(name)),
  };
}

/** Rows by long and short name. */
export const ROW_BY_FLAG: ReadonlyMap<string, FlagRow> = new Map(
  OPTION_TABLE.flatMap((row) => {
    const entries: [string, FlagRow][] = [];
    if (row.flag !== undefined) entries.push([row.flag, row]);
    if (row.short !== undefined) entries.push([row.short, row]);
    return entries;
  }),
);

/** Rows by dotted path in a KubeletConfiguration. */
export const ROW_BY_FIELD: ReadonlyMap<string, FlagRow> = new Map(
  OPTION_TABLE.flatMap((row) => (row.field === undefined ? [] : [[row.field, row] as const])),
);

/** Rows shown in help and documentation: those with an effect that are not deprecated. */
export const SHOWN_ROWS: readonly (OptionRow | CommandRow)[] = OPTION_TABLE.filter(
  (row): row is OptionRow | CommandRow => row.is === "command" || (row.is === "option" && row.deprecated === undefined),
);
