import { expect, test } from "bun:test";
import { parseEnvFile } from "../../src/plan/env-file.ts";

const bad = (line: number, what: string) => ({
  problem: `invalid environment variable format at line ${line}: ${what}`,
});

test.each([
  { text: "", want: {} },
  { text: "A='1'", want: { A: "1" } },
  { text: "A='1'\r\nB='2'\r\n", want: { A: "1", B: "2" } },
  { text: "  A='1'\n\n \t\n# c\n#X\nB=''\n", want: { A: "1", B: "" } },
  { text: `A='$x "y" \\n # no comment'  # comment`, want: { A: `$x "y" \\n # no comment` } },
  { text: "A='l1\nl2\n'\nB='x'", want: { A: "l1\nl2\n", B: "x" } },
  { text: "A= 'x'", want: { A: "" } },
  { text: "A='1'\nA='2'", want: { A: "2" } },
  { text: "A='='", want: { A: "=" } },
])("$text", ({ text, want }) => {
  const parsed = parseEnvFile(text);
  expect("values" in parsed ? Object.fromEntries(parsed.values) : parsed).toEqual(want);
});

test.each([
  { text: "A", want: bad(1, "missing '='") },
  { text: "\n\nA ='1'", want: bad(3, "whitespace before '=' is not allowed") },
  { text: "='1'", want: bad(1, "empty variable name") },
  { text: "A=1", want: bad(1, "value must be enclosed in single quotes") },
  { text: 'A="1"', want: bad(1, "value must be enclosed in single quotes") },
  { text: "A=", want: bad(1, "value must be enclosed in single quotes") },
  { text: "B='x'\nA='1\n2\n", want: bad(2, "unclosed single quote") },
  { text: "A='1'2", want: bad(1, "unexpected content after closing quote") },
])("$text is refused", ({ text, want }) => expect(parseEnvFile(text)).toEqual(want));
