import { createPrivateKey, sign } from "node:crypto";

/** Environment variable that names the file of the private key. */
export const SIGNING_KEY_VARIABLE = "KUBELET_TS_SIGNING_KEY";

/**
 * Ed25519 signature of a text, 64 bytes, as `openssl pkeyutl -verify -rawin` reads it.
 * @param pem private key in PKCS #8, as `openssl genpkey -algorithm ed25519` writes it
 * @throws Error when it is no Ed25519 key
 */
export function signText(text: string, pem: string): Uint8Array {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== "ed25519") {
    throw new Error(`${SIGNING_KEY_VARIABLE}: an Ed25519 key is needed (found ${key.asymmetricKeyType})`);
  }
  return sign(null, Buffer.from(text), key);
}
