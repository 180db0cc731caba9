import { expect, test } from "bun:test";
import { type AccessRules, authenticate, forbid, type ShownCertificate } from "../../src/server/client-identity.ts";

const NOW = new Date("2026-11-21T08:00:00Z");
const alice: ShownCertificate = {
  isVerified: true,
  commonName: "alice",
  organizations: ["devs", "ops"],
  notAfter: new Date("2026-11-22T00:00:00Z"),
};
const strict: AccessRules = { trustsCertificates: true, anonymousAuth: false, authorizationMode: "AlwaysAllow" };

test.each([
  { when: "a certificate that holds", shown: alice, rules: {}, want: "alice" },
  { when: "no certificate", shown: undefined, rules: {}, want: undefined },
  { when: "no certificate, anonymous", shown: undefined, rules: { anonymousAuth: true }, want: "system:anonymous" },
  { when: "one of another authority", shown: { ...alice, isVerified: false }, rules: {}, want: undefined },
  {
    when: "one of another authority is not anonymous either",
    shown: { ...alice, isVerified: false },
    rules: { anonymousAuth: true },
    want: undefined,
  },
  { when: "one that ran out meanwhile", shown: { ...alice, notAfter: new Date(0) }, rules: {}, want: undefined },
  { when: "one without a name", shown: { ...alice, commonName: "" }, rules: {}, want: undefined },
  {
    when: "any, where no authority is trusted",
    shown: alice,
    rules: { trustsCertificates: false },
    want: undefined,
  },
  {
    when: "any, where no authority is trusted but everybody let in",
    shown: { ...alice, isVerified: false },
    rules: { trustsCertificates: false, anonymousAuth: true },
    want: "system:anonymous",
  },
])("$when", ({ shown, rules, want }) => {
  expect(authenticate(shown, { ...strict, ...rules }, NOW)?.name).toBe(want as string);
});

test("organizations are groups", () => {
  expect(authenticate(alice, strict, NOW)?.groups).toEqual(["devs", "ops", "system:authenticated"]);
});

test.each([
  ["GET", "/pods", "verb=get, resource=nodes, subresource=proxy"],
  ["HEAD", "/metrics/cadvisor", "verb=get, resource=nodes, subresource=metrics"],
  ["POST", "/run/default/p/c", "verb=create, resource=nodes, subresource=proxy"],
  ["GET", "/stats/summary", "verb=get, resource=nodes, subresource=stats"],
  ["GET", "/spec/", "verb=get, resource=nodes, subresource=spec"],
])("%s %s is denied by AlwaysDeny, allowed by AlwaysAllow", (method, path, want) => {
  const user = { name: "alice", groups: [] };
  expect(forbid(user, { method, path }, strict)).toBeUndefined();
  expect(forbid(user, { method, path }, { ...strict, authorizationMode: "AlwaysDeny" })).toBe(
    `Forbidden (user=alice, ${want})`,
  );
});
