import type { KubeletOptions } from "../base/model/kubelet-options.ts";
import type { CommandRow, FlagRow, OptionRow } from "./option-row.ts";
import { CLUSTER_ROWS } from "./option-rows/cluster.ts";
import { ENGINE_ROWS } from "./option-rows/engine.ts";
import { LOGGING_ROWS } from "./option-rows/logging.ts";
import { NETWORK_ROWS } from "./option-rows/network.ts";
import { NODE_ROWS } from "./option-rows/node.ts";
import { POD_ROWS } from "./option-rows/pods.ts";
import { PRESSURE_ROWS } from "./option-rows/pressure.ts";
import { SERVER_ROWS } from "./option-rows/servers.ts";
import { SOURCE_ROWS } from "./option-rows/sources.ts";

const ROWS = [
  ...SOURCE_ROWS,
  ...NODE_ROWS,
  ...CLUSTER_ROWS,
  ...ENGINE_ROWS,
  ...NETWORK_ROWS,
  ...POD_ROWS,
  ...SERVER_ROWS,
  ...PRESSURE_ROWS,
  ...LOGGING_ROWS,
];

/** All options. Flags, fields of the configuration file, help, completion and docs/flags.md are derived from it. */
export const OPTION_TABLE: readonly FlagRow[] = ROWS;

type Declaration = Extract<(typeof ROWS)[number], { is: "option"; default: unknown }>;
const DECLARATIONS = ROWS.filter((row): row is Declaration => row.is === "option" && "default" in row);

// Does not compile when an option has no row.
const defaults: Record<keyof KubeletOptions, unknown> = Object.fromEntries(
  DECLARATIONS.map((row) => [row.option, row.default]),
) as Record<Declaration["option"], unknown>;

/** Default of every option. Source: kubelet's defaults; docs/differences.md lists the exceptions. */
export const DEFAULT_KUBELET_OPTIONS = defaults as KubeletOptions;

/** Options that take effect while the kubelet runs. */
export const LIVE_OPTIONS: ReadonlySet<keyof KubeletOptions> = new Set(
  DECLARATIONS.flatMap((row) => (row.live ? row.option : [])),
);

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
