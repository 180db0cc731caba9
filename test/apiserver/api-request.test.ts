import { expect, test } from "bun:test";
import { authenticate, type Role } from "../../src/apiserver/api-request.ts";
import type { ShownCertificate } from "../../src/server/client-identity.ts";

const NOW = new Date("2026-11-21T08:00:00Z");
const certificate: ShownCertificate = {
  isVerified: true,
  commonName: "prometheus",
  organizations: ["system:monitoring"],
  notAfter: new Date("2026-11-22T00:00:00Z"),
};

test.each<[when: string, shown: ShownCertificate | undefined, authorization: string | null, want: string | undefined]>([
  ["neither certificate nor token", undefined, null, "system:anonymous"],
  ["a certificate that is valid", certificate, null, "prometheus"],
  ["a certificate of another authority", { ...certificate, isVerified: false }, null, undefined],
  ["a certificate that has expired", { ...certificate, notAfter: new Date(0) }, null, undefined],
  ["a certificate without a name", { ...certificate, commonName: "" }, null, undefined],
  ["a token that is not known", undefined, "Bearer wrong", undefined],
  ["a certificate that is valid and a token that is not known", certificate, "Bearer wrong", undefined],
])("%s", (_, shown, authorization, want) => {
  expect(authenticate(shown, authorization, [], NOW)?.name).toBe(want as string);
});

test.each<[organizations: string[], want: Role]>([
  [[], "view"],
  [["ops"], "view"],
  [["system:monitoring"], "metrics"],
  [["ops", "system:monitoring"], "metrics"],
  [["system:monitoring", "system:masters"], "admin"],
])("the groups %j have the role %s", (organizations, want) => {
  expect(authenticate({ ...certificate, organizations }, null, [], NOW)?.role).toBe(want);
});
