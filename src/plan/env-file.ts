/** Larger env files are refused. Source: `env.valueFrom.fileKeyRef`, 64 KiB. */
export const ENV_FILE_LIMIT_BYTES = 65_536;

/** The outcome of {@link parseEnvFile}; `problem` names the line, never a value. */
type ParsedEnvFile = { values: Map<string, string> } | { problem: string };

/**
 * Reads the strict subset of shell syntax that `fileKeyRef` takes: `NAME='value'`, single quotes only, nothing inside
 * them is special, a value may span lines, `#` starts a comment, blank lines are skipped, the last of equal names wins.
 * As in a shell, white space after `=` makes the value empty; white space before it is an error.
 * Source: KEP-3721 and upstream's `ParseEnv`.
 */
export function parseEnvFile(text: string): ParsedEnvFile {
  const lines = text.split(/\r?\n/);
  const values = new Map<string, string>();
  for (let at = 0; at < lines.length; at++) {
    const line = (lines[at] ?? "").replace(/^[ \t]+/, "");
    if (line === "" || line.startsWith("#")) continue;
    const number = at + 1;
    const broken = (what: string) => ({ problem: `invalid environment variable format at line ${number}: ${what}` });
    const equals = line.indexOf("=");
    if (equals < 0) return broken("missing '='");
    const name = line.slice(0, equals);
    if (name.trim() === "") return broken("empty variable name");
    if (name !== name.trimEnd()) return broken("whitespace before '=' is not allowed");
    const value = line.slice(equals + 1);
    if (/^[ \t]/.test(value)) {
      values.set(name, "");
      continue;
    }
    if (!value.startsWith("'")) return broken("value must be enclosed in single quotes");
    let quoted = value.slice(1);
    while (!quoted.includes("'")) {
      at++;
      const next = lines[at];
      if (next === undefined) return broken("unclosed single quote");
      quoted += `\n${next}`;
    }
    const end = quoted.indexOf("'");
    const rest = quoted.slice(end + 1).trim();
    if (rest !== "" && !rest.startsWith("#")) return broken("unexpected content after closing quote");
    values.set(name, quoted.slice(0, end));
  }
  return { values };
}
