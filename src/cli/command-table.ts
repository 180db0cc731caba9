import { parseCommandLine } from "../config/flags.ts";
import { takesValue } from "../config/option-row.ts";
import { ROW_BY_FLAG } from "../config/option-table.ts";
import { flagsOf } from "./arguments.ts";
import { CHANGE_COMMANDS, INSIDE_COMMANDS } from "./declarations/change.ts";
import { SETUP_COMMANDS } from "./declarations/setup.ts";
import { SHOW_COMMANDS } from "./declarations/show.ts";
import type { SubCommand } from "./sub-command.ts";

/** Every sub-command, in the order of `--help`. What a command does is loaded when it runs. */
export const COMMANDS: readonly SubCommand[] = [
  ...SHOW_COMMANDS,
  ...CHANGE_COMMANDS,
  ...INSIDE_COMMANDS,
  ...SETUP_COMMANDS,
];

export const findCommand = (name: string): SubCommand | undefined => COMMANDS.find((command) => command.name === name);

/** Errors in flags of the kubelet itself. */
export const flagErrors = (argv: readonly string[]): readonly string[] => parseCommandLine(argv).errors;

/**
 * Whether a flag in front of the command takes the next word as its value: for the kubelet, else for some command.
 * @param written with its dashes, without a value
 */
export function flagTakesValue(written: string): boolean {
  const isLong = written.startsWith("--");
  const name = written.replace(/^-+/, "");
  const row = ROW_BY_FLAG.get(name) ?? ROW_BY_FLAG.get(name.replaceAll("_", "-"));
  if (row && (isLong ? row.flag !== undefined : row.short === name)) return takesValue(row);
  return COMMANDS.some(({ args }) =>
    flagsOf(args).some((flag) => (isLong ? flag.name : flag.short) === name && flag.takesValue),
  );
}
