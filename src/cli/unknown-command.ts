import { nearestName } from "../text/nearest-name.ts";

/**
 * What to say when the first argument is neither a command nor a manifest, but a plain word: undefined when it may be a
 * manifest. A directory that does not exist yet is waited for, so that a misspelt command would wait for ever; whoever
 * means the directory writes a path.
 * @param exists whether there is a file or directory of that name
 */
export function unknownCommand(
  word: string,
  commands: readonly string[],
  exists: (path: string) => boolean,
): string | undefined {
  if (!/^[A-Za-z][\w-]*$/.test(word) || exists(word)) return undefined;
  const nearest = nearestName(word, [...commands, "help"]);
  const hint = nearest ? `did you mean ${nearest}?` : `commands are ${commands.join(", ")}`;
  return `there is no command "${word}", and no file or directory of that name; ${hint} (a directory that comes later is written ./${word})`;
}
