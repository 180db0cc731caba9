import { expect, test } from "bun:test";
import { parseExit } from "../../../src/cli/client/container-streams.ts";
import { exitStatus, failureStatus } from "../../../src/server/channel-protocol.ts";

test.each([0, 1, 137])("exit code %d is read from the Status that carries it", (code) => {
  expect(parseExit(exitStatus(code))).toBe(code);
});

test("no Status: the end of the command is not known", () => expect(parseExit(undefined)).toBeUndefined());

test("a command that did not run is an error with the server's reason", () => {
  expect(() => parseExit(failureStatus("no such program"))).toThrow("no such program");
});
