import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { browserUser, isDesktop, openCommand, toCertifiedUrl } from "../../../src/cli/commands/page.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { TestCertificates } from "../../support/test-certificates.ts";

const temp = tempDirs();

test.each([
  ["a terminal under X11", { DISPLAY: ":0" }, true, true],
  ["a terminal under Wayland", { WAYLAND_DISPLAY: "wayland-0" }, true, true],
  ["a pipe", { DISPLAY: ":0" }, false, false],
  ["a console", {}, true, false],
  ["ssh -X", { DISPLAY: ":10", SSH_CONNECTION: "a b c d" }, true, false],
])("%s opens the browser: %p", (_, environment, isTerminal, expected) => {
  expect(isDesktop(environment, isTerminal)).toBe(expected);
});

test.each([
  [0, { SUDO_USER: "ann", SUDO_UID: "1000" }, { id: 1000, name: "ann" }],
  [1000, {}, { id: 1000 }],
  [1000, { SUDO_USER: "ann", SUDO_UID: "1001" }, { id: 1000 }],
  [0, {}, { id: 0 }],
  [0, { SUDO_USER: "root", SUDO_UID: "0" }, { id: 0 }],
  [0, { SUDO_USER: "ann" }, { id: 0 }],
])("user %p with %p: the browser belongs to %p", (userId, environment, expected) => {
  expect(browserUser(userId, environment)).toEqual(expected);
});

test("the desktop opens a link as the user of the browser", () => {
  expect(openCommand("L", "ann")).toEqual(["runuser", "-u", "ann", "--", "xdg-open", "L"]);
  expect(openCommand("L", undefined)).toEqual(["xdg-open", "L"]);
});

describe("the address of a link, by what the certificate is valid for", () => {
  const certificates = new TestCertificates(temp());
  const read = ({ cert }: { cert: string }) => new X509Certificate(cert);
  test.each([
    ["https://127.0.0.1:4194", () => certificates.server("node"), "https://127.0.0.1:4194"],
    ["https://192.0.2.1:4194", () => certificates.server("node"), "https://192.0.2.1:4194"],
    ["https://[2001:db8::1]:4194", () => certificates.serverNamed("edge.example"), "https://edge.example:4194"],
    ["https://a.lab.example:4194", () => certificates.serverNamed("*.lab.example"), "https://a.lab.example:4194"],
    ["https://192.0.2.1:4194", () => certificates.serverNamed("*.lab.example"), "https://192.0.2.1:4194"],
  ])("%s", (address, make, shown) => {
    expect(toCertifiedUrl(address, read(make()))).toBe(shown);
  });
});
