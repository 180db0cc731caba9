import { expect, test } from "bun:test";
import { parseSecretFrom } from "../../../src/base/api/secret-from.ts";

test("files and credentials, separated by commas or line ends", () => {
  expect(parseSecretFrom("password=file:/etc/db/password, tls.crt=credential:db-cert\n")).toEqual([
    { key: "password", kind: "file", name: "/etc/db/password" },
    { key: "tls.crt", kind: "credential", name: "db-cert" },
  ]);
});

test.each([
  "",
  "password",
  "password=/etc/x",
  "password=file:etc/x",
  "p=credential:../x",
  "p=credential:a/b",
  "p q=file:/x",
])("%p is refused", (text) => {
  expect(parseSecretFrom(text)).toMatchObject({ problem: expect.any(String) });
});
