import { expect, test } from "bun:test";
import { isDesktop, openCommand } from "../../../src/cli/commands/page.ts";

test.each([
  ["a terminal under X11", { DISPLAY: ":0" }, true, true],
  ["a terminal under Wayland", { WAYLAND_DISPLAY: "wayland-0" }, true, true],
  ["a pipe", { DISPLAY: ":0" }, false, false],
  ["a console", {}, true, false],
  ["ssh -X", { DISPLAY: ":10", SSH_CONNECTION: "a b c d" }, true, false],
])("%s opens the browser: %p", (_, environment, isTerminal, expected) => {
  expect(isDesktop(environment, isTerminal)).toBe(expected);
});

test("under sudo the browser belongs to the user", () => {
  expect(openCommand("L", 0, "ann")).toEqual(["runuser", "-u", "ann", "--", "xdg-open", "L"]);
  expect(openCommand("L", 1000, undefined)).toEqual(["xdg-open", "L"]);
  expect(openCommand("L", 0, undefined)).toEqual(["xdg-open", "L"]);
});
