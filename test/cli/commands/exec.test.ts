import { expect, test } from "bun:test";
import { describeMissingCommand } from "../../../src/cli/commands/exec.ts";

const FAILED = "OCI runtime exec failed: exec failed: unable to start container process: exec: ";

test.each([
  [`${FAILED}"bash": executable file not found in $PATH: unknown\r\n`, '"bash" is not in the image: try sh instead'],
  [
    `${FAILED}"/bin/zsh": stat /bin/zsh: no such file or directory: unknown`,
    '"/bin/zsh" is not in the image: try sh instead',
  ],
  [`${FAILED}"curl": executable file not found in $PATH`, '"curl" is not in the image: name a program that it has'],
  [
    `${FAILED}"sh": executable file not found in $PATH`,
    '"sh" is not in the image, which may have no shell: name a program that it has',
  ],
  [`${FAILED}"/data": permission denied: unknown`, undefined],
  ["sh: exec: nope: not found", undefined],
])("a command that the image lacks: %s", (output, hint) => {
  expect(describeMissingCommand(output)).toBe(hint);
});
