import { expect, test } from "bun:test";
import { describeFailure } from "../../../src/cluster/client/api-error.ts";

const SERVER = "https://10.0.0.1:6443";
const NOW = new Date("2026-01-02T03:04:05Z");

test.each([
  { code: "ConnectionRefused", want: `cannot reach ${SERVER}: ConnectionRefused` },
  { code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE", want: "not signed by the certificate authority of the kubeconfig" },
  { code: "SELF_SIGNED_CERT_IN_CHAIN", want: "not signed by the certificate authority of the kubeconfig" },
  { code: "CERT_NOT_YET_VALID", want: "not valid at 2026-01-02T03:04:05.000Z, the time of this machine" },
  { code: "CERT_HAS_EXPIRED", want: "not valid at 2026-01-02T03:04:05.000Z, the time of this machine" },
  { code: "ERR_TLS_CERT_ALTNAME_INVALID", want: "tls-server-name" },
])("$code says what is wrong, and the way out", ({ code, want }) => {
  expect(describeFailure(Object.assign(new Error("failed"), { code }), SERVER, NOW)).toContain(want);
});

test("no answer in time, and an error without a code", () => {
  const late = Object.assign(new Error("the operation timed out"), { name: "TimeoutError" });
  expect(describeFailure(late, SERVER, NOW)).toBe(`${SERVER} did not answer in time`);
  expect(describeFailure(new Error("odd"), SERVER, NOW)).toBe(`cannot reach ${SERVER}: odd`);
});
