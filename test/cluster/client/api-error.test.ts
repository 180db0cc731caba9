import { expect, test } from "bun:test";
import { describeFailure } from "../../../src/cluster/client/api-error.ts";

const SERVER = "https://10.0.0.1:6443";

test.each([
  { code: "ConnectionRefused", want: `cannot reach ${SERVER}: ConnectionRefused` },
  { code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE", want: "not signed by the certificate authority of the kubeconfig" },
  { code: "SELF_SIGNED_CERT_IN_CHAIN", want: "not signed by the certificate authority of the kubeconfig" },
  { code: "CERT_NOT_YET_VALID", want: "whose clock may be wrong" },
  { code: "CERT_HAS_EXPIRED", want: "whose clock may be wrong" },
  { code: "ERR_TLS_CERT_ALTNAME_INVALID", want: "tls-server-name" },
])("$code says what is wrong, and the way out", ({ code, want }) => {
  expect(describeFailure(Object.assign(new Error("failed"), { code }), SERVER)).toContain(want);
});

test("no response in time, and an error without a code", () => {
  const late = Object.assign(new Error("the operation timed out"), { name: "TimeoutError" });
  expect(describeFailure(late, SERVER)).toBe(`${SERVER} did not answer in time`);
  expect(describeFailure(new Error("odd"), SERVER)).toBe(`the response of ${SERVER} cannot be used: odd`);
});
