/** Supported TLS 1.2 suites: IANA name to OpenSSL name. Source: Go's crypto/tls. */
const TLS_1_2_SUITES: Readonly<Record<string, string>> = {
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: "ECDHE-ECDSA-AES128-GCM-SHA256",
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: "ECDHE-RSA-AES128-GCM-SHA256",
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: "ECDHE-ECDSA-AES256-GCM-SHA384",
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: "ECDHE-RSA-AES256-GCM-SHA384",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: "ECDHE-ECDSA-AES128-SHA",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: "ECDHE-RSA-AES128-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: "ECDHE-ECDSA-AES256-SHA",
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: "ECDHE-RSA-AES256-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: "ECDHE-ECDSA-AES128-SHA256",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: "ECDHE-RSA-AES128-SHA256",
  TLS_RSA_WITH_AES_128_GCM_SHA256: "AES128-GCM-SHA256",
  TLS_RSA_WITH_AES_256_GCM_SHA384: "AES256-GCM-SHA384",
  TLS_RSA_WITH_AES_128_CBC_SHA: "AES128-SHA",
  TLS_RSA_WITH_AES_256_CBC_SHA: "AES256-SHA",
};

/** Always enabled with TLS 1.3, as upstream; naming them has no effect. */
const TLS_1_3_SUITES = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"] as const;

/** Suites with forward secrecy and authenticated encryption. */
const DEFAULT_SUITES = Object.values(TLS_1_2_SUITES).slice(0, 6);

/** Every name `--tls-cipher-suites` knows. */
export const CIPHER_SUITE_NAMES: readonly string[] = [...TLS_1_3_SUITES, ...Object.keys(TLS_1_2_SUITES)];

export interface TlsVersions {
  minVersion: "TLSv1.2" | "TLSv1.3";
  /** OpenSSL's list for TLS 1.2. */
  ciphers: string;
}

/** @param suites names of {@link CIPHER_SUITE_NAMES}; none: the defaults */
export function toTlsVersions(minVersion: "VersionTLS12" | "VersionTLS13", suites: readonly string[]): TlsVersions {
  const chosen = [...new Set(suites.map((name) => TLS_1_2_SUITES[name]).filter((name) => name !== undefined))];
  // Only suites of TLS 1.3 were named: nothing is left for TLS 1.2.
  const isOnly13 = minVersion === "VersionTLS13" || (suites.length > 0 && chosen.length === 0);
  return {
    minVersion: isOnly13 ? "TLSv1.3" : "TLSv1.2",
    ciphers: (chosen.length > 0 ? chosen : DEFAULT_SUITES).join(":"),
  };
}
