import { expect, test } from "bun:test";
import { createSecureContext } from "node:tls";
import { CIPHER_SUITE_NAMES, toTlsVersions } from "../../src/config/cipher-suites.ts";

test.each([
  { when: "nothing is named", min: "VersionTLS12", suites: [], want: { minVersion: "TLSv1.2" } },
  { when: "1.3 is asked for", min: "VersionTLS13", suites: [], want: { minVersion: "TLSv1.3" } },
  {
    when: "one is named twice",
    min: "VersionTLS12",
    suites: ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"],
    want: { minVersion: "TLSv1.2", ciphers: "ECDHE-RSA-CHACHA20-POLY1305" },
  },
  {
    when: "only suites of TLS 1.3 are named, TLS 1.2 has none",
    min: "VersionTLS12",
    suites: ["TLS_AES_128_GCM_SHA256"],
    want: { minVersion: "TLSv1.3" },
  },
] as const)("$when", ({ min, suites, want }) => {
  expect(toTlsVersions(min, suites)).toMatchObject(want);
});

test.each([...CIPHER_SUITE_NAMES])("%s is available", (name) => {
  expect(() => createSecureContext({ ciphers: toTlsVersions("VersionTLS12", [name]).ciphers })).not.toThrow();
});
