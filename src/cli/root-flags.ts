import { takesValue } from "../config/option-row.ts";
import { ROW_BY_FLAG } from "../config/option-table.ts";
import { VIEW_COMMANDS } from "./view-commands.ts";

/**
 * Whether a flag in front of the command takes the next word as its value, for the kubelet or else for some command.
 * @param written with its dashes, without a value
 */
export function flagTakesValue(written: string): boolean {
  const isLong = written.startsWith("--");
  const name = written.replace(/^-+/, "");
  const row = ROW_BY_FLAG.get(name) ?? ROW_BY_FLAG.get(name.replaceAll("_", "-"));
  if (row && (isLong ? row.flag !== undefined : row.short === name)) return takesValue(row);
  return VIEW_COMMANDS.some(({ flags }) =>
    flags.some((flag) => (isLong ? flag.name : flag.short) === name && flag.value !== undefined),
  );
}
