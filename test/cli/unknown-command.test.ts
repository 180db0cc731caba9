import { expect, test } from "bun:test";
import { unknownCommand } from "../../src/cli/unknown-command.ts";

const COMMANDS = ["validate", "version"];
const exists = (path: string) => path === "pods";

test.each([
  ["validte", "did you mean validate?"],
  ["frobnicate", "commands are validate, version"],
] as const)("%s is refused: %s", (word, hint) => {
  expect(unknownCommand(word, COMMANDS, exists)).toContain(hint);
});

test.each(["", "pods", "./later", "later/", "web.yaml", "-", "--runonce", "https://host/pods", "unix:/run/x"])(
  "%p may be a manifest",
  (word) => {
    expect(unknownCommand(word, COMMANDS, exists)).toBeUndefined();
  },
);
