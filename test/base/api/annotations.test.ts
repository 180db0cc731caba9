import { expect, test } from "bun:test";
import { parseDependsOn, parseSecretFrom } from "../../../src/base/api/annotations.ts";

const db = { namespace: "default", name: "db", condition: "Ready" };
test.each([
  ["default/db", [db]],
  ["default/db=Ready, jobs/a=Succeeded", [db, { namespace: "jobs", name: "a", condition: "Succeeded" }]],
  ["a/b.c-1=Running", [{ namespace: "a", name: "b.c-1", condition: "Running" }]],
])("%s", (text, dependencies) => expect(parseDependsOn(text)).toEqual(dependencies as never));

test.each(["", "db", "default/db=Up", "default/db=Ready=Ready", "a/b/c", "default/DB", "default/db,,", "/db"])(
  "%j has another format",
  (text) => {
    expect(parseDependsOn(text)).toBeUndefined();
  },
);

test("files and credentials, separated by commas or line ends", () => {
  expect(parseSecretFrom("password=file:/etc/db/password, tls.crt=credential:db-cert\n")).toEqual([
    { key: "password", kind: "file", name: "/etc/db/password" },
    { key: "tls.crt", kind: "credential", name: "db-cert" },
  ]);
});

const MALFORMED = ["", "password", "password=/etc/x", "password=file:etc/x", "p=credential:../x", "p=credential:a/b"];
test.each([...MALFORMED, "p q=file:/x"])("%p is refused", (text) => {
  expect(parseSecretFrom(text)).toMatchObject({ problem: expect.any(String) });
});
